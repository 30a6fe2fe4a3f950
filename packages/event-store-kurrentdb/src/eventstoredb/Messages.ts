/** The messages of the protocol that this store sends, and what it reads from those that come back. */
import persistent from "@eventstore/db-client/generated/persistent_pb.js"
import shared from "@eventstore/db-client/generated/shared_pb.js"
import streams from "@eventstore/db-client/generated/streams_pb.js"
import type { EventStore } from "@millrace/event-sourcing"
import type { Appended, Direction, Filter, GroupSettings, Proposed, Recorded } from "../Driver.ts"
import type { LogPosition } from "../Position.ts"

const empty = () => new shared.Empty()

/** A copy that is an array of bytes and nothing more: the messages take no other. */
const bytesOf = (text: string) => new Uint8Array(Buffer.from(text))

const identifierOf = (stream: string) => new shared.StreamIdentifier().setStreamName(bytesOf(stream))

// appending

export const appendHeader = (stream: string, expected: EventStore.ExpectedRevision): streams.AppendReq => {
  const options = new streams.AppendReq.Options().setStreamIdentifier(identifierOf(stream))
  if (expected === "noStream") options.setNoStream(empty())
  else options.setRevision(expected.toString())
  return new streams.AppendReq().setOptions(options)
}

export const appendEvent = ({ id, type, data, metadata }: Proposed): streams.AppendReq => {
  const message = new streams.AppendReq.ProposedMessage()
    .setId(new shared.UUID().setString(id))
    .setData(bytesOf(data))
    .setCustomMetadata(bytesOf(metadata))
  message.getMetadataMap().set("type", type)
  message.getMetadataMap().set("content-type", "application/json")
  return new streams.AppendReq().setProposedMessage(message)
}

