/** Reads the requests of the stand-in's clients, and builds its answers. */
import { status as Code, Metadata, type ServiceError } from "@grpc/grpc-js"
import type { Expected, Proposed, Recorded } from "./Log.ts"
import { shared, streams } from "./Protocol.ts"

export const empty = () => new shared.Empty()

export const nameOf = (identifier: { readonly getStreamName_asU8: () => Uint8Array } | undefined): string =>
  Buffer.from(identifier?.getStreamName_asU8() ?? new Uint8Array()).toString()

export const identifierOf = (name: string) => new shared.StreamIdentifier().setStreamName(new Uint8Array(Buffer.from(name)))

export const uuidOf = (id: string) => new shared.UUID().setString(id)

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Undefined if it is not a UUID. The server stores UUIDs as numbers, so it returns them in lower case. */
export const idOf = (uuid: InstanceType<typeof shared.UUID> | undefined): string | undefined => {
  if (uuid === undefined) return undefined
  if (uuid.hasString()) {
    const id = uuid.getString().toLowerCase()
    return UUID.test(id) ? id : undefined
  }
  const structured = uuid.getStructured()
  if (structured === undefined) return undefined
  const hex = (bits: string) => BigInt.asUintN(64, BigInt(bits)).toString(16).padStart(16, "0")
  const digits = hex(structured.getMostSignificantBits()) + hex(structured.getLeastSignificantBits())
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")
}

interface ProposedMessage {
  readonly getId: () => InstanceType<typeof shared.UUID> | undefined
  readonly getMetadataMap: () => { readonly get: (key: string) => string | undefined }
  readonly getData_asU8: () => Uint8Array
  readonly getCustomMetadata_asU8: () => Uint8Array
}

/** Undefined if the id is not a UUID or the type is empty. */
export const proposedOf = (message: ProposedMessage): Proposed | undefined => {
  const id = idOf(message.getId())
  const map = message.getMetadataMap()
  const type = map.get("type")
  if (id === undefined || !type) return undefined
  return {
    id,
    type,
    contentType: map.get("content-type") ?? "application/octet-stream",
    data: message.getData_asU8(),
    metadata: message.getCustomMetadata_asU8()
  }
}

export interface ExpectedOptions {
  readonly hasNoStream: () => boolean
  readonly hasAny: () => boolean
  readonly hasStreamExists: () => boolean
}

export const expectedOf = (options: ExpectedOptions, revision: () => string): Expected =>
  options.hasNoStream() ? "noStream" : options.hasAny() ? "any" : options.hasStreamExists() ? "streamExists" : BigInt(revision())

/** Ticks of .NET in a millisecond. */
const TICKS = 10_000n

/** The answer of a read that carries an event. */
export const readEventOf = (event: Recorded): streams.ReadResp => {
  const position = event.position.toString()
  const recorded = new streams.ReadResp.ReadEvent.RecordedEvent()
    .setId(uuidOf(event.id))
    .setStreamIdentifier(identifierOf(event.stream))
    .setStreamRevision(event.revision.toString())
    .setCommitPosition(position)
    .setPreparePosition(position)
    .setData(event.data)
    .setCustomMetadata(event.metadata)
  const map = recorded.getMetadataMap()
  map.set("type", event.type)
  map.set("content-type", event.contentType)
  map.set("created", (BigInt(event.created) * TICKS).toString())
  return new streams.ReadResp().setEvent(new streams.ReadResp.ReadEvent().setEvent(recorded).setCommitPosition(position))
}

interface FilterOptions {
  readonly hasStreamIdentifier: () => boolean
  readonly getStreamIdentifier: () => Expression | undefined
  readonly getEventType: () => Expression | undefined
  readonly hasMax: () => boolean
  readonly getMax: () => number
  readonly getCheckpointintervalmultiplier: () => number
}

interface Expression {
  readonly getRegex: () => string
  readonly getPrefixList: () => ReadonlyArray<string>
}

export interface Filter {
  readonly passes: (event: Recorded) => boolean
  /** Events searched between two checkpoints. */
  readonly interval: number
}

export const filterOf = (options: FilterOptions): Filter => {
  const byStream = options.hasStreamIdentifier()
  const expression = byStream ? options.getStreamIdentifier() : options.getEventType()
  const regex = expression?.getRegex()
  const pattern = regex ? new RegExp(regex, "u") : undefined
  const prefixes = expression?.getPrefixList() ?? []
  const matches = (text: string) => pattern?.test(text) ?? prefixes.some((prefix) => text.startsWith(prefix))
  return {
    passes: (event) => matches(byStream ? event.stream : event.type),
    interval: (options.hasMax() ? options.getMax() : 32) * Math.max(1, options.getCheckpointintervalmultiplier())
  }
}

/** A failure as the server sends it: a status and the server's exception name. */
export const failure = (code: Code, details: string, exception: Readonly<Record<string, string>> = {}): ServiceError => {
  const metadata = new Metadata()
  for (const [key, value] of Object.entries(exception)) metadata.set(key, value)
  return Object.assign(new Error(details), { code, details, metadata })
}

export const streamDeleted = (stream: string) =>
  failure(Code.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, { exception: "stream-deleted", "stream-name": stream })

export const wrongVersion = (operation: string, stream: string, expected: string, actual: bigint) =>
  failure(Code.FAILED_PRECONDITION, `${operation} failed due to WrongExpectedVersion.`, {
    exception: "wrong-expected-version",
    "stream-name": stream,
    "expected-version": expected,
    "actual-version": actual.toString()
  })

/** The largest payload of an append, in bytes. */
export const MAX_APPEND = 1_048_576

export const tooLarge = () =>
  failure(Code.INVALID_ARGUMENT, `Maximum Append Size of ${MAX_APPEND} Exceeded.`, {
    exception: "maximum-append-size-exceeded",
    "maximum-append-size": MAX_APPEND.toString()
  })

/** The answer of .NET when a handler throws. */
export const handlerThrew = () => failure(Code.UNKNOWN, "Exception was thrown by handler.")

export const notReady = () => failure(Code.UNAVAILABLE, "Server Is Not Ready")
