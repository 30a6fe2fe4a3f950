/** Exports: audited without a store, and every change of one is found, with its line. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { StreamName } from "@millrace/event-sourcing"
import { Effect } from "effect"
import * as fc from "fast-check"
import { afterAll, describe, expect, it } from "vitest"
import { parseLine } from "../src/Export.ts"
import { Audit, Export, lineOf, type Report, sentences } from "../src/index.ts"
import { randomHistory } from "./Histories.ts"
import { audit } from "./Logs.ts"

const folder = mkdtempSync(join(tmpdir(), "millrace-export-"))
afterAll(() => rmSync(folder, { recursive: true }))

const file = join(folder, "export.jsonl")
const auditOf = (content: string | Uint8Array, options: Audit.Options = {}): Promise<Report> => {
  writeFileSync(file, content)
  return Effect.runPromise(Audit.runExport(new Export(file), options))
}

const log = await randomHistory(41, 120)
const lines = log.events.map(lineOf)
const whole = (all: ReadonlyArray<string>) => all.map((line) => `${line}\n`).join("")
const { head } = await audit(log)
/** The lines of a report, by rule. */
const found = ({ problems }: Report) => problems.map(({ line, rule }) => `${rule} ${line}`)

describe("an export", () => {
  it("is audited like its log", async () => {
    const { seconds: _, ...report } = await auditOf(whole(lines), { against: head })
    const { seconds: __, ...expected } = await audit({ ...log, snapshots: new Map() })
    expect(report).toEqual(expected)
    expect(report.ok).toBe(true)
  })

  it("may be compressed", async () => {
    expect((await auditOf(gzipSync(whole(lines)), { against: head })).problems).toEqual([])
  })

  it("keeps the bytes of data and metadata, whatever their JSON", () => {
    const texts = fc.oneof(
      fc.json(),
      fc.string(),
      fc.constantFrom(`{"b":1,"1":2}`, `{"a":1.0}`, `"text"`, `{"a":1,"a":2}`, `{ "a": 1 }`, `{"__proto__":1}`)
    )
    fc.assert(
      fc.property(texts, texts, (data, metadata) => {
        const [first] = log.events
        if (first === undefined) throw new Error("The history has events")
        const event = { ...first, data, metadata }
        expect(parseLine(lineOf(event))).toEqual(event)
      })
    )
  })

  it("that is empty has nothing to check", async () => {
    expect(await auditOf("")).toMatchObject({ ok: true, events: 0 })
    expect(found(await auditOf("", { against: head }))).toContain("log-extends-head undefined")
  })

  it("that does not exist fails", async () => {
    const missing = Effect.runPromise(Effect.flip(Audit.runExport(new Export(join(folder, "none.jsonl")))))
    await expect(missing).resolves.toMatchObject({ _tag: "StoreUnavailable" })
  })

  it("names the line that was garbled, its stream, and where its events are missing", async () => {
    const i = log.events.findIndex(({ revision }) => revision === 3)
    const { stream } = log.events[i] ?? { stream: "" }
    const next = log.events.findIndex((event) => event.stream === stream && event.revision === 4)
    const report = await auditOf(whole(lines.map((line, j) => (j === i ? line.slice(0, -10) : line))))
    expect(report.problems[0]).toMatchObject({ line: i + 1, stream, rule: "line-is-an-event", detail: "it is not JSON" })
    expect(report.problems[0]?.means.account).toBe(StreamName.id(stream as StreamName.StreamName))
    expect(found(report)).toEqual([`line-is-an-event ${i + 1}`, `position-follows ${i + 2}`, `revision-follows ${next + 1}`])
  })

  it("is read to its end through lines that are no events, too long, or not UTF-8", async () => {
    const bad = ["", "null", "[]", `{"stream":"account-x"}`, "x".repeat(5_000_000)]
    const report = await auditOf(Buffer.concat([Buffer.from(whole([...bad, ...lines])), Buffer.from([0xff, 0x0a])]))
    const expected = [1, 2, 3, 4, 5, lines.length + 6].map((line) => `line-is-an-event ${line}`)
    expect(found(report)).toEqual(expected)
    expect(report.events).toBe(lines.length)
    // Its position is not known, and it is one line
    expect(sentences(report).filter((line) => line.includes("Where: "))[0]).toBe("   Where: line 1.")
  })

  it("that is cut within its compressed form is read as far as it goes", async () => {
    const compressed = gzipSync(whole(lines))
    const report = await auditOf(compressed.subarray(0, compressed.length / 2))
    expect(report.ok).toBe(false)
    expect(report.problems.some(({ detail }) => detail.startsWith("the file cannot be decompressed"))).toBe(true)
  })
})

