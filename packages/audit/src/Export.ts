/**
 * An export of a log: JSON Lines as `millrace events` prints them, one event each, also compressed by gzip. It is audited without its store.
 * A line that is not exactly what that command prints is a problem with its number, and never ends the audit.
 *
 * `{"position","stream","revision","id","type","at","data","metadata"}`. Data and metadata are JSON values, or the JSON text as a string
 * where reading and writing the value would change its bytes, which the hashes cover.
 */
import type { ReadStream } from "node:fs"
import { type FileHandle, open } from "node:fs/promises"
import { createGunzip } from "node:zlib"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"
import { WHOLE_LOG } from "./Report.ts"

/** An event, with its line in the export, counted from 1. */
export interface ExportedEvent extends EventStore.RecordedEvent {
  readonly line: number
}

/** An event as a line, without the line feed. */
export const lineOf = (event: EventStore.RecordedEvent): string => {
  const { position, stream, revision, id, type, data, metadata } = event
  return JSON.stringify({
    ...{ position, stream, revision, id, type, at: HashChain.atOf(event) },
    data: valueOf(data),
    metadata: valueOf(metadata)
  })
}

const valueOf = (json: string): unknown => {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === "string" || JSON.stringify(value) !== json ? json : value
  } catch {
    return json
  }
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value))

/** Positions of all stores of Millrace. */
const POSITION = /^\d{16,20}$/u

/** The event of a line; or, for a line that is none, why. */
export const parseLine = (text: string): EventStore.RecordedEvent | string => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return "it is not JSON"
  }
  if (typeof value !== "object" || value === null) return "it is not an object"
  const { data, id, metadata, position, revision, stream, type } = value as Readonly<Record<string, unknown>>
  if (typeof stream !== "string" || !StreamName.isStreamName(stream)) return "it names no stream"
  if (typeof position !== "string" || !POSITION.test(position)) return "it has no position"
  if (typeof revision !== "number" || !Number.isSafeInteger(revision) || revision < 0) return "it has no revision"
  if (typeof id !== "string" || typeof type !== "string" || data === undefined || metadata === undefined)
    return "a part of the event is missing"
  return { position: EventStore.position(position), stream, revision, id, type, data: textOf(data), metadata: textOf(metadata) }
}

/** A problem of a line. `stream`: as far as the line still tells it. */
export interface LineProblem {
  readonly line: number
  readonly stream: string
  readonly detail: string
}

/** Bytes of a line. A store takes appends of at most 1 MB, and as JSON text in a string they are at most twice as long. */
const MAX_LINE = 4 * EventStore.MAX_APPEND_BYTES

const LINE_FEED = 0x0a
const GZIP = [0x1f, 0x8b] as const
const STREAM = /"stream":"(?<stream>[^"\\]{3,300})"/u

/** An export in a file. */
export class Export {
  readonly #file: string
  /** Told of each line that is not an event, while a reader wants to know. */
  onProblem: ((problem: LineProblem) => void) | undefined
  /**
   * Told how many bytes of the file were read, and how many it has: of a compressed file, compressed ones. The file may be read several
   * times.
   */
  onRead: ((bytes: number, of: number) => void) | undefined

  constructor(file: string) {
    this.#file = file
  }

