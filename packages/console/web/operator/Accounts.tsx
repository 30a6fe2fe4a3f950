/** The accounts of the host, those that were opened last first, found by their ids. */
import { useEffect, useRef, useState } from "preact/hooks"
import { Badge, Card, Empty, Trouble, Waiting } from "../Parts.tsx"
import { Refused } from "../Requests.ts"
import { amount, away } from "../Text.ts"
import { readAsOperator } from "./Access.ts"

interface Account {
  readonly account_id: string
  readonly status: string
  readonly available: number | null
  readonly reserved: number | null
  readonly debt: number | null
  readonly opened_at: string
  readonly last_activity_at: string
}

interface Accounts {
  readonly accounts: ReadonlyArray<Account>
  readonly next: number | null
}

const pathOf = (part: string, before?: number): string => {
  const query = Object.entries({ q: part, before: before === undefined ? "" : String(before) }).filter(([, value]) => value !== "")
  return query.length === 0 ? "/accounts" : `/accounts?${new URLSearchParams(query)}`
}

/** The pages read so far. */
const usePages = (part: string) => {
  const [state, setState] = useState<{ readonly shown?: ReadonlyArray<Account>; readonly next: number | null }>({ next: null })
  const [refused, setRefused] = useState<Refused>()
  const [isBusy, setBusy] = useState(false)
  const turn = useRef(0)
  const load = (before?: number) => {
    const mine = ++turn.current
    setBusy(true)
    readAsOperator<Accounts>(pathOf(part, before))
      .then(
        ({ accounts, next }) => {
          if (mine !== turn.current) return
          setState((old) => ({ shown: before === undefined ? accounts : [...(old.shown ?? []), ...accounts], next }))
          setRefused(undefined)
        },
        (error: unknown) => mine === turn.current && setRefused(error instanceof Refused ? error : new Refused("unknown", String(error), 0))
      )
      .finally(() => mine === turn.current && setBusy(false))
  }
  useEffect(() => load(), [part])
  return { ...state, refused, isBusy, again: () => load(), more: () => load(state.next ?? undefined) }
}

export const Accounts = () => {
  const [part, setPart] = useState("")
  const { again, isBusy, more, next, refused, shown } = usePages(part)
  const search = (event: SubmitEvent) => {
    event.preventDefault()
    setPart(String(new FormData(event.currentTarget as HTMLFormElement).get("part") ?? "").trim())
  }
  return (
    <Card>
      <search>
        <form class="row" onSubmit={search}>
          <label class="field grows">
            <span>Part of an account's id, or your own id of it</span>
            <input name="part" autocomplete="off" spellcheck={false} maxLength={200} />
          </label>
          <button type="submit" class="at-end">
            Find
          </button>
        </form>
      </search>
      {refused === undefined ? null : <Trouble refused={refused} again={again} />}
      {shown === undefined ? refused === undefined ? <Waiting lines={6} /> : null : null}
      {shown?.length === 0 ? <Empty>{part === "" ? "There is no account yet." : "No account is called so."}</Empty> : null}
      <ul class="lines">
        {shown?.map((account) => (
          <Line key={account.account_id} account={account} />
        ))}
      </ul>
      {next === null ? null : (
        <button type="button" onClick={more} disabled={isBusy}>
          {isBusy ? "Loading" : "Earlier accounts"}
        </button>
      )}
    </Card>
  )
}

const TONES: Readonly<Record<string, "good" | "bad" | "calm">> = { verified: "good", suspended: "bad", unreadable: "bad" }

const Line = ({ account }: { readonly account: Account }) => {
  const { account_id, available, debt, last_activity_at, reserved, status } = account
  return (
    <li class="operated">
      <div class="operated-name">
        <code class="breaks">{account_id}</code>
        <Badge tone={TONES[status] ?? "calm"}>{status}</Badge>
      </div>
      <dl class="figures">
        <Figure name="Available" value={available} />
        <Figure name="Reserved" value={reserved} />
        <Figure name="Debt" value={debt} isBad={(debt ?? 0) > 0} />
        <div>
          <dt>Last activity</dt>
          <dd>
            <time dateTime={last_activity_at}>{away(last_activity_at, Date.now())}</time>
          </dd>
        </div>
      </dl>
    </li>
  )
}

const Figure = ({ isBad = false, name, value }: { readonly name: string; readonly value: number | null; readonly isBad?: boolean }) => (
  <div class={isBad ? "is-bad" : ""}>
    <dt>{name}</dt>
    <dd>{value === null ? "unknown" : amount(value)}</dd>
  </div>
)
