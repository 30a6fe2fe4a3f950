/**
 * A head: digests of the whole log at one position, to keep outside the store. A later log that extends it has the same streams with the
 * same events in the same order up to that position: hashes chain the events of a stream, and the digest covers the last hash of every
 * stream. So a head reveals what hashes alone cannot: a truncated log, a removed stream, a rewrite with new hashes.
 *
 * The digest is the SHA-256, in base64url, of the list of streams: `{stream}\n{revision}\n{hash}\n` for the last event of each stream,
 * sorted by stream name. A bucket is the same digest of the streams whose names have a SHA-256 that begins with its three hexadecimal
 * digits, so a head shows where a log differs and stays below 250 kB. The list itself, kept as a file, shows which streams differ.
 */
import { createHash } from "node:crypto"
import { type HashChain, StreamName } from "@millrace/event-sourcing"
import { Schema } from "effect"

export const Head = Schema.Struct({
  /** Of the last event; empty while the log is. */
  position: Schema.String,
  streams: Schema.Int,
  events: Schema.Int,
  digest: Schema.String,
  /** The latest time in the log, ISO 8601; null while it is empty. */
  at: Schema.NullOr(Schema.String),
  /** The digest of each bucket that has streams. Heads of earlier releases have none. */
  buckets: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
})
export type Head = typeof Head.Type

/** The last event of a stream. */
export interface StreamEnd {
  readonly name: string
  readonly revision: number
  readonly hash: HashChain.Hash
}

const byName = (a: StreamEnd, b: StreamEnd): number => (a.name < b.name ? -1 : 1)

const lineOf = ({ hash, name, revision }: StreamEnd): string => `${name}\n${revision}\n${hash}\n`

/** SHA-256 over the ends of all streams, sorted by the UTF-16 code units of their names. */
export const digest = (ends: Iterable<StreamEnd>): string => {
  const sha = createHash("sha256")
  for (const end of [...ends].sort(byName)) sha.update(lineOf(end))
  return sha.digest("base64url")
}

/** The bucket of a stream: the first three hexadecimal digits of the SHA-256 of its name. */
export const bucketOf = (name: string): string => createHash("sha256").update(name).digest("hex").slice(0, 3)

/** The streams of each bucket. */
export const inBuckets = <End extends StreamEnd>(ends: Iterable<End>): Map<string, Array<End>> =>
  Map.groupBy(ends, ({ name }) => bucketOf(name))

/** The digest of each bucket, in the order of their names. */
export const bucketsOf = (ends: Iterable<StreamEnd>): Readonly<Record<string, string>> =>
  Object.fromEntries([...inBuckets(ends)].sort(([a], [b]) => (a < b ? -1 : 1)).map(([bucket, ends]) => [bucket, digest(ends)]))

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

/** The list of streams as text, three lines for each: what the digest is the SHA-256 of. */
export function* streamList(ends: Iterable<StreamEnd>): Generator<string> {
  for (const end of [...ends].sort(byName)) yield lineOf(end)
}

/** Reads a list of streams. Undefined if the text is not one. */
export const parseStreamList = (text: string): ReadonlyArray<StreamEnd> | undefined => {
  const lines = text.split("\n")
  if (lines.pop() !== "" || lines.length % 3 !== 0) return undefined
  const ends: Array<StreamEnd> = []
  for (let i = 0; i < lines.length; i += 3) {
    const [name = "", revision = "", hash = ""] = lines.slice(i, i + 3)
    if (!StreamName.isStreamName(name) || !/^\d{1,15}$/u.test(revision) || hash.length !== 43) return undefined
    ends.push({ name, revision: Number(revision), hash })
  }
  return ends
}

/** A stream, or a bucket of streams, that is not as it was in an earlier head. */
export interface Difference {
  /** The stream, where it is known; undefined for a bucket of several, or of a stream that is gone. */
  readonly stream: string | undefined
  readonly detail: string
}

const eventsOf = (revision: number): string => (revision === 0 ? "1 event" : `${revision + 1} events`)

/** The streams that differ from an earlier list, exactly. */
export const differencesOf = (earlier: ReadonlyArray<StreamEnd>, now: Iterable<StreamEnd>): ReadonlyArray<Difference> => {
  const present = new Map([...now].map((end) => [end.name, end]))
  const differences: Array<Difference> = []
  for (const { hash, name, revision } of earlier) {
    const end = present.get(name)
    present.delete(name)
    if (end === undefined) differences.push({ stream: name, detail: `the stream had ${eventsOf(revision)}, and is gone` })
    else if (end.revision < revision)
      differences.push({ stream: name, detail: `it had ${eventsOf(revision)}, and has ${end.revision + 1}` })
    else if (end.revision > revision)
      differences.push({ stream: name, detail: `it had ${eventsOf(revision)} up to here, and has ${end.revision + 1}` })
    else if (end.hash !== hash)
      differences.push({
        stream: name,
        detail: `it has ${eventsOf(revision)} as before, but they were written anew: the last hash differs`
      })
  }
  for (const name of present.keys()) differences.push({ stream: name, detail: "up to here the stream did not exist" })
  return differences
}

/** Names in a message. */
const SHOWN = 20

/** The buckets that differ from those of an earlier head, with the streams in them now. */
export const bucketsThatDiffer = (earlier: Readonly<Record<string, string>>, now: Iterable<StreamEnd>): ReadonlyArray<Difference> => {
  const present = inBuckets(now)
  const differing = [...new Set([...Object.keys(earlier), ...present.keys()])]
    .sort()
    .filter((bucket) => earlier[bucket] !== (present.has(bucket) ? digest(present.get(bucket) ?? []) : undefined))
  return differing.map((bucket) => {
    const names = (present.get(bucket) ?? []).map(({ name }) => name).sort()
    const [only] = names
    if (only === undefined) return { stream: undefined, detail: `all streams of bucket ${bucket} are gone` }
    if (names.length > 1) {
      const shown = `${names.slice(0, SHOWN).join(", ")}${names.length > SHOWN ? `, and ${names.length - SHOWN} more` : ""}`
      return { stream: undefined, detail: `one or more streams of bucket ${bucket} differ, or one is gone: ${shown}` }
    }
    const had =
      earlier[bucket] === undefined ? "had no stream up to here" : "differs, and has this stream alone: it was changed, or another is gone"
    return { stream: only, detail: `its bucket ${bucket} ${had}` }
  })
}
