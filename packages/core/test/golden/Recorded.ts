/** Recorded streams: text that every release reads in the same way. See `test/golden/add.ts` and `test/golden/addStream.ts`. */
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

export type RecordedLog = ReadonlyArray<RecordedLine>

export const readLog = (lines: string): RecordedLog =>
  lines
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => Schema.decodeUnknownSync(RecordedLine)(JSON.parse(line)))

/** The stream of a log. Throws if it has no event, or its name is none. */
export const streamOf = ([first]: RecordedLog): StreamName.StreamName => {
  if (first === undefined || !StreamName.isStreamName(first.stream)) throw new Error("No event of a stream")
  return first.stream
}

/** Verifies the hash-chain link of each event and decodes it, for any stream. */
export const decodeWith = <Event extends EventCodec.Tagged>(codec: EventCodec.EventCodec<Event>, log: RecordedLog) => {
  const stream = streamOf(log)
  let hash = HashChain.start(stream)
  return log.map((line, i) => {
    if (line.stream !== stream || line.revision !== i) throw new Error(`Revision ${i} of ${stream} is missing`)
    if (!HashChain.verify(hash, { ...line, stream, position: EventStore.start }))
      throw new Error(`Revision ${i} does not fit the hash chain`)
    hash = HashChain.hashOf(line)
    return { id: StreamName.id(stream), line, at: Date.parse(HashChain.atOf(line)), event: codec.decode(line.type, line.data) }
  })
}

/** The fields that occur in the events of logs, such as `JobAccepted.quantity`, and their types. */
export const fieldsIn = (log: RecordedLog): ReadonlySet<string> =>
  new Set(log.flatMap(({ data, type }) => [type, ...Object.keys(JSON.parse(data)).map((field) => `${type}.${field}`)]))

/** The fields that the events of a union may have, written as {@link fieldsIn} does. */
export const fieldsOf = (cases: Readonly<Record<string, { readonly fields: object }>>): ReadonlyArray<string> =>
  Object.entries(cases).flatMap(([type, { fields }]) => [
    type,
    ...Object.keys(fields).flatMap((field) => (field === "_tag" ? [] : [`${type}.${field}`]))
  ])
