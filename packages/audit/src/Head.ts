/**
 * A head: the whole log as of one position, in a few numbers to keep apart from the store. A later log that extends it holds the
 * same streams, each with the same events in the same order, up to that position: hashes chain each stream, the digest ties
 * their ends together. So a head shows what hashes alone cannot: a truncated log, a removed stream, a rewrite with new hashes.
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

/** Where a stream ends. */
export interface StreamEnd {
  readonly name: string
  readonly revision: number
  readonly hash: HashChain.Hash
}

/** Names sort by their UTF-16 code units, wherever this runs. */
export const digest = (ends: Iterable<StreamEnd>): string => {
  const sha = createHash("sha256")
  const sorted = [...ends].sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const { name, revision, hash } of sorted) sha.update(`${name}\n${revision}\n${hash}\n`)
  return sha.digest("base64url")
}

/** What a log was when it reached the position of `earlier`, or where it ends before that. */
export type Past = Pick<Head, "position" | "streams" | "events" | "digest">

/** Why a log that was `past` at the position of `earlier` does not extend it; undefined when it does. */
export const compare = (earlier: Head, past: Past): string | undefined => {
  if (past.position < earlier.position) {
    return `the log ends at ${past.position || "its start"} with ${past.events} events, before the earlier head's ${earlier.position}`
  }
  if (past.streams !== earlier.streams || past.events !== earlier.events) {
    return `up to here were ${earlier.events} events in ${earlier.streams} streams, now ${past.events} in ${past.streams}`
  }
  return past.digest === earlier.digest ? undefined : "up to here the streams end otherwise than in the earlier head: the log was rewritten"
}
