/** The shell: who is signed in, the way between the pages, and the page. */
import { useEffect, useState } from "preact/hooks"
import { ToolContext } from "./Context.ts"
import { type Contract, contractOf } from "./Contract.ts"
import { useExternal } from "./External.ts"
import { EVENTS, follow, type LiveState } from "./Live.ts"
import { nameTool } from "./Name.ts"
import { Nav } from "./Nav.tsx"
import { OPERATOR } from "./operator/Access.ts"
import { pagesOf } from "./Pages.tsx"
import { Trouble, Waiting } from "./Parts.tsx"
import { usePlace } from "./Place.ts"
import { Operator } from "./pages/Operator.tsx"
import { currentAccess, onAccess, Refused, read, takeUpSession } from "./Requests.ts"
import { hasSessions, mayHaveSession } from "./Session.ts"
import { SignIn } from "./SignIn.tsx"

type Start = { readonly contract: Contract } | { readonly refused: Refused } | undefined

export const App = () => {
  const [start, setStart] = useState<Start>()
  const access = useExternal(currentAccess, onAccess)
  const place = usePlace()
  const begin = () => {
    setStart(undefined)
    beginning().then(
      (contract) => setStart({ contract }),
      (error: unknown) => setStart({ refused: error instanceof Refused ? error : new Refused("unknown", String(error), 0) })
    )
  }
  useEffect(begin, [])
  if (start === undefined)
    return (
      <main class="alone">
        <Waiting />
      </main>
    )
  if ("refused" in start)
    return (
      <main class="alone">
        <h1>Millrace</h1>
        <Trouble refused={start.refused} again={begin} />
      </main>
    )
  if (start.contract.hasOperator === true && place.page === OPERATOR) return <Operator section={place.rest} />
  return access.by === "nobody" ? <SignIn contract={start.contract} /> : <Shell contract={start.contract} />
}

/** Reads the contract of the host, and takes up a session that this browser has. */
const beginning = async (): Promise<Contract> => {
  const contract = contractOf(await read("/api/v1/openapi.json"))
  if (contract.title !== undefined) nameTool(contract.title)
  if (hasSessions(contract) && mayHaveSession()) await takeUpSession()
  return contract
}

const Shell = ({ contract }: { readonly contract: Contract }) => {
  const { page: name, rest } = usePlace()
  const [live, setLive] = useState<LiveState>("off")
  useEffect(() => {
    if (contract.find("GET", EVENTS) === undefined) return
    const stop = new AbortController()
    void follow(setLive, stop.signal)
    return () => stop.abort()
  }, [contract])
  const pages = pagesOf(contract)
  const page = pages.find((page) => page.name === name) ?? pages[0]
  return (
    <ToolContext.Provider value={{ contract, live }}>
      <button type="button" class="skip" onClick={toContent}>
        Skip to the page
      </button>
      <div class="shell">
        <Nav pages={pages} current={page?.name ?? ""} live={live} />
        <main id="content" class="content" tabIndex={-1}>
          {page?.show(rest)}
        </main>
      </div>
    </ToolContext.Provider>
  )
}

/** No link: the part of the address after `#` is the place in the tool. */
const toContent = () => document.getElementById("content")?.focus()
