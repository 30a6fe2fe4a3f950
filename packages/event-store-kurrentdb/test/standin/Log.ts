/**
 * The log of a stand-in: streams in memory, with the server's rules for appends and reads. If it has a file, each write is in the file
 * before it is answered, and a log that is opened on the same file later contains all of them.
 */
import { closeSync, existsSync, openSync, readFileSync, truncateSync, writeSync } from "node:fs"
import { Option, Schema } from "effect"

/** The revision of a stream's last event, or one of the three expectations without a revision. */
export type Expected = bigint | "any" | "noStream" | "streamExists"

export interface Proposed {
  readonly id: string
  readonly type: string
  readonly contentType: string
  readonly data: Uint8Array
  readonly metadata: Uint8Array
}

export interface Recorded extends Proposed {
  readonly stream: string
  readonly revision: bigint
  /** The commit and the prepare position. It grows by the bytes written, so it has gaps. */
  readonly position: bigint
  /** Milliseconds since 1970. */
  readonly created: number
}

export type Outcome =
  /** `position` is undefined if the events were written before and have been truncated since. */
  | { readonly _tag: "appended"; readonly revision: bigint; readonly position: bigint | undefined }
  | { readonly _tag: "wrongVersion"; readonly actual: bigint | "noStream" }
  | { readonly _tag: "deleted" }

/** How many ids an append without an exact revision is compared with. The server forgets them in time, and when it restarts. */
const REMEMBERED_IDS = 100_000

const DELETED = 9_223_372_036_854_775_807n

interface StreamOf {
  readonly events: Array<Recorded>
  isTombstoned: boolean
  /** Reads since the stream was written again after a soft delete; undefined for other streams. */
  readsSinceRevival: number | undefined
  truncateBefore: bigint
  maxCount: number | undefined
}

const Metadata = Schema.fromJsonString(Schema.Struct({ $maxCount: Schema.optional(Schema.Int), $tb: Schema.optional(Schema.Finite) }))

const decodeMetadata = Schema.decodeUnknownOption(Metadata)

const Line = Schema.fromJsonString(
  Schema.Union([
    Schema.TaggedStruct("append", {
      stream: Schema.String,
      created: Schema.Int,
      events: Schema.Array(
        Schema.Struct({ id: Schema.String, type: Schema.String, contentType: Schema.String, data: Schema.String, metadata: Schema.String })
      )
    }),
    Schema.TaggedStruct("delete", { stream: Schema.String }),
    Schema.TaggedStruct("tombstone", { stream: Schema.String })
  ])
)
type Line = typeof Line.Type
const encodeLine = Schema.encodeSync(Line)
const decodeLine = Schema.decodeUnknownSync(Line)

export class Log {
  /** All events in order. */
  readonly all: Array<Recorded> = []
  readonly #streams = new Map<string, StreamOf>()
  readonly #ids = new Map<string, Recorded>()
  readonly #watchers = new Set<() => void>()
  readonly #file: number | undefined
  #position = 0n

