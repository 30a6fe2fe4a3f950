/** Holds whose time is over, and that neither their calls nor recovery have ended. */
import { Card, Empty, Trouble, Waiting } from "../Parts.tsx"
import { counted, credits, lasting } from "../Text.ts"
import { useOperatorData } from "./Access.ts"

interface Overdue {
  readonly total: number
  readonly holds: ReadonlyArray<{
    readonly reservation_id: string
    readonly account_id: string
    readonly operation: string
    readonly request_id: string | null
    readonly amount: number | null
    readonly overdue_for: number
  }>
}

export const Holds = () => {
  const { again, data, refused } = useOperatorData<Overdue>("/holds")
  return (
    <Card>
      <p class="lead">
        Recovery ends a hold within a minute after it is due. One that stays here keeps credits from its account: the log of the server says
        why.
      </p>
      {refused === undefined ? null : <Trouble refused={refused} again={again} />}
      {data === undefined && refused === undefined ? <Waiting /> : null}
      {data?.total === 0 ? <Empty>No hold is overdue.</Empty> : null}
      <ul class="lines">
        {data?.holds.map(({ account_id, amount, operation, overdue_for, request_id, reservation_id }) => (
          <li key={reservation_id} class="operated">
            <div class="operated-name">
              <strong>{operation}</strong>
              <span>{amount === null ? "a call of a trial" : credits(amount)}</span>
            </div>
            <dl class="figures">
              <div>
                <dt>Overdue for</dt>
                <dd>{lasting(overdue_for * 1_000)}</dd>
              </div>
            </dl>
            <p class="hint operated-note">
              Request <code class="breaks">{request_id ?? "unknown"}</code> of <code class="breaks">{account_id}</code>
            </p>
          </li>
        ))}
      </ul>
      {data === undefined || data.total <= data.holds.length ? null : (
        <p class="hint">{counted(data.total - data.holds.length, "more hold")} overdue.</p>
      )}
    </Card>
  )
}
