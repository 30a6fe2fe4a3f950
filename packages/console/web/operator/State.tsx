/** How the host is: whether it serves, its projections, its upstreams, the streams that it cannot read, and the head of its log. */
import { useState } from "preact/hooks"
import { Badge, Card, Code, Empty, Trouble, Waiting } from "../Parts.tsx"
import { Refused } from "../Requests.ts"
import { amount, counted, lasting, time } from "../Text.ts"
import { readAsOperator, useOperatorData } from "./Access.ts"

interface Ready {
  readonly status: "ready" | "not_ready"
  readonly reasons: ReadonlyArray<string>
  readonly warnings: ReadonlyArray<string>
  readonly refused: ReadonlyArray<string>
  readonly unsaved: ReadonlyArray<string>
  readonly recovery: { readonly leader: boolean; readonly failing: number }
  readonly jobs?: { readonly running: number }
  readonly webhooks?: { readonly leader: boolean; readonly waiting: number }
}

interface Overview {
  readonly at: string
  readonly version: string
  readonly ready: Ready
  readonly projections: ReadonlyArray<{ readonly name: string; readonly position: string; readonly trouble: string | null }>
  readonly upstreams: ReadonlyArray<{ readonly upstream: string; readonly failures: number; readonly open_for_ms: number }>
  readonly accounts: number
  readonly position: string
}

export const State = () => {
  const { again, data, refused } = useOperatorData<Overview>("")
  if (data === undefined) return refused === undefined ? <Waiting lines={6} /> : <Trouble refused={refused} again={again} />
  return (
    <>
      {refused === undefined ? null : <Trouble refused={refused} again={again} />}
      <Host overview={data} />
      <div class="grid-2">
        <Projections of={data.projections} />
        <Upstreams of={data.upstreams} />
      </div>
      <Refusals streams={data.ready.refused} />
      <Log position={data.position} />
    </>
  )
}

const Host = ({ overview: { accounts, at, ready, version } }: { readonly overview: Overview }) => (
  <Card title="This host" aside={`at ${time(at)}`}>
    <p>{ready.status === "ready" ? <Badge tone="good">Serves calls</Badge> : <Badge tone="bad">Does not serve calls</Badge>}</p>
    <Sentences of={ready.reasons} tone="trouble" />
    <Sentences of={ready.warnings} tone="notice" />
    <dl class="facts">
      <Fact name="Accounts" value={amount(accounts)} />
      <Fact name="Running jobs" value={amount(ready.jobs?.running ?? 0)} />
      <Fact name="Waiting deliveries" value={amount(ready.webhooks?.waiting ?? 0)} />
      <Fact name="Holds that cannot be ended" value={amount(ready.recovery.failing)} isBad={ready.recovery.failing > 0} />
      <Fact name="Version" value={version} />
    </dl>
  </Card>
)

const Fact = ({ isBad = false, name, value }: { readonly name: string; readonly value: string; readonly isBad?: boolean }) => (
  <div class={isBad ? "is-bad" : ""}>
    <dt>{name}</dt>
    <dd>{value}</dd>
  </div>
)

const Sentences = ({ of, tone }: { readonly of: ReadonlyArray<string>; readonly tone: "trouble" | "notice" }) =>
  of.length === 0 ? null : (
    <ul class={`${tone} sentences`}>
      {of.map((sentence) => (
        <li key={sentence}>{capital(sentence)}</li>
      ))}
    </ul>
  )

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

const Projections = ({ of }: { readonly of: Overview["projections"] }) => (
  <Card title="Projections">
    <ul class="lines">
      {of.map(({ name, position, trouble }) => (
        <li key={name} class="of-host">
          <span class="line-name">{capital(name.replace(/^the /u, ""))}</span>
          <Badge tone={trouble === null ? "good" : "bad"}>{trouble === null ? "caught up" : trouble.replace(name, "").trim()}</Badge>
          <code class="hint">{position}</code>
        </li>
      ))}
    </ul>
  </Card>
)

const Upstreams = ({ of }: { readonly of: Overview["upstreams"] }) => (
  <Card title="Upstreams">
    {of.length === 0 ? <Empty>None was called since this process started.</Empty> : null}
    <ul class="lines">
      {of.map(({ failures, open_for_ms, upstream }) => (
        <li key={upstream} class="of-host">
          <span class="line-name">{upstream}</span>
          {open_for_ms > 0 ? (
            <Badge tone="bad">{`refused for ${lasting(open_for_ms)}`}</Badge>
          ) : (
            <Badge tone={failures === 0 ? "good" : "busy"}>{failures === 0 ? "answers" : "fails"}</Badge>
          )}
          <span class="hint">{failures === 0 ? "" : `${counted(failures, "failure")} in a row`}</span>
        </li>
      ))}
    </ul>
  </Card>
)

const Refusals = ({ streams }: { readonly streams: ReadonlyArray<string> }) => (
  <Card title="Refused streams">
    {streams.length === 0 ? (
      <Empty>This host can read every stream that it was asked for.</Empty>
    ) : (
      <>
        <p>This host cannot read these. Calls that need them are answered with 503.</p>
        <ul class="lines ids">
          {streams.map((stream) => (
            <li key={stream}>
              <code>{stream}</code>
            </li>
          ))}
        </ul>
      </>
    )}
  </Card>
)

interface Head {
  readonly position: string
  readonly streams: number
  readonly events: number
  readonly digest: string
  readonly at: string | null
}

/** The head is read on demand: it costs a reading of the whole log. */
const Log = ({ position }: { readonly position: string }) => {
  const [head, setHead] = useState<Head>()
  const [refused, setRefused] = useState<Refused>()
  const [isBusy, setBusy] = useState(false)
  const look = () => {
    setBusy(true)
    setRefused(undefined)
    readAsOperator<Head>("/head")
      .then(setHead, (error: unknown) => setRefused(error instanceof Refused ? error : new Refused("unknown", String(error), 0)))
      .finally(() => setBusy(false))
  }
  return (
    <Card title="The log" aside={<code>{position || "empty"}</code>}>
      <p class="lead">
        A head is a digest of the whole log. Keep it where nobody who can write the log can change it: an audit shows by it whether the log
        was rewritten since.
      </p>
      <div>
        <button type="button" onClick={look} disabled={isBusy}>
          {isBusy ? "Reading the log" : "Read the head"}
        </button>
      </div>
      {refused === undefined ? null : <Trouble refused={refused} />}
      {head === undefined ? null : (
        <>
          <p role="status">
            {counted(head.events, "event")} in {counted(head.streams, "stream")} up to <code>{head.position}</code>, with the digest{" "}
            <code class="breaks">{head.digest}</code>
          </p>
          <Code text={JSON.stringify(head)} label="the head" />
        </>
      )}
    </Card>
  )
}
