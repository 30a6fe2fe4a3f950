/**
 * The hash chain of a stream. The metadata of each event begins with the SHA-256 of the event and the previous hash, then the time of
 * the decision. So a changed, removed or reordered event is detected. The first link hashes the name of the stream.
 *
 * `{"hash":"<43 characters of base64url>","at":"2026-01-31T00:00:00.000Z","$correlationId":"..."}`
 *
 * The hash covers these parts, one on each line: previous hash, stream, revision, id, type, at, data, metadata without hash and at.
 */
import { hash as digest } from "node:crypto"
import type { EventData, RecordedEvent } from "./EventStore.ts"
import { fromIso } from "./Iso.ts"
import type { StreamName } from "./StreamName.ts"

/** 43 characters of base64url. */
export type Hash = string

const OPEN = `{"hash":"`
const HASH_END = OPEN.length + 43
const AT = `","at":"`
const AT_START = HASH_END + AT.length
const AT_END = AT_START + 24

export const start = (stream: StreamName): Hash => digest("sha256", stream, "base64url")

type Content = Pick<EventData, "id" | "type" | "data">

// JSON text, ids, types and stream names contain no line feed, so the parts stay separate
const linkOf = (previous: Hash, stream: StreamName, revision: number, { id, type, data }: Content, at: string, rest: string): Hash =>
  digest("sha256", `${previous}\n${stream}\n${revision}\n${id}\n${type}\n${at}\n${data}\n${rest}`, "base64url")

/** The metadata of an event, and the hash in it as a text of its own: a part of the metadata would keep all of it in memory. */
export interface Link {
  readonly metadata: string
  readonly hash: Hash
}

/**
 * Links an event to the one before it. `at`: ISO 8601, 24 characters. `metadata`: the JSON text of an object without the keys `hash` and `at`.
 */
export const link = (previous: Hash, stream: StreamName, revision: number, event: Content, at: string, metadata: string): Link => {
  const rest = metadata === "{}" ? `"}` : `",${metadata.slice(1)}`
  const hash = linkOf(previous, stream, revision, event, at, rest)
  return { metadata: OPEN + hash + AT + at + rest, hash }
}

/** The event of {@link link}, with its metadata. */
export const seal = (
  previous: Hash,
  stream: StreamName,
  revision: number,
  { data, id, type }: Content,
  at: string,
  metadata: string
): EventData => ({ id, type, data, metadata: link(previous, stream, revision, { id, type, data }, at, metadata).metadata })

/** Whether the metadata has the form that {@link link} writes. Does not check the hash: see {@link verify}. */
export const isSealed = (event: EventData): boolean => event.metadata.startsWith(OPEN) && event.metadata.startsWith(AT, HASH_END)

/** The hash in an event's metadata. */
export const hashOf = (event: EventData): Hash => event.metadata.slice(OPEN.length, HASH_END)

/** When the event was decided: ISO 8601. */
export const atOf = (event: EventData): string => event.metadata.slice(AT_START, AT_END)

/** When the event was decided: milliseconds since 1970; NaN if its metadata has no time. */
export const timeOf = (event: EventData): number => {
  const at = atOf(event)
  const time = fromIso(at)
  // A time in another format is still a time
  return Number.isNaN(time) ? Date.parse(at) : time
}

/** The event's hash, as a text of its own, if it is correct given the hash of the event before it; undefined if it is not. */
export const verified = (previous: Hash, event: RecordedEvent): Hash | undefined => {
  if (!isSealed(event)) return undefined
  const hash = linkOf(previous, event.stream, event.revision, event, atOf(event), event.metadata.slice(AT_END))
  return hash === hashOf(event) ? hash : undefined
}

/** Whether the event's hash is correct, given the hash of the event before it. */
export const verify = (previous: Hash, event: RecordedEvent): boolean => verified(previous, event) !== undefined

/** The metadata that {@link link} received, plus `at`. */
export const metadataOf = (event: EventData): Record<string, unknown> => {
  const { hash: _, ...metadata } = JSON.parse(event.metadata) as Record<string, unknown>
  return metadata
}
