/** The account at a glance: what it has, how that changed, what it went for, and what happened last. It changes while one looks. */
import { useEffect, useRef, useState } from "preact/hooks"
import { CallLine } from "../CallLine.tsx"
import { useOffered, useTool } from "../Context.ts"
import { useData } from "../Data.ts"
import { useChanges } from "../Live.ts"
import { Card, Empty, Page, Trouble, Waiting } from "../Parts.tsx"
import { hrefOf } from "../Place.ts"
import { Bars, Plot } from "../Plot.tsx"
import { ACTIVITY, type Activity, BILLING, type Billing, CALLS, type Calls, LIMITS, type Limits, type Lot } from "../Shapes.ts"
import { amount, away, counted, credits, day, dayOfYear } from "../Text.ts"

/** The pause before data that changed is read again, milliseconds: a burst of calls is read once. */
const SETTLE = 400
/** The least between two such readings, milliseconds: they count against the rate limit of the account that is busy just now. */
const APART = 5_000

export const Overview = () => {
  const { live } = useTool()
  const billing = useData<Billing>(BILLING)
  const activity = useData<Activity>(useOffered("GET", ACTIVITY) ? ACTIVITY : undefined)
  const calls = useData<Calls>(useOffered("GET", CALLS) ? `${CALLS}?limit=8` : undefined)
  const limits = useData<Limits>(LIMITS)
  const [now, setNow] = useState<{ readonly balance: number; readonly held: number; readonly debt: number }>()
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const readAt = useRef(-APART)
  useChanges((change) => {
    setNow(change)
    if (!change.account && !change.isFirst) return
    if (timer.current !== undefined) return
    const pause = Math.max(SETTLE, readAt.current + APART - performance.now())
    timer.current = setTimeout(() => {
      timer.current = undefined
      readAt.current = performance.now()
      for (const { again } of [billing, activity, calls, limits]) again()
    }, pause)
  })
  useEffect(() => () => clearTimeout(timer.current), [])
  const { data } = billing
  return (
    <Page title="Overview">
      {billing.refused === undefined || data !== undefined ? null : <Trouble refused={billing.refused} again={billing.again} />}
      <div class="grid-2">
        <div class="flow">
          <Balance data={data} now={live === "live" ? now : undefined} trial={limits.data?.trial} />
          {activity.data === undefined && activity.refused !== undefined ? null : <OverTime activity={activity.data} />}
        </div>
        <div class="flow">
          <Card title="Credits by lot" class="lots-card">
            {data === undefined ? <Waiting /> : <Lots lots={data.lots} />}
          </Card>
          <Card title="Use by operation" aside={data === undefined ? " " : month(data.usage.month)}>
            {data === undefined ? <Waiting /> : <Use usage={data.usage} />}
          </Card>
        </div>
      </div>
      <Card title="What happened last" aside={<a href={hrefOf("calls")}>All calls</a>}>
        {calls.data === undefined ? (
          calls.refused === undefined ? (
            <Waiting lines={5} />
          ) : (
            <Trouble refused={calls.refused} again={calls.again} />
          )
        ) : calls.data.calls.length === 0 ? (
          <Empty>
            No call was made yet. <a href={hrefOf("try")}>Try one.</a>
          </Empty>
        ) : (
          <ul class="lines">
            {calls.data.calls.map((call) => (
              <CallLine key={call.reservation_id} as="li" call={call} />
            ))}
          </ul>
        )}
      </Card>
    </Page>
  )
}

const month = (text: string): string =>
  new Date(`${text}-15T00:00:00Z`).toLocaleDateString("en", { month: "long", year: "numeric", timeZone: "UTC" })

interface BalanceProps {
  readonly data: Billing | undefined
  /** Newer than `data`, where the server said so. */
  readonly now: { readonly balance: number; readonly held: number; readonly debt: number } | undefined
  readonly trial: Limits["trial"]
}

const Balance = ({ data, now = data, trial }: BalanceProps) => (
  <Card class="balance-card" title="Balance">
    <p class="balance">
      <strong data-testid="balance" aria-live="polite">
        {now === undefined ? " " : amount(now.balance)}
      </strong>
      <span>credits</span>
    </p>
    <dl class="facts">
      <div>
        <dt>Held</dt>
        <dd data-testid="held">{now === undefined ? " " : amount(now.held)}</dd>
      </div>
      <div>
        <dt>Used this month</dt>
        <dd>{data === undefined ? " " : amount(data.usage.credits)}</dd>
      </div>
      <div>
        <dt>Calls this month</dt>
        <dd>{data === undefined ? " " : amount(data.usage.calls)}</dd>
      </div>
      {now === undefined || now.debt === 0 ? null : (
        <div class="is-bad">
          <dt>Owed</dt>
          <dd>{amount(now.debt)}</dd>
        </div>
      )}
    </dl>
    {trial === undefined ? null : (
      <p class="trial">
        <meter min={0} max={trial.total} value={trial.remaining} aria-label="Trial calls that are left" /> {trial.remaining} of{" "}
        {counted(trial.total, "trial call")} left. Verify your address for 200 credits.
      </p>
    )}
  </Card>
)

const SOURCES: Readonly<Record<string, string>> = {
  signup: "Sign-up",
  topup: "Top-up",
  subscription: "Subscription",
  promotion: "Promotion",
  adjustment: "Returned"
}

const Lots = ({ lots }: { readonly lots: ReadonlyArray<Lot> }) => {
  const now = Date.now()
  const some = lots.filter(({ remaining }) => remaining > 0)
  if (some.length === 0) return <Empty>There are no credits left.</Empty>
  return (
    <Bars
      label="Lots in the order in which they are spent"
      bars={some.map(({ expires_at, lot_id, remaining, source }) => ({
        id: lot_id,
        name: SOURCES[source] ?? source,
        value: remaining,
        text: amount(remaining),
        note: expires_at === null ? "never expires" : `expires ${away(expires_at, now)}, ${dayOfYear(expires_at)}`
      }))}
    />
  )
}

const OverTime = ({ activity }: { readonly activity: Activity | undefined }) => {
  const days = activity?.days ?? []
  const first = days[0]
  const last = days.at(-1)
  const spent = days.reduce((sum, { charged }) => sum + charged, 0)
  return (
    <Card title="Credits over time" aside={first === undefined ? " " : `${day(first.date)} to today`}>
      {activity === undefined || last === undefined || first === undefined ? (
        <div class="plot-place">
          <Waiting />
        </div>
      ) : (
        <Plot
          shape="area"
          title="Credits over time"
          description={`From ${amount(first.balance)} at the end of ${day(first.date)} to ${credits(last.balance)} now; ${amount(spent)} were spent.`}
          head="Day"
          unit="Credits"
          points={days.map(({ balance, date }) => ({ label: day(date), value: balance }))}
        />
      )}
    </Card>
  )
}

const Use = ({ usage: { operations } }: Pick<Billing, "usage">) => {
  const used = operations.filter(({ calls }) => calls > 0).toSorted((a, b) => b.credits - a.credits)
  if (used.length === 0) return <Empty>No priced call was made this month.</Empty>
  return (
    <Bars
      label="Operations by the credits they took this month"
      bars={used.slice(0, 8).map(({ calls, credits, operation, units }) => ({
        id: operation,
        name: operation,
        value: credits,
        text: amount(credits),
        note: calls === units ? counted(calls, "call") : `${counted(calls, "call")}, ${counted(units, "unit")}`
      }))}
    />
  )
}
