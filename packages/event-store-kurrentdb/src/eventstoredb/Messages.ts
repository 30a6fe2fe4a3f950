/** Builds the protocol messages that the store sends, and reads those that it receives. */
import shared from "@eventstore/db-client/generated/shared_pb.js"
import streams from "@eventstore/db-client/generated/streams_pb.js"
import type { EventStore } from "@millrace/event-sourcing"
import emptyMessage from "google-protobuf/google/protobuf/empty_pb.js"
import timestampMessage from "google-protobuf/google/protobuf/timestamp_pb.js"
import type { Appended, Direction, Filter, Message, Recorded } from "../Driver.ts"
import type { LogPosition } from "../Position.ts"

const { Empty } = emptyMessage
const { Timestamp } = timestampMessage

const empty = () => new shared.Empty()

/** Encodes to a plain `Uint8Array`, because the messages do not accept a `Buffer`. */
const bytes = new TextEncoder()

const identifierOf = (stream: string) => new shared.StreamIdentifier().setStreamName(bytes.encode(stream))

// appending

export interface Append {
  readonly stream: string
  readonly expected: EventStore.ExpectedRevision
  readonly events: ReadonlyArray<EventStore.EventData>
}

/** The messages of a unary append. */
export const append = ({ stream, expected, events }: Append): ReadonlyArray<streams.AppendReq> => [
  appendHeader(stream, expected),
  ...events.map(appendEvent)
]

/**
 * The server compares this with its own clock, which may differ from ours, so it is the end of time, as in the libraries that wait without
 * a limit: our own deadline counts.
 */
const NEVER_LATE = new Timestamp().setSeconds(Date.parse("9999-12-31T23:59:59Z") / 1_000)

/** The message of an append by the batch call. `id`: a UUID, by which its answer is known. */
export const batchAppend = (id: string, { stream, expected, events }: Append): streams.BatchAppendReq => {
  const options = new streams.BatchAppendReq.Options().setStreamIdentifier(identifierOf(stream)).setDeadline(NEVER_LATE)
  if (expected === "noStream") options.setNoStream(new Empty())
  else options.setStreamPosition(expected.toString())
  return new streams.BatchAppendReq()
    .setCorrelationId(new shared.UUID().setString(id))
    .setOptions(options)
    .setProposedMessagesList(events.map((event) => proposed(new streams.BatchAppendReq.ProposedMessage(), event)))
    .setIsFinal(true)
}

const appendHeader = (stream: string, expected: EventStore.ExpectedRevision): streams.AppendReq => {
  const options = new streams.AppendReq.Options().setStreamIdentifier(identifierOf(stream))
  if (expected === "noStream") options.setNoStream(empty())
  else options.setRevision(expected.toString())
  return new streams.AppendReq().setOptions(options)
}

const appendEvent = (event: EventStore.EventData): streams.AppendReq =>
  new streams.AppendReq().setProposedMessage(proposed(new streams.AppendReq.ProposedMessage(), event))

const proposed = <Message extends streams.AppendReq.ProposedMessage | streams.BatchAppendReq.ProposedMessage>(
  message: Message,
  { id, type, data, metadata }: EventStore.EventData
): Message => {
  message.setId(new shared.UUID().setString(id))
  message.setData(bytes.encode(data))
  message.setCustomMetadata(bytes.encode(metadata))
  message.getMetadataMap().set("type", type)
  message.getMetadataMap().set("content-type", "application/json")
  return message
}

/** The last event of an append, or the stream's actual end if it differs from the expected one; undefined for an empty answer. */
type Outcome = Appended | { readonly actual: EventStore.ExpectedRevision } | undefined

/** The id of the append that an answer of the batch call belongs to. Servers may send it as two numbers. */
export const correlationOf = (response: streams.BatchAppendResp): string => {
  const id = response.getCorrelationId()
  const structured = id?.getStructured()
  if (structured === undefined) return id?.getString() ?? ""
  const hex = (bits: string) => BigInt.asUintN(64, BigInt(bits)).toString(16).padStart(16, "0")
  const digits = hex(structured.getMostSignificantBits()) + hex(structured.getLeastSignificantBits())
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/u, "$1-$2-$3-$4-$5")
}

const WRONG_VERSION = "event_store.client.WrongExpectedVersion"

/** The outcome of an append by the batch call. A refusal of another kind is its error. */
export const batchAppendedOf = (response: streams.BatchAppendResp): Outcome | { readonly error: BatchError } => {
  const error = response.getError()
  const details = error?.getDetails()
  const wrong = details?.unpack(shared.WrongExpectedVersion.deserializeBinary, WRONG_VERSION) ?? undefined
  if (wrong !== undefined) return { actual: wrong.hasCurrentStreamRevision() ? Number(wrong.getCurrentStreamRevision()) : "noStream" }
  if (error !== undefined) return { error: { type: details?.getTypeName() ?? "", message: error.getMessage() } }
  const success = response.getSuccess()
  if (success === undefined) return undefined
  const position = success.getPosition()
  return { revision: Number(success.getCurrentRevision()), position: position && positionOf(position) }
}