/** A change of an export. */
interface Mutation {
  readonly content: Buffer
  /** The streams that must be named. */
  readonly streams?: ReadonlyArray<string>
  /** Only a head shows it. */
  readonly needsHead?: boolean
}

const streamAt = (i: number): string => log.events[i]?.stream ?? ""
const bytes = Buffer.from(whole(lines))
/** Where each line begins. */
const starts = lines.map((_, i) => Buffer.byteLength(whole(lines.slice(0, i))))

const deleted = (i: number): Mutation => ({
  content: Buffer.from(whole(lines.toSpliced(i, 1))),
  // The last event of a stream leaves a gap in the positions, but none in its stream
  streams: log.events.some(({ stream }, j) => j > i && stream === streamAt(i)) ? [streamAt(i)] : [],
  needsHead: i === lines.length - 1
})
const doubled = ([i, j]: readonly [number, number]): Mutation => ({
  content: Buffer.from(whole(lines.toSpliced(j, 0, lines[i] ?? ""))),
  streams: [streamAt(i)]
})
const swapped = ([i, j]: readonly [number, number]): Mutation => ({
  content: Buffer.from(whole(lines.with(i, lines[j] ?? "").with(j, lines[i] ?? "")))
})
const changed = ([at, byte]: readonly [number, number]): Mutation => {
  const content = Buffer.from(bytes)
  content[at] = byte
  const line = starts.findLastIndex((start) => start <= at)
  const text = lines[line] ?? ""
  const offset = at - (starts[line] ?? 0)
  // A line whose stream is changed, or that is cut or joined to the next, cannot tell its stream
  const [from, to] = [text.indexOf(`"stream"`), text.indexOf(`,"revision"`)]
  const isInside = (offset < from || offset >= to) && byte !== 0x0a && offset < text.length
  return { content, streams: isInside ? [streamAt(line)] : [] }
}
const cut = (at: number): Mutation => ({ content: bytes.subarray(0, at), needsHead: at === 0 || bytes[at - 1] === 0x0a })

const index = fc.nat({ max: lines.length - 1 })
const place = fc.nat({ max: bytes.length - 1 })

describe("a change of an export is found:", () => {
  const isFound = async ({ content, needsHead = false, streams = [] }: Mutation) => {
    const reports = [await auditOf(content, { against: head }), ...(needsHead ? [] : [await auditOf(content)])]
    for (const { ok, problems } of reports) {
      expect(ok).toBe(false)
      const named = problems.map(({ stream }) => stream)
      for (const stream of streams) expect(named).toContain(stream)
    }
  }
  const always = <A>(mutations: fc.Arbitrary<A>, mutate: (mutation: A) => Mutation) =>
    fc.assert(
      fc.asyncProperty(mutations, (mutation) => isFound(mutate(mutation))),
      { numRuns: 15 }
    )
  const two = fc.tuple(index, index)

  it("a line that is deleted", () => always(index, deleted))
  it("a line that is doubled", () => always(two, doubled))
  it("lines that are swapped", () =>
    always(
      two.filter(([i, j]) => i !== j),
      swapped
    ))
  it("a byte that is changed", () =>
    always(
      fc.tuple(place, fc.integer({ min: 0, max: 255 })).filter(([at, byte]) => bytes[at] !== byte),
      changed
    ))
  it("an end that is cut off", () => always(place, cut))
})
