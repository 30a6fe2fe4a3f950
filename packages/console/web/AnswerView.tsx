/** An answer: what it cost, its data or its file, and its headers. */
import { useState } from "preact/hooks"
import { FileAt, Media } from "./Media.tsx"
import { Badge, Card, Code, Tabs } from "./Parts.tsx"
import type { Answer } from "./Requests.ts"
import { amount, lasting } from "./Text.ts"

interface AnswerProps {
  readonly answer: Answer
  /** The path of the file that it leads to. */
  readonly file: string | undefined
  readonly job: "running" | "ended" | "failed" | undefined
}

const TABS = [
  ["answer", "Answer"],
  ["headers", "Headers"]
] as const

export const AnswerView = ({ answer, file, job }: AnswerProps) => {
  const [tab, setTab] = useState<(typeof TABS)[number][0]>("answer")
  const { headers, json, ok, status, took } = answer
  return (
    <Card
      title="Answer"
      aside={
        <>
          <Badge tone={ok ? "good" : "bad"}>{status}</Badge> <span class="hint">{lasting(took)}</span>
        </>
      }
    >
      <Costs headers={headers} />
      {job === "running" ? (
        <p class="notice" role="status">
          The job runs. Its credits are held until it has ended.
        </p>
      ) : null}
      {job === "failed" ? <p class="notice">The job failed. It costs nothing.</p> : null}
      {file === undefined ? null : <FileAt path={file} />}
      {answer.file === undefined ? null : <Media file={answer.file} name="answer" />}
      <Tabs label="Parts of the answer" names={TABS} chosen={tab} onChoose={setTab}>
        {tab === "headers" ? (
          <HeaderTable headers={headers} />
        ) : json === undefined ? (
          <p class="hint">{answer.file === undefined ? "The answer has no body." : "The answer is a file."}</p>
        ) : (
          <Code text={JSON.stringify(json, null, 2)} label="the answer" />
        )}
      </Tabs>
    </Card>
  )
}

const Costs = ({ headers }: Pick<Answer, "headers">) => {
  const charged = headers.get("x-credits-charged")
  const balance = headers.get("x-credits-balance")
  const trial = headers.get("x-trial-remaining")
  if (charged === null && balance === null && trial === null) return null
  return (
    <dl class="facts" data-testid="costs">
      {charged === null ? null : (
        <div>
          <dt>Charged</dt>
          <dd data-testid="charged">{amount(Number(charged))}</dd>
        </div>
      )}
      {balance === null ? null : (
        <div>
          <dt>Balance after it</dt>
          <dd data-testid="balance-after">{amount(Number(balance))}</dd>
        </div>
      )}
      {trial === null ? null : (
        <div>
          <dt>Trial calls left</dt>
          <dd>{trial}</dd>
        </div>
      )}
    </dl>
  )
}

const HeaderTable = ({ headers }: Pick<Answer, "headers">) => (
  <table class="pairs">
    <thead class="unseen">
      <tr>
        <th scope="col">Header</th>
        <th scope="col">Value</th>
      </tr>
    </thead>
    <tbody>
      {[...headers].map(([name, value]) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          <td>{value}</td>
        </tr>
      ))}
    </tbody>
  </table>
)
