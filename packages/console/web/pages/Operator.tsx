/** The operator view: how the host is, for whoever has the operator's key. It stands by itself, beside the pages of an account. */
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { toolName } from "../Name.ts"
import { Mark } from "../Nav.tsx"
import { keep, OPERATOR, tryKey, useAdmitted } from "../operator/Access.ts"
import { Accounts } from "../operator/Accounts.tsx"
import { Holds } from "../operator/Holds.tsx"
import { Jobs } from "../operator/Jobs.tsx"
import { State } from "../operator/State.tsx"
import { Page, Trouble } from "../Parts.tsx"
import { hrefOf } from "../Place.ts"
import { Refused } from "../Requests.ts"

interface Section {
  /** In the address; empty for the first. */
  readonly name: string
  /** In the menu. */
  readonly short: string
  readonly title: string
  readonly show: () => ComponentChildren
}

const SECTIONS: ReadonlyArray<Section> = [
  { name: "", short: "State", title: "State", show: () => <State /> },
  { name: "accounts", short: "Accounts", title: "Accounts", show: () => <Accounts /> },
  { name: "holds", short: "Holds", title: "Overdue holds", show: () => <Holds /> },
  { name: "jobs", short: "Jobs", title: "Waiting jobs", show: () => <Jobs /> }
]

export const Operator = ({ section }: { readonly section: string }) => {
  const current = SECTIONS.find(({ name }) => name === section) ?? SECTIONS[0]
  if (!useAdmitted()) return <ByKey />
  return (
    <div class="shell">
      <header class="side">
        <div class="brand">
          <Mark />
          <span>Operator</span>
        </div>
        <nav aria-label="Operator pages">
          <ul>
            {SECTIONS.map(({ name, short }) => (
              <li key={name}>
                <a class="place" href={hrefOf(OPERATOR, name)} aria-current={name === current?.name ? "page" : undefined}>
                  {short}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="side-end">
          <a href={hrefOf("overview")}>The account's pages</a>
          <button type="button" class="quiet" onClick={() => keep(undefined)}>
            Forget the key
          </button>
        </div>
      </header>
      <main id="content" class="content" tabIndex={-1}>
        <Page title={current?.title ?? ""}>{current?.show()}</Page>
      </main>
    </div>
  )
}

/** Asks for the key. */
const ByKey = () => {
  const [refused, setRefused] = useState<Refused>()
  const [isBusy, setBusy] = useState(false)
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const key = String(new FormData(event.currentTarget as HTMLFormElement).get("key") ?? "").trim()
    setBusy(true)
    setRefused(undefined)
    const tried = /^[\x21-\x7e]+$/u.test(key) ? tryKey(key) : Promise.reject(new Refused("unauthorized", "This is no key.", 0))
    tried.catch((error: unknown) => {
      setRefused(wordsOf(error))
      setBusy(false)
    })
  }
  return (
    <main class="alone">
      <div class="brand">
        <Mark />
        <span>{toolName()}</span>
      </div>
      <h1>Operator view</h1>
      <form class="stack" onSubmit={submit} autocomplete="off">
        <label class="field">
          <span>Operator key</span>
          <input type="password" name="key" required autocomplete="off" spellcheck={false} aria-describedby="operator-key-hint" />
        </label>
        <p class="hint" id="operator-key-hint">
          The key that this server was started with. It stays in the memory of this page. A reload forgets it.
        </p>
        {refused === undefined ? null : <Trouble refused={refused} />}
        <button type="submit" class="main" disabled={isBusy}>
          {isBusy ? "Opening" : "Open"}
        </button>
      </form>
      <p class="fine">
        <a href={hrefOf("overview")}>The account's pages</a>
      </p>
    </main>
  )
}

const wordsOf = (error: unknown): Refused => {
  if (!(error instanceof Refused)) return new Refused("unknown", String(error), 0)
  return error.status === 401 ? new Refused(error.code, "The server does not take this key.", 401) : error
}
