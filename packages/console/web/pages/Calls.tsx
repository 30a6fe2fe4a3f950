/** All priced calls, newest first, filtered; each opens into its steps, and says why it cost what it did. */
import { useEffect, useRef, useState } from "preact/hooks"
import { CallLine, OUTCOMES } from "../CallLine.tsx"
import { useTool } from "../Context.ts"
import { useData } from "../Data.ts"
import { useChanges } from "../Live.ts"
import { Card, Empty, Page, Trouble, Waiting } from "../Parts.tsx"
import { hrefOf } from "../Place.ts"
import { type Refused, read, refusedBy } from "../Requests.ts"
import { BILLING, type Billing, CALLS, type Call, type Calls as Listed } from "../Shapes.ts"
import { amount, time } from "../Text.ts"
import { stepsOf } from "../Why.ts"

interface Filters {
  readonly operation: string
  readonly outcome: string
  readonly kind: string
}

const pathOf = (filters: Filters, before?: string): string => {
  const query = Object.entries({ ...filters, before: before ?? "" }).filter(([, value]) => value !== "")
  return `${CALLS}?${new URLSearchParams([["limit", "25"], ...query])}`
}

export const Calls = () => {
  const { contract } = useTool()
  const [filters, setFilters] = useState<Filters>({ operation: "", outcome: "", kind: "" })
  const { again, isBusy, more, next, refused, shown } = usePages(filters)
  const billing = useData<Billing>(BILLING)
  const sources = new Map(billing.data?.lots.map(({ lot_id, source }) => [lot_id, source]))
  const priced = contract.operations.filter(({ price }) => price !== undefined && price.credits > 0).map(({ key }) => key)
  const choose = (name: keyof Filters) => (event: Event) =>
    setFilters((before) => ({ ...before, [name]: (event.currentTarget as HTMLSelectElement).value }))
  return (
    <Page title="Calls" lead="Every call that has a price: what was held for it, what it cost, and why. Free calls leave no trace here.">
      <Card>
        <div class="filters">
          <Filter label="Operation" all="All operations" options={priced.map((key) => [key, key])} onChange={choose("operation")} />
          <Filter
            label="Outcome"
            all="All outcomes"
            options={Object.entries(OUTCOMES).map(([name, { text }]) => [name, text])}
            onChange={choose("outcome")}
          />
          <Filter
            label="Kind"
            all="Calls and jobs"
            options={[
              ["call", "Calls"],
              ["job", "Jobs"]
            ]}
            onChange={choose("kind")}
          />
        </div>
        {refused === undefined ? null : <Trouble refused={refused} again={again} />}
        {shown === undefined ? (
          refused === undefined ? (
            <Waiting lines={6} />
          ) : null
        ) : (
          <List calls={shown} sources={sources} isFiltered={Object.values(filters).some((value) => value !== "")} />
        )}
        {next === null ? null : (
          <button type="button" onClick={more} disabled={isBusy}>
            {isBusy ? "Loading" : "Earlier calls"}
          </button>
        )}
      </Card>
    </Page>
  )
}

interface FilterProps {
  readonly label: string
  readonly all: string
  readonly options: ReadonlyArray<readonly [string, string]>
  readonly onChange: (event: Event) => void
}

const Filter = ({ all, label, onChange, options }: FilterProps) => (
  <label class="field">
    <span class="unseen">{label}</span>
    <select onChange={onChange}>
      <option value="">{all}</option>
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  </label>
)

/** The pages read so far. Something that happened is read into the first page while only that is shown. */
const usePages = (filters: Filters) => {
  const [state, setState] = useState<{ readonly shown?: ReadonlyArray<Call>; readonly next: string | null; readonly pages: number }>({
    next: null,
    pages: 0
  })
  const [refused, setRefused] = useState<Refused>()
  const [isBusy, setBusy] = useState(false)
  const turn = useRef(0)
  const isReadingMore = useRef(false)
  const load = (before?: string) => {
    const mine = ++turn.current
    isReadingMore.current = before !== undefined
    setBusy(true)
    read<Listed>(pathOf(filters, before)).then(
      ({ calls, next }) => {
        if (mine !== turn.current) return
        isReadingMore.current = false
        setState((old) =>
          before === undefined ? { shown: calls, next, pages: 1 } : { shown: [...(old.shown ?? []), ...calls], next, pages: old.pages + 1 }
        )
        setRefused(undefined)
        setBusy(false)
      },
      (error: unknown) => {
        if (mine !== turn.current) return
        isReadingMore.current = false
        setRefused(refusedBy(error))
        setBusy(false)
      }
    )
  }
  useEffect(() => load(), [filters])
  useChanges(({ account, isFirst }) => {
    if ((account || isFirst) && state.pages <= 1 && !isReadingMore.current) load()
  })
  return { ...state, refused, isBusy, again: () => load(), more: () => load(state.next ?? undefined) }
}

interface ListProps {
  readonly calls: ReadonlyArray<Call>
  readonly sources: ReadonlyMap<string, string>
  readonly isFiltered: boolean
}

const List = ({ calls, isFiltered, sources }: ListProps) =>
  calls.length === 0 ? (
    <Empty>
      {isFiltered ? (
        "No call is like this."
      ) : (
        <>
          No priced call was made yet. <a href={hrefOf("try")}>Try one.</a>
        </>
      )}
    </Empty>
  ) : (
    <ul class="lines">
      {calls.map((call) => (
        <li key={call.reservation_id}>
          <details class="call">
            <CallLine call={call} as="summary" />
            <Steps call={call} sources={sources} />
          </details>
        </li>
      ))}
    </ul>
  )

const Steps = ({ call, sources }: { readonly call: Call; readonly sources: ReadonlyMap<string, string> }) => (
  <div class="steps">
    <ol>
      {stepsOf(call).map(({ at, name, text, tone }) => (
        <li key={name} class={`step ${tone}`}>
          <span class="step-name">{name}</span>
          <span class="step-text">{text}</span>
          {at === null ? null : (
            <time class="line-time" dateTime={at}>
              {time(at)}
            </time>
          )}
        </li>
      ))}
    </ol>
    <dl class="ids">
      {call.lots.map(({ amount: part, lot_id }) => (
        <div key={lot_id}>
          <dt>From lot</dt>
          <dd>
            <code>{lot_id}</code> {sources.get(lot_id) ?? ""} {amount(part)}
          </dd>
        </div>
      ))}
      <div>
        <dt>Request</dt>
        <dd>
          <code>{call.request_id}</code>
        </dd>
      </div>
      {call.job_id === null ? null : (
        <div>
          <dt>Job</dt>
          <dd>
            <code>{call.job_id}</code>
          </dd>
        </div>
      )}
    </dl>
  </div>
)