/** The last event of an append, or where the stream ended instead; undefined for an answer that says neither. */
export const appendedOf = (response: streams.AppendResp): Appended | { readonly actual: EventStore.ExpectedRevision } | undefined => {
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

export const readStream = (
  stream: string,
  direction: Direction,
  from: EventStore.Revision | undefined,
  count: number,
  resolveLinks: boolean
): streams.ReadReq => {
  const of = new streams.ReadReq.Options.StreamOptions().setStreamIdentifier(identifierOf(stream))
  if (from !== undefined) of.setRevision(from.toString())
  else if (direction === "backwards") of.setEnd(empty())
  else of.setStart(empty())
  const options = reading().setStream(of).setCount(count.toString()).setResolveLinks(resolveLinks)
  if (direction === "backwards") options.setReadDirection(BACKWARDS)
  return new streams.ReadReq().setOptions(options)
}

export const readLog = (direction: Direction, from: LogPosition | undefined, count: number): streams.ReadReq => {
  const options = reading().setAll(placed(from, direction)).setCount(count.toString())
  if (direction === "backwards") options.setReadDirection(BACKWARDS)
  return new streams.ReadReq().setOptions(options)
}

/** Events that the server looks at before it tells where it is: the least that it takes, times the multiplier. */
const WINDOW = 32
const CHECKPOINT_EVERY = 32

export const follow = (after: LogPosition | undefined, filter: Filter): streams.ReadReq => {
  const expression = new streams.ReadReq.Options.FilterOptions.Expression()
  if ("regex" in filter) expression.setRegex(filter.regex)
  else expression.setPrefixList([...filter.prefixes])
  const filtering = new streams.ReadReq.Options.FilterOptions().setMax(WINDOW).setCheckpointintervalmultiplier(CHECKPOINT_EVERY)
  if (filter.by === "stream") filtering.setStreamIdentifier(expression)
  else filtering.setEventType(expression)
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

/** Of the server's clock, in a millisecond. */
const TICKS = 10_000

/** What servers say that do not know it. */
const UNKNOWN = 0xffff_ffff_ffff_ffffn

export const positionOf = (message: Positioned): LogPosition | undefined => {
  const commit = BigInt(message.getCommitPosition())
  return commit === UNKNOWN ? undefined : { commit, prepare: BigInt(message.getPreparePosition()) }
}

interface RecordedMessage extends Positioned {
  readonly getId: () => shared.UUID | undefined
  readonly getStreamIdentifier: () => shared.StreamIdentifier | undefined
  readonly getStreamRevision: () => string
  readonly getMetadataMap: () => { readonly get: (key: string) => string | undefined }
  readonly getData_asU8: () => Uint8Array
  readonly getCustomMetadata_asU8: () => Uint8Array
}

interface ReadMessage {
  readonly getEvent: () => RecordedMessage | undefined
  readonly hasCommitPosition: () => boolean
  readonly getCommitPosition: () => string
}

/** Undefined for a link to an event that is gone. */
export const recordedOf = (read: ReadMessage): Recorded | undefined => {
  const event = read.getEvent()
  if (event === undefined) return undefined
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

const committedOf = (read: ReadMessage): LogPosition | undefined => {
  if (!read.hasCommitPosition()) return undefined
  const commit = BigInt(read.getCommitPosition())
  return { commit, prepare: commit }
}

// persistent subscriptions to the log

/** What is acknowledged is saved after so many milliseconds, or so many events. */
const CHECKPOINT_AFTER = 2_000
const CHECKPOINT_AT_LEAST = 10
const CHECKPOINT_AT_MOST = 1_000
/** Events that the server keeps ready for consumers. */
const BUFFER = 500
const READ_AT_ONCE = 20

export const createGroup = (group: string, { start, filter, maxRetries, messageTimeout }: GroupSettings): persistent.CreateReq => {
  const expression = new persistent.CreateReq.AllOptions.FilterOptions.Expression()
  if ("regex" in filter) expression.setRegex(filter.regex)
  else expression.setPrefixList([...filter.prefixes])
  const filtering = new persistent.CreateReq.AllOptions.FilterOptions().setMax(WINDOW).setCheckpointintervalmultiplier(CHECKPOINT_EVERY)
  if (filter.by === "stream") filtering.setStreamIdentifier(expression)
  else filtering.setEventType(expression)
  const all = new persistent.CreateReq.AllOptions().setFilter(filtering)
  if (start === "start") all.setStart(empty())
  else if (start === "end") all.setEnd(empty())
  else
    all.setPosition(
      new persistent.CreateReq.Position().setCommitPosition(start.commit.toString()).setPreparePosition(start.prepare.toString())
    )
  const settings = new persistent.CreateReq.Settings()
    .setMaxRetryCount(maxRetries)
    .setMessageTimeoutMs(messageTimeout)
    .setCheckpointAfterMs(CHECKPOINT_AFTER)
    .setMinCheckpointCount(CHECKPOINT_AT_LEAST)
    .setMaxCheckpointCount(CHECKPOINT_AT_MOST)
    .setLiveBufferSize(BUFFER)
    .setHistoryBufferSize(BUFFER)
    .setReadBatchSize(READ_AT_ONCE)
    .setNamedConsumerStrategy(persistent.CreateReq.ConsumerStrategy.ROUNDROBIN)
  return new persistent.CreateReq().setOptions(new persistent.CreateReq.Options().setAll(all).setGroupName(group).setSettings(settings))
}

export const consume = (group: string, atOnce: number): persistent.ReadReq =>
  new persistent.ReadReq().setOptions(
    new persistent.ReadReq.Options()
      .setAll(empty())
      .setGroupName(group)
      .setBufferSize(atOnce)
      .setUuidOption(new persistent.ReadReq.Options.UUIDOption().setString(empty()))
  )

const { PARK, RETRY } = persistent.ReadReq.Nack.Action

export const settle = (id: string, how: "ack" | "retry" | "park", reason: string): persistent.ReadReq => {
  const ids = [new shared.UUID().setString(id)]
  if (how === "ack") return new persistent.ReadReq().setAck(new persistent.ReadReq.Ack().setIdsList(ids))
  const nack = new persistent.ReadReq.Nack()
    .setIdsList(ids)
    .setAction(how === "park" ? PARK : RETRY)
    .setReason(reason)
  return new persistent.ReadReq().setNack(nack)
}

export const groupInfo = (group: string): persistent.GetInfoReq =>
  new persistent.GetInfoReq().setOptions(new persistent.GetInfoReq.Options().setAll(empty()).setGroupName(group))

export const replayParked = (group: string): persistent.ReplayParkedReq =>
  new persistent.ReplayParkedReq().setOptions(
    new persistent.ReplayParkedReq.Options().setAll(empty()).setGroupName(group).setNoLimit(empty())
  )
