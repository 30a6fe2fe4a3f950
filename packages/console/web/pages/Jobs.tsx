/** Jobs: how far each is, its files, and how to cancel it. */
import { useEffect, useRef, useState } from "preact/hooks"
import { costOf } from "../CallLine.tsx"
import { useTool } from "../Context.ts"
import type { Contract, Operation } from "../Contract.ts"
import { useData } from "../Data.ts"
import { filePath } from "../Follow.ts"
import { useChanges } from "../Live.ts"
import { FileAt } from "../Media.tsx"
import { Badge, Card, Code, Empty, Page, Trouble, Waiting } from "../Parts.tsx"
import { hrefOf } from "../Place.ts"
import { ask, type Refused, refusedBy } from "../Requests.ts"
import { CALLS, type Call, type Calls } from "../Shapes.ts"
import { amount, minute } from "../Text.ts"

type Data = Readonly<Record<string, unknown>>

export const Jobs = () => {
  const jobs = useData<Calls>(`${CALLS}?kind=job&limit=25`)
  useChanges(() => jobs.again())
  return (
    <Page
      title="Jobs"
      lead="Work that takes long. Its credits are held until it has ended; a job that fails or is cancelled costs nothing."
    >
      {jobs.data === undefined ? (
        <Card>{jobs.refused === undefined ? <Waiting lines={4} /> : <Trouble refused={jobs.refused} again={jobs.again} />}</Card>
      ) : jobs.data.calls.length === 0 ? (
        <Card>
          <Empty>
            There is no job yet. <a href={hrefOf("try")}>Try an operation that makes one.</a>
          </Empty>
        </Card>
      ) : (
        jobs.data.calls.map((call) => <JobCard key={call.reservation_id} call={call} />)
      )}
    </Page>
  )
}

/** The operation of a method that takes the job of a call, found by the links of the operation that made it. */
const linked = (contract: Contract, maker: Operation, method: string, isFile: boolean): Operation | undefined => {
  const reads = maker.links.flatMap(({ operation }) => contract.byKey(operation) ?? [])
  const reader = reads.find(({ answers }) => answers.includes("application/json"))
  if (method === "GET") return isFile ? reads.find(({ answers }) => !answers.includes("application/json")) : reader
  return reader === undefined ? undefined : contract.find(method, reader.path)
}

const at = ({ path }: Operation, jobId: string): string => path.replace(/\{\w+\}/u, encodeURIComponent(jobId))

const TONES: Readonly<Record<string, "good" | "bad" | "busy" | "calm">> = {
  processing: "busy",
  queued: "busy",
  completed: "good",
  succeeded: "good",
  failed: "bad",
  cancelled: "calm"
}

const JobCard = ({ call }: { readonly call: Call }) => {
  const { contract } = useTool()
  const maker = contract.byKey(call.operation)
  const jobId = call.job_id ?? ""
  const reader = maker === undefined ? undefined : linked(contract, maker, "GET", false)
  const job = useData<Data>(reader === undefined ? undefined : at(reader, jobId))
  const isRunning = call.outcome === "running"
  useChanges(({ jobs, isFirst }) => (isFirst || jobs.includes(jobId)) && job.again())
  const outcome = useRef(call.outcome)
  useEffect(() => {
    if (outcome.current === call.outcome) return
    outcome.current = call.outcome
    job.again()
  }, [call.outcome])
  const status = String(job.data?.["status"] ?? (isRunning ? "processing" : call.outcome === "released" ? "cancelled" : "ended"))
  const percent = job.data?.["progress"]
  return (
    <Card title={maker?.summary ?? call.operation} aside={<Badge tone={TONES[status] ?? "calm"}>{status}</Badge>} class="job">
      <p class="hint">
        <time dateTime={call.started_at}>{minute(call.started_at)}</time>, {amount(costOf(call))} {isRunning ? "held" : "charged"},{" "}
        <code>{jobId}</code>
      </p>
      {isRunning && typeof percent === "number" ? (
        <label class="progress">
          <progress max={100} value={percent} /> {percent} %
        </label>
      ) : null}
      <JobActions call={call} data={job.data} maker={maker} onEnd={job.again} />
    </Card>
  )
}

interface ActionProps {
  readonly call: Call
  readonly data: Data | undefined
  readonly maker: Operation | undefined
  readonly onEnd: () => void
}

const JobActions = ({ call, data, maker, onEnd }: ActionProps) => {
  const { contract } = useTool()
  const [isShown, setShown] = useState(false)
  const [refused, setRefused] = useState<Refused>()
  const jobId = call.job_id ?? ""
  const canceller = maker === undefined ? undefined : linked(contract, maker, "DELETE", false)
  const file = maker === undefined || data === undefined ? undefined : filePath(contract, maker, { ...data, id: jobId })
  const cancel = () => {
    if (canceller === undefined) return
    setRefused(undefined)
    ask({ method: "DELETE", path: at(canceller, jobId) }).then(onEnd, (error: unknown) => setRefused(refusedBy(error)))
  }
  return (
    <>
      <div class="row">
        <button type="button" class="small" aria-expanded={isShown} onClick={() => setShown(!isShown)} disabled={data === undefined}>
          {isShown ? "Hide the result" : file === undefined ? "Show the result" : "Show the file"}
        </button>
        {call.outcome === "running" && canceller !== undefined ? (
          <button type="button" class="small danger" onClick={cancel}>
            Cancel
          </button>
        ) : null}
      </div>
      {refused === undefined ? null : <Trouble refused={refused} />}
      {isShown && data !== undefined ? (
        <>
          {file === undefined ? null : <FileAt path={file} />}
          <Code text={JSON.stringify(data, null, 2)} label="the job" />
        </>
      ) : null}
    </>
  )
}
