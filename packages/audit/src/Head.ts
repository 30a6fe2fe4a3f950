/**
 * A head: a digest of the whole log at one position, to keep outside the store. A later log that extends it has the same streams with the
 * same events in the same order up to that position: hashes chain the events of a stream, and the digest covers the last hash of every
 * stream. So a head reveals what hashes alone cannot: a truncated log, a removed stream, a rewrite with new hashes.
 *
 * The digest is the SHA-256, in base64url, of one line `{stream}\n{revision}\n{hash}\n` for the last event of each stream, sorted by stream name.
 */
import { createHash } from "node:crypto"
import type { HashChain } from "@millrace/event-sourcing"
import { Schema } from "effect"

export const Head = Schema.Struct({
  /** Of the last event; empty while the log is. */
  position: Schema.String,
  streams: Schema.Int,
  events: Schema.Int,
  digest: Schema.String,
  /** The latest time in the log, ISO 8601; null while it is empty. */
  at: Schema.NullOr(Schema.String)
})
export type Head = typeof Head.Type

/** The last event of a stream. */
export interface StreamEnd {
  readonly name: string
  readonly revision: number
  readonly hash: HashChain.Hash
}

/** SHA-256 over the ends of all streams, sorted by the UTF-16 code units of their names. */
export const digest = (ends: Iterable<StreamEnd>): string => {
  const sha = createHash("sha256")
  const sorted = [...ends].sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const { name, revision, hash } of sorted) sha.update(`${name}\n${revision}\n${hash}\n`)
  return sha.digest("base64url")
}

/** A log at the position of an earlier head, or at its end if that comes first. */
export type Past = Pick<Head, "position" | "streams" | "events" | "digest">

/** Why a log that was `past` at the position of `earlier` does not extend that head; undefined if it does. */
export const compare = (earlier: Head, past: Past): string | undefined => {
  if (past.position < earlier.position) {
    return `the log ends at ${past.position || "its start"} with ${past.events} events, before the earlier head's ${earlier.position}`
  }
  if (past.streams !== earlier.streams || past.events !== earlier.events) {
    return `up to here were ${earlier.events} events in ${earlier.streams} streams, now ${past.events} in ${past.streams}`
  }
  return past.digest === earlier.digest ? undefined : "up to here the streams end otherwise than in the earlier head: the log was rewritten"
}