  constructor(file?: string) {
    if (file === undefined) return
    if (existsSync(file)) this.#load(file)
    this.#file = openSync(file, "a")
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file)
  }

  /** Runs `look` after each change, until the returned function is called. */
  watch(look: () => void): () => void {
    this.#watchers.add(look)
    return () => this.#watchers.delete(look)
  }

  append(stream: string, expected: Expected, events: ReadonlyArray<Proposed>, created: number): Outcome {
    const outcome = this.#check(stream, expected, events)
    if (outcome !== undefined) return outcome
    const last = this.#write(stream, events, created)
    this.#save({
      _tag: "append",
      stream,
      created,
      events: events.map(({ id, type, contentType, data, metadata }) => ({
        id,
        type,
        contentType,
        data: Buffer.from(data).toString("base64"),
        metadata: Buffer.from(metadata).toString("base64")
      }))
    })
    this.#tell()
    return { _tag: "appended", revision: last?.revision ?? this.#lastOf(stream), position: last?.position ?? this.#position }
  }

  /** Deletes softly: the events are truncated, and the stream may be written again. */
  delete(stream: string): bigint {
    this.#of(stream).truncateBefore = DELETED
    this.#save({ _tag: "delete", stream })
    return this.#moved()
  }

  /** Deletes permanently: the stream cannot be written again. */
  tombstone(stream: string): bigint {
    this.#of(stream).isTombstoned = true
    this.#save({ _tag: "tombstone", stream })
    return this.#moved()
  }

  isTombstoned(stream: string): boolean {
    return this.#streams.get(stream)?.isTombstoned ?? false
  }

  /** Whether a read finds the stream. */
  exists(stream: string): boolean {
    const there = this.#streams.get(stream)
    return there !== undefined && there.events.length > 0 && there.truncateBefore !== DELETED
  }

  /** Counts a read. True for the first `misses` reads of a stream that was deleted softly and written again. */
  misses(stream: string, misses: number): boolean {
    const there = this.#streams.get(stream)
    return there?.readsSinceRevival !== undefined && there.readsSinceRevival++ < misses
  }

  /** The events of a stream that can be read: `$tb` and `$maxCount` hide the others. */
  visible(stream: string): ReadonlyArray<Recorded> {
    const there = this.#streams.get(stream)
    if (there === undefined) return []
    const { events, maxCount, truncateBefore } = there
    const kept = truncateBefore === 0n ? events : events.filter(({ revision }) => revision >= truncateBefore)
    return maxCount === undefined ? kept : kept.slice(-maxCount)
  }

  /** The last revision; -1 for a stream without events. */
  last(stream: string): bigint {
    return this.#lastOf(stream)
  }

  get position(): bigint {
    return this.#position
  }

  /** Index in {@link all} of the first event after a position. */
  firstAfter(position: bigint): number {
    let low = 0
    let high = this.all.length
    while (low < high) {
      const middle = (low + high) >> 1
      const at = this.all[middle]
      if (at !== undefined && at.position > position) high = middle
      else low = middle + 1
    }
    return low
  }

  /** The outcome of an append that writes nothing, by the rules of the server's index; undefined if it has to be written. */
  #check(stream: string, expected: Expected, events: ReadonlyArray<Proposed>): Outcome | undefined {
    const there = this.#streams.get(stream)
    const last = this.#lastOf(stream)
    const actual = last < 0n ? "noStream" : last
    const isDeleted = there?.truncateBefore === DELETED
    if (there?.isTombstoned) return { _tag: "deleted" }
    if (expected === "streamExists" && (last < 0n || isDeleted)) return { _tag: "wrongVersion", actual }
    if (expected === "any" || expected === "streamExists") {
      const known = events.map(({ id }) => this.#ids.get(`${stream}\0${id}`))
      if (known[0] === undefined) return undefined
      const newest = known.at(-1)
      return newest === undefined || known.includes(undefined) ? { _tag: "wrongVersion", actual } : this.#again(stream, newest)
    }
    const before = expected === "noStream" ? -1n : expected
    if (before === last) return undefined
    if (before > last) return { _tag: "wrongVersion", actual }
    const first = Number(before + 1n)
    const newest = there?.events[first + events.length - 1]
    // The server compares ids only
    if (newest !== undefined && events.length > 0 && events.every(({ id }, i) => there?.events[first + i]?.id === id))
      return this.#again(stream, newest)
    return expected === "noStream" && isDeleted ? undefined : { _tag: "wrongVersion", actual }
  }

  #again(stream: string, event: Recorded): Outcome {
    const isThere = this.visible(stream).includes(event)
    return { _tag: "appended", revision: event.revision, position: isThere ? event.position : undefined }
  }

  #write(stream: string, events: ReadonlyArray<Proposed>, created: number): Recorded | undefined {
    const there = this.#of(stream)
    // Writing to a deleted stream revives it without its old events
    if (there.truncateBefore === DELETED) {
      there.truncateBefore = this.#lastOf(stream) + 1n
      there.readsSinceRevival = 0
    }
    let recorded: Recorded | undefined
    for (const event of events) {
      this.#position += BigInt(100 + event.type.length + event.data.length + event.metadata.length)
      recorded = { ...event, stream, revision: BigInt(there.events.length), position: this.#position, created }
      there.events.push(recorded)
      this.all.push(recorded)
      this.#remember(recorded)
      if (stream.startsWith("$$")) this.#setMetadata(stream.slice(2), event.data)
    }
    return recorded
  }

  #remember(event: Recorded): void {
    if (this.#ids.size >= REMEMBERED_IDS) this.#ids.clear()
    this.#ids.set(`${event.stream}\0${event.id}`, event)
  }

  #setMetadata(stream: string, data: Uint8Array): void {
    const metadata = decodeMetadata(Buffer.from(data).toString())
    if (Option.isNone(metadata)) return
    const { $maxCount, $tb } = metadata.value
    const there = this.#of(stream)
    there.maxCount = $maxCount
    there.truncateBefore = $tb === undefined ? 0n : BigInt($tb)
  }

  #of(stream: string): StreamOf {
    const there = this.#streams.get(stream)
    if (there !== undefined) return there
    const made: StreamOf = { events: [], isTombstoned: false, readsSinceRevival: undefined, truncateBefore: 0n, maxCount: undefined }
    this.#streams.set(stream, made)
    return made
  }

  #lastOf(stream: string): bigint {
    return BigInt(this.#streams.get(stream)?.events.length ?? 0) - 1n
  }

  #moved(): bigint {
    this.#position += 100n
    this.#tell()
    return this.#position
  }

  #tell(): void {
    for (const look of [...this.#watchers]) look()
  }

  #save(line: Line): void {
    if (this.#file !== undefined) writeSync(this.#file, `${encodeLine(line)}\n`)
  }

  /** Loads the file. An incomplete last line is dropped: that write was never answered. */
  #load(file: string): void {
    const text = readFileSync(file, "utf8")
    const end = text.lastIndexOf("\n") + 1
    truncateSync(file, Buffer.byteLength(text.slice(0, end)))
    for (const json of text.slice(0, end).split("\n")) if (json !== "") this.#replay(decodeLine(json))
    // The server forgets the ids when it restarts: only an append at an exact revision stays idempotent
    this.#ids.clear()
  }

  #replay(line: Line): void {
    switch (line._tag) {
      case "append": {
        const events = line.events.map(({ data, metadata, ...event }) => ({
          ...event,
          data: new Uint8Array(Buffer.from(data, "base64")),
          metadata: new Uint8Array(Buffer.from(metadata, "base64"))
        }))
        this.#write(line.stream, events, line.created)
        return
      }
      case "delete":
        this.#of(line.stream).truncateBefore = DELETED
        this.#moved()
        return
      case "tombstone":
        this.#of(line.stream).isTombstoned = true
        this.#moved()
    }
  }
}