  /** The events of the file as a store that can only be read, and has no snapshots. */
  readonly store: EventStore.EventStore["Service"] = {
    append: () => Effect.die(new Error("An export takes no events")),
    readAll: (after) => Stream.filter(this.#all(), ({ position }) => after === EventStore.start || position > after),
    readStream: (name, { from = 0, limit = Number.POSITIVE_INFINITY } = {}) =>
      Stream.filter(this.#all(), ({ revision, stream }) => stream === name && revision >= from && revision < from + limit),
    lastRevision: () => Effect.succeed("noStream"),
    subscribe: () => Stream.never,
    head: Effect.suspend(() =>
      Effect.map(Stream.runLast(this.#all()), (last) => (last._tag === "None" ? EventStore.start : last.value.position))
    ),
    loadSnapshot: () => Effect.succeed(undefined),
    saveSnapshot: () => Effect.void
  }

  #all(): Stream.Stream<ExportedEvent, EventStore.StoreUnavailable> {
    const lines = Stream.suspend(() =>
      Stream.fromAsyncIterable(this.#events(), (error) => new EventStore.StoreUnavailable({ reason: `${this.#file}: ${reasonOf(error)}` }))
    )
    return Stream.flatMap(lines, (events) => Stream.fromArray(events))
  }

  /** The events of the file, in batches. */
  async *#events(): AsyncGenerator<ReadonlyArray<ExportedEvent>> {
    const handle = await open(this.#file, "r")
    try {
      let line = 0
      const lines = new Lines()
      for await (const bytes of this.#bytes(handle, () => line + 1)) {
        const events = lines.push(bytes).flatMap((text) => this.#read(text, ++line) ?? [])
        if (events.length > 0) yield events
      }
      const rest = lines.end()
      if (rest === undefined) return
      const last = this.#read(rest, ++line)
      this.#problem(line, rest, "the file ends within this line: it has no line feed")
      if (last !== undefined) yield [last]
    } finally {
      await handle.close()
    }
  }

  /** The content of the file, decompressed where it is compressed. What cannot be decompressed is a problem of the line that it begins in. */
  async *#bytes(handle: FileHandle, line: () => number): AsyncGenerator<Buffer> {
    const start = Buffer.alloc(GZIP.length)
    await handle.read(start, 0, GZIP.length, 0)
    const { size } = await handle.stat()
    const file = handle.createReadStream({ start: 0, autoClose: false, highWaterMark: 1 << 18 })
    if (!GZIP.every((byte, i) => start[i] === byte)) return yield* this.#told(file, file, size)
    const plain = createGunzip()
    file.on("error", (error) => plain.destroy(error))
    try {
      yield* this.#told(file.pipe(plain), file, size)
    } catch (error) {
      this.#problem(line(), undefined, `the file cannot be decompressed from here on: ${reasonOf(error)}`)
    }
  }

  async *#told(content: AsyncIterable<Buffer>, file: ReadStream, size: number): AsyncGenerator<Buffer> {
    for await (const bytes of content) {
      this.onRead?.(file.bytesRead, size)
      yield bytes
    }
  }

  #read(bytes: Buffer | undefined, line: number): ExportedEvent | undefined {
    if (bytes === undefined) return this.#problem(line, undefined, `the line is longer than ${MAX_LINE} bytes`)
    const text = decode(bytes)
    if (text === undefined) return this.#problem(line, bytes, "it is not UTF-8")
    const event = parseLine(text)
    if (typeof event === "string") return this.#problem(line, bytes, event)
    if (lineOf(event) !== text)
      this.#problem(line, bytes, "it is not exactly as the command events prints it: it was changed, or written anew")
    return { ...event, line }
  }

  #problem(line: number, bytes: Buffer | undefined, detail: string): undefined {
    const name = bytes === undefined ? undefined : STREAM.exec(bytes.toString("latin1"))?.groups?.["stream"]
    this.onProblem?.({ line, stream: name !== undefined && StreamName.isStreamName(name) ? name : WHOLE_LOG, detail })
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const decode = (bytes: Buffer): string | undefined => {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

/** Splits bytes at line feeds. Lines that are too long come as undefined. */
class Lines {
  #rest: Array<Buffer> = []
  #length = 0

  push(bytes: Buffer): ReadonlyArray<Buffer | undefined> {
    const lines: Array<Buffer | undefined> = []
    let from = 0
    for (let end = bytes.indexOf(LINE_FEED); end !== -1; end = bytes.indexOf(LINE_FEED, from)) {
      this.#keep(bytes.subarray(from, end))
      lines.push(this.#take())
      from = end + 1
    }
    this.#keep(bytes.subarray(from))
    return lines
  }

  /** What follows the last line feed; undefined if that is nothing. */
  end(): Buffer | undefined {
    return this.#length === 0 ? undefined : (this.#take() ?? Buffer.alloc(0))
  }

  #keep(bytes: Buffer): void {
    this.#length += bytes.length
    if (this.#length <= MAX_LINE) this.#rest.push(bytes)
    else this.#rest = []
  }

  #take(): Buffer | undefined {
    const line = this.#length > MAX_LINE ? undefined : this.#rest.length === 1 ? this.#rest[0] : Buffer.concat(this.#rest)
    this.#rest = []
    this.#length = 0
    return line
  }
}
