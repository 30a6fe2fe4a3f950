/**
 * The hash chain of a stream: each event's metadata opens with the SHA-256 of the event and of the hash before it, then the time
 * it was decided, so that a changed, removed or reordered past event shows. The chain starts from the name of its stream.
 *
 * `{"hash":"<43 characters of base64url>","at":"2026-01-31T00:00:00.000Z","$correlationId":"..."}`
 *
 * What is hashed, line by line: previous hash, stream, revision, id, type, at, data, metadata without hash and at.
 */
import { hash as digest } from "node:crypto"
import type { EventData, RecordedEvent } from "./EventStore.ts"
import type { StreamName } from "./StreamName.ts"

/** 43 characters of base64url. */
export type Hash = string

const OPEN = `{"hash":"`
const HASH_END = OPEN.length + 43
const AT = `","at":"`
const AT_START = HASH_END + AT.length
const AT_END = AT_START + 24

export const start = (stream: StreamName): Hash => digest("sha256", stream, "base64url")

// Neither JSON text nor ids, types or stream names hold a line feed, so the parts cannot run into each other
const link = (
  previous: Hash,
  stream: StreamName,
  revision: number,
  id: string,
  type: string,
  at: string,
  data: string,
  rest: string
): Hash => digest("sha256", `${previous}\n${stream}\n${revision}\n${id}\n${type}\n${at}\n${data}\n${rest}`, "base64url")

/**
 * The event with its link. `at` is an ISO 8601 time of 24 characters; `metadata` the JSON text of an object that holds
 * neither `hash` nor `at`.
 */
export const seal = (
  previous: Hash,
  stream: StreamName,
  revision: number,
  event: { readonly id: string; readonly type: string; readonly data: string },
  at: string,
  metadata: string
): EventData => {
  const rest = metadata === "{}" ? `"}` : `",${metadata.slice(1)}`
  const hash = link(previous, stream, revision, event.id, event.type, at, event.data, rest)
  return { id: event.id, type: event.type, data: event.data, metadata: OPEN + hash + AT + at + rest }
}

/** Whether the metadata has the shape that {@link seal} writes; the hash itself is {@link verify}'s. */
export const isSealed = (event: EventData): boolean => event.metadata.startsWith(OPEN) && event.metadata.startsWith(AT, HASH_END)

/** The hash an event carries. */
export const hashOf = (event: EventData): Hash => event.metadata.slice(OPEN.length, HASH_END)

/** When it was decided: ISO 8601. */
export const atOf = (event: EventData): string => event.metadata.slice(AT_START, AT_END)

/** Whether `event` is what was written after the event with the hash `previous`. */
export const verify = (previous: Hash, event: RecordedEvent): boolean =>
  isSealed(event) &&
  hashOf(event) ===
    link(previous, event.stream, event.revision, event.id, event.type, atOf(event), event.data, event.metadata.slice(AT_END))

/** The metadata as it was given to {@link seal}, with `at`, without the hash. */
export const metadataOf = (event: EventData): Record<string, unknown> => {
  const { hash: _, ...metadata } = JSON.parse(event.metadata) as Record<string, unknown>
  return metadata
}
