/** Jobs that wait and run, by operation, of all accounts and at all hosts. */
import { Card, Empty, Trouble, Waiting } from "../Parts.tsx"
import { amount, away } from "../Text.ts"
import { useOperatorData } from "./Access.ts"

interface Queues {
  readonly jobs: ReadonlyArray<{
    readonly operation: string
    readonly waiting: number
    readonly running: number
    readonly oldest: { readonly job_id: string; readonly account_id: string; readonly accepted_at: string } | null
  }>
}

export const Jobs = () => {
  const { again, data, refused } = useOperatorData<Queues>("/jobs")
  return (
    <Card>
      {refused === undefined ? null : <Trouble refused={refused} again={again} />}
      {data === undefined && refused === undefined ? <Waiting /> : null}
      {data?.jobs.length === 0 ? <Empty>No job waits or runs.</Empty> : null}
      <ul class="lines">
        {data?.jobs.map(({ oldest, operation, running, waiting }) => (
          <li key={operation} class="operated">
            <div class="operated-name">
              <strong>{operation}</strong>
            </div>
            <dl class="figures">
              <div>
                <dt>Waiting</dt>
                <dd>{amount(waiting)}</dd>
              </div>
              <div>
                <dt>Running</dt>
                <dd>{amount(running)}</dd>
              </div>
              {oldest === null ? null : (
                <div>
                  <dt>Oldest accepted</dt>
                  <dd>
                    <time dateTime={oldest.accepted_at}>{away(oldest.accepted_at, Date.now())}</time>
                  </dd>
                </div>
              )}
            </dl>
            {oldest === null ? null : (
              <p class="hint operated-note">
                <code class="breaks">{oldest.job_id}</code> of <code class="breaks">{oldest.account_id}</code>
              </p>
            )}
          </li>
        ))}
      </ul>
    </Card>
  )
}