/** `type`: the name of the message that describes the error. */
export interface BatchError {
  readonly type: string
  readonly message: string
}

/** The outcome of a unary append. */
export const appendedOf = (response: streams.AppendResp): Outcome => {
  const wrong = response.getWrongExpectedVersion()
  if (wrong !== undefined) return { actual: wrong.hasCurrentRevision() ? Number(wrong.getCurrentRevision()) : "noStream" }
  const success = response.getSuccess()
  if (success === undefined) return undefined
  const position = success.getPosition()
  return { revision: Number(success.getCurrentRevision()), position: position && positionOf(position) }
}

// reading

const BACKWARDS = 1

const reading = (): streams.ReadReq.Options =>
  new streams.ReadReq.Options().setUuidOption(new streams.ReadReq.Options.UUIDOption().setString(empty())).setNoFilter(empty())

export const readStream = (stream: string, direction: Direction, from: EventStore.Revision | undefined, count: number): streams.ReadReq => {
  const of = new streams.ReadReq.Options.StreamOptions().setStreamIdentifier(identifierOf(stream))
  if (from !== undefined) of.setRevision(from.toString())
  else if (direction === "backwards") of.setEnd(empty())
  else of.setStart(empty())
  const options = reading().setStream(of).setCount(count.toString())
  if (direction === "backwards") options.setReadDirection(BACKWARDS)
  return new streams.ReadReq().setOptions(options)
}

export const readLog = (direction: Direction, from: LogPosition | undefined, count: number): streams.ReadReq => {
  const options = reading().setAll(placed(from, direction)).setCount(count.toString())
  if (direction === "backwards") options.setReadDirection(BACKWARDS)
  return new streams.ReadReq().setOptions(options)
}

/** Events that the server looks at before it sends a checkpoint: the smallest window it accepts, times the multiplier. */
const WINDOW = 32
const CHECKPOINT_EVERY = 32

export const follow = (after: LogPosition | undefined, filter: Filter): streams.ReadReq => {
  const expression = new streams.ReadReq.Options.FilterOptions.Expression()
  const filtering = new streams.ReadReq.Options.FilterOptions().setMax(WINDOW).setCheckpointintervalmultiplier(CHECKPOINT_EVERY)
  if (filter.by === "stream") filtering.setStreamIdentifier(expression.setPrefixList([...filter.prefixes]))
  else filtering.setEventType(expression.setRegex(filter.regex))
  const options = reading()
    .setAll(placed(after, "forwards"))
    .setSubscription(new streams.ReadReq.Options.SubscriptionOptions())
    .setFilter(filtering)
  return new streams.ReadReq().setOptions(options)
}

const placed = (from: LogPosition | undefined, direction: Direction): streams.ReadReq.Options.AllOptions => {
  const all = new streams.ReadReq.Options.AllOptions()
  if (from === undefined) return direction === "backwards" ? all.setEnd(empty()) : all.setStart(empty())
  const { commit, prepare } = from
  return all.setPosition(new streams.ReadReq.Options.Position().setCommitPosition(commit.toString()).setPreparePosition(prepare.toString()))
}

interface Positioned {
  readonly getCommitPosition: () => string
  readonly getPreparePosition: () => string
}

/** Ticks of the server's clock in a millisecond. */
const TICKS = 10_000

/** Servers send this value for an unknown position. */
const UNKNOWN = 0xffff_ffff_ffff_ffffn

export const positionOf = (message: Positioned): LogPosition | undefined => {
  const commit = BigInt(message.getCommitPosition())
  return commit === UNKNOWN ? undefined : { commit, prepare: BigInt(message.getPreparePosition()) }
}

/** A message of a subscription; undefined for messages that the store does not use. */
export const messageOf = (response: streams.ReadResp): Message | undefined => {
  const event = recordedOf(response)
  if (event !== undefined) return { _tag: "event", event }
  if (response.hasConfirmation()) return { _tag: "confirmed" }
  const checkpoint = response.getCheckpoint()
  const position = checkpoint && positionOf(checkpoint)
  return position && { _tag: "checkpoint", position }
}

/** The event of an answer; undefined for other answers. */
export const recordedOf = (response: streams.ReadResp): Recorded | undefined => {
  const read = response.getEvent()
  const event = read?.getEvent()
  if (read === undefined || event === undefined) return undefined
  const map = event.getMetadataMap()
  return {
    id: event.getId()?.getString() ?? "",
    stream: Buffer.from(event.getStreamIdentifier()?.getStreamName_asU8() ?? new Uint8Array()).toString(),
    revision: Number(event.getStreamRevision()),
    position: positionOf(event) ?? committedOf(read),
    created: Number(map.get("created")) / TICKS,
    type: map.get("type") ?? "",
    contentType: map.get("content-type") ?? "",
    data: event.getData_asU8(),
    metadata: event.getCustomMetadata_asU8()
  }
}

const committedOf = (read: streams.ReadResp.ReadEvent): LogPosition | undefined => {
  if (!read.hasCommitPosition()) return undefined
  const commit = BigInt(read.getCommitPosition())
  return { commit, prepare: commit }
}
