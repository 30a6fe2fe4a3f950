/** Recorded accounts and the states they lead to, as text that must stay the same in every release. See `test/golden/add.ts`. */
import { Account, AccountSnapshot, Decisions, Lots, Postings, toIso } from "@millrace/core"
import { type EventCodec, EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Schema } from "effect"

/** An event in the log: `data` and `metadata` are its exact text. */
export const RecordedLine = Schema.Struct({
  stream: Schema.String,
  revision: Schema.Int,
  id: Schema.String,
  type: Schema.String,
  data: Schema.String,
  metadata: Schema.String
})
export type RecordedLine = typeof RecordedLine.Type

const { codec } = Account.Account
const encodeState = Schema.encodeSync(AccountSnapshot.accountSnapshots.state)

export const readLog = (lines: string): ReadonlyArray<RecordedLine> =>
  lines
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => Schema.decodeUnknownSync(RecordedLine)(JSON.parse(line)))

/** Verifies the hash-chain link of each event and decodes it, for any stream. */
export const decodeWith = <Event extends EventCodec.Tagged>(codec: EventCodec.EventCodec<Event>, log: ReadonlyArray<RecordedLine>) => {
  const first = log[0]
  if (first === undefined || !StreamName.isStreamName(first.stream)) throw new Error("No event of a stream")
  const { stream } = first
  let hash = HashChain.start(stream)
  return log.map((line, i) => {
    if (line.stream !== stream || line.revision !== i) throw new Error(`Revision ${i} of ${stream} is missing`)
    if (!HashChain.verify(hash, { ...line, stream, position: EventStore.start }))
      throw new Error(`Revision ${i} does not fit the hash chain`)
    hash = HashChain.hashOf(line)
    return { id: StreamName.id(stream), line, at: Date.parse(HashChain.atOf(line)), event: codec.decode(line.type, line.data) }
  })
}

export const decodeLog = (log: ReadonlyArray<RecordedLine>) => decodeWith(codec, log)

/** The results of replaying a log, as text. `state` depends on the version of the fold, the others do not. */
export const replay = (
  log: ReadonlyArray<RecordedLine>
): { readonly state: string; readonly postings: string; readonly balances: string } => {
  const postings: Array<string> = []
  const balances: Array<string> = []
  let account = Account.initial
  for (const { id: accountId, line, at, event } of decodeLog(log)) {
    const entries = Postings.postings(accountId, account, event)
    if (entries.length > 0) postings.push(JSON.stringify({ revision: line.revision, type: line.type, postings: entries }))
    account = Account.Account.evolve(account, event, at)
    const { purse, status } = Decisions.asOf(account, at)
    const { debts, holds, lots } = purse
    const left = Object.fromEntries(lots.map(({ lotId, left, held, claimed }) => [lotId, [left, held, claimed]]))
    const sums = { available: Lots.available(lots, at), held: Lots.held(lots), debt: Lots.total(debts) }
    const open = [...holds].map(([reservationId]) => reservationId).sort()
    balances.push(JSON.stringify({ revision: line.revision, at: toIso(at), status, ...sums, lots: left, holds: open }))
  }
  return { state: `${JSON.stringify(sorted(encodeState(account)), null, 1)}\n`, postings: text(postings), balances: text(balances) }
}

const text = (lines: ReadonlyArray<string>): string => lines.map((line) => `${line}\n`).join("")

/** Sorts fields by name, and maps (arrays of pairs) by key, so that the text is deterministic. */
const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) {
    const all = value.map(sorted)
    return all.every(isPair) ? all.sort(([a], [b]) => (a < b ? -1 : 1)) : all
  }
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, value]) => [name, sorted(value)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1))
  )
}

const isPair = (value: unknown): value is [string, unknown] => Array.isArray(value) && value.length === 2 && typeof value[0] === "string"
