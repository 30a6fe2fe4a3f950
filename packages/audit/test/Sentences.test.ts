/** Reports in sentences, and heads that name the streams that differ. */
import { createHash } from "node:crypto"
import { describe, expect, it } from "vitest"
import { bucketOf, type Head, parseStreamList, type StreamEnd, sentences, streamList } from "../src/index.ts"
import { granted, held, logOf, opened, part, reserved } from "./Broken.ts"
import { randomHistory } from "./Histories.ts"
import { audit, placed, rehashed, withData, written } from "./Logs.ts"

const nothing = new Map<string, never>()

describe("a report in sentences", () => {
  it("says what was checked, and that all is well", async () => {
    const report = await audit({ events: written(logOf(held)), snapshots: nothing })
    const text = sentences(report).join("\n")
    expect(text).toMatch(/^Checked 4 events in 2 streams, from 2026-01-01T00:00:00\.000Z to /u)
    expect(text).toContain("1 account, 1 lot, 1 hold, 1 price list and 0 jobs.")
    expect(text).toContain("All is well")
    expect(text).toContain("no earlier head to compare with")
    expect(sentences(report, { against: report.head }).join("\n")).toContain("The log extends the head of 2026-01-01T00:00:00.000Z")
  })

  it("says of each finding what it means, then where and which rule", async () => {
    const events = written(logOf([opened, granted("l", 1_000), reserved("r", 100, [part("l", 100)], { quantity: 2 })]))
    const lines = sentences(await audit({ events, snapshots: nothing }))
    expect(lines.slice(lines.indexOf("") + 1)).toEqual([
      expect.stringContaining("no earlier head"),
      "Something is wrong: 1 finding, which concerns 1 account.",
      "",
      "1. Account a: 0.1 credits (0.0001 USD) too little was held for grammar.check: 0.1 credits (0.0001 USD) instead of 0.2 credits (0.0002 USD).",
      "   Before: 1 credit (0.001 USD) to spend. After: 0.9 credits (0.0009 USD).",
      "   Where: position 0000000000000004, stream account-a.",
      "   Rule hold-is-priced: A hold is quantity × the unit price of a version that was published and in force. (Tenet 3: One operation, one definition.)",
      "   Fact: 2 × 0.1 of price version 1 is not 0.1"
    ])
  })

  it("says of an empty log that there was nothing to check", async () => {
    const lines = sentences(await audit({ events: [], snapshots: nothing }))
    expect(lines[0]).toBe("The log is empty: there was nothing to check.")
    expect(lines.at(-1)).toBe("Nothing is wrong, and nothing is vouched for.")
  })
})

describe("a head", async () => {
  const { events } = await randomHistory(51, 120)
  let ends: ReadonlyArray<StreamEnd> = []
  const { head } = await audit({ events, snapshots: nothing }, { onStreams: (all) => (ends = all) })
  const list = [...streamList(ends)].join("")
  const streams = parseStreamList(list) ?? []
  const named = async (forged: typeof events, against: Head, exact: boolean) =>
    (await audit({ events: forged, snapshots: nothing }, { against, ...(exact ? { streams } : {}) })).problems
      .filter(({ rule }) => rule === "stream-extends-head")
      .map(({ stream }) => stream)
  const names = [...new Set(events.map(({ stream }) => stream))]

  it("has the SHA-256 of the list of streams as its digest, and of the lines of each bucket", () => {
    expect(createHash("sha256").update(list).digest("base64url")).toBe(head.digest)
    expect(streams.map(({ name }) => name)).toEqual(names.toSorted())
    for (const { hash, name, revision } of streams) {
      const bucket = createHash("sha256").update(name).digest("hex").slice(0, 3)
      expect(bucketOf(name)).toBe(bucket)
      expect(head.buckets?.[bucket]).toBe(createHash("sha256").update(`${name}\n${revision}\n${hash}\n`).digest("base64url"))
    }
    for (const text of ["x", `${list}x\n`, list.replace("account-", "account"), list.trimEnd()])
      expect(parseStreamList(text)).toBeUndefined()
  })

  it("names the stream that was rewritten or cut off, and with the list also one that is gone", async () => {
    for (const name of names) {
      const first = events.find(({ stream }) => stream === name)
      const rewritten = rehashed(events.map((event) => (event === first ? withData(event, (data) => ({ ...data, more: 1 })) : event)))
      const last = events.findLastIndex(({ stream }) => stream === name)
      const cut = placed(events.toSpliced(last, 1))
      for (const forged of [rewritten, cut]) {
        expect(await named(forged, head, true)).toEqual([name])
        // The head alone knows that streams of a bucket are gone, not which
        const isGone = forged === cut && last === events.findIndex(({ stream }) => stream === name)
        expect(await named(forged, head, false)).toEqual([isGone ? "$all" : name])
      }
      const gone = placed(events.filter(({ stream }) => stream !== name))
      expect(await named(gone, head, true)).toEqual([name])
      expect(await named(gone, head, false)).toEqual(["$all"])
    }
  })

  it("of an earlier release, without buckets, is accepted", async () => {
    const { buckets: _, ...old } = head
    expect((await audit({ events, snapshots: nothing }, { against: old })).problems).toEqual([])
    expect((await audit({ events: events.slice(0, -1), snapshots: nothing }, { against: old })).problems).toMatchObject([
      { rule: "log-extends-head" }
    ])
  })

  it("is compared at its place in a log that has grown", async () => {
    const early = await audit({ events: events.slice(0, 60), snapshots: nothing })
    expect((await audit({ events, snapshots: nothing }, { against: early.head })).problems).toEqual([])
    const changed = rehashed(events.map((event, i) => (i === 70 ? withData(event, (data) => ({ ...data, more: 1 })) : event)))
    expect(await named(changed, early.head, false)).toEqual([])
  })
})
