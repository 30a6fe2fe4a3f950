/** The list of rules: each can be reported, and each that is reported is in it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { AccountSnapshot } from "@millrace/core"
import { Effect } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { Audit, Export, lineOf, type Report, type RuleName, rules, statements, TENETS } from "../src/index.ts"
import { broken, event, granted, held, heldForJob, logOf, lots, opened, paid, part, refused, released, reserved, T0 } from "./Broken.ts"
import { audit, type Entry, placed, rehashed, storeOf, withData, written } from "./Logs.ts"

const nothing = new Map<string, never>()
const later: Entry = ["account-b", "2026-02-01T00:00:00.000Z", opened]
const sound = written(logOf(held))

const folder = mkdtempSync(join(tmpdir(), "millrace-catalog-"))
afterAll(() => rmSync(folder, { recursive: true }))
let exports = 0
const exported = (lines: ReadonlyArray<string>): Promise<Report> => {
  const file = join(folder, `export-${++exports}.jsonl`)
  writeFileSync(file, lines.map((line) => `${line}\n`).join(""))
  return Effect.runPromise(Audit.runExport(new Export(file)))
}
const of = (entries: ReadonlyArray<Entry>) => audit({ events: written(entries), snapshots: nothing })

/** Logs that break the rules of the log as a whole. */
const whole: Readonly<Partial<Record<RuleName, () => Promise<Report>>>> = {
  "position-increases": () =>
    audit({ events: sound.map((event) => ({ ...event, position: sound[0]?.position ?? event.position })), snapshots: nothing }),
  "position-follows": () => exported(sound.map(lineOf).toSpliced(1, 1)),
  "line-is-an-event": () => exported(["{}", ...sound.map(lineOf)]),
  "event-id-is-unique": () => audit({ events: rehashed(sound.map((event) => ({ ...event, id: "one" }))), snapshots: nothing }),
  "revision-follows": () => audit({ events: placed(sound.toSpliced(2, 1)), snapshots: nothing }),
  "link-holds": () => audit({ events: sound.map((event) => withData(event, (data) => ({ ...data, more: 1 }))), snapshots: nothing }),
  "stream-is-known": () => of([["note-1", T0, event("Noted")]]),
  "log-extends-head": async () =>
    audit({ events: sound.slice(0, 2), snapshots: nothing }, { against: (await audit({ events: sound, snapshots: nothing })).head }),
  "stream-extends-head": async () =>
    audit({ events: sound.slice(0, 2), snapshots: nothing }, { against: (await audit({ events: sound, snapshots: nothing })).head }),
  "snapshot-agrees": () =>
    audit({ events: sound, snapshots: new Map([[`accountSnapshot.v${AccountSnapshot.VERSION}-a`, { revision: 1, data: "{}" }]]) }),
  "reservation-is-made-once": () => of(logOf([...held, released("r", 100, lots), reserved("r", 100, lots)])),
  "payment-grants-once": () =>
    of([...logOf([opened, paid("p", 1)]), ["account-b", T0, opened], ["account-b", T0, paid("q", 1, { paymentRef: "pay_p" })]]),
  "sign-up-credits-are-granted-once": () =>
    of(logOf([opened, granted("s", 1, { source: "signup" }), granted("t", 1, { source: "signup" })])),
  "hold-is-not-overdue": () => of([...logOf([...held.slice(0, 2), reserved("r", 100, lots, { recoverable: true })]), later]),
  "holds-are-covered": () => of(logOf([opened, granted("l", 1_000), reserved("r", 100, [part("l", 99)])])),
  "job-is-settled": () => of([...logOf([...heldForJob, refused]), later])
}

describe("the list of rules", () => {
  it("has a log that breaks each of them", async () => {
    const byScript = new Set(broken.map(([rule]) => rule))
    for (const { name } of statements.filter(({ name }) => !byScript.has(name))) {
      const report = await whole[name]?.()
      expect([name, report?.problems.map(({ rule }) => rule)]).toEqual([name, expect.arrayContaining([name])])
    }
  })

  it("has every rule that a broken log of these tests breaks, with a sentence", async () => {
    const names = new Set<string>(statements.map(({ name }) => name))
    const reports = await Promise.all([...broken.map(([, , script]) => of(logOf(script))), ...Object.values(whole).map((make) => make())])
    const reported = new Set(reports.flatMap(({ problems }) => problems.map(({ rule }) => rule)))
    expect([...reported].filter((rule) => !names.has(rule))).toEqual([])
    expect([...names].filter((name) => !reported.has(name))).toEqual([])
    for (const { problems } of reports) for (const { means } of problems) expect(means.sentence).toMatch(/^[A-Z\d].+[.a-z\d]$/u)
  })

  it("has every rule of accounts, and guards tenets as docs/tenets.md numbers them", () => {
    const names = new Set(statements.map(({ name }) => name))
    expect(rules.filter(({ name }) => !names.has(name))).toEqual([])
    const page = readFileSync(new URL("../../../docs/tenets.md", import.meta.url), "utf8")
    const tenets = [...page.matchAll(/^(?<number>\d)\. \*\*(?<text>.+?)\.\*\*/gmu)].map(({ groups = {} }) => [
      groups["number"],
      groups["text"]
    ])
    expect(tenets).toEqual(Object.entries(TENETS))
    for (const { sentence } of statements) expect(sentence).toMatch(/^[A-Z].+\.$/u)
  })

  it("is the table of docs/auditing.md", () => {
    const page = readFileSync(new URL("../../../docs/auditing.md", import.meta.url), "utf8")
    const rows = [...page.matchAll(/^\| `(?<name>[a-z-]+)` \| (?<sentence>.+?) \| (?<tenet>\d) \|$/gmu)].map(({ groups = {} }) => groups)
    expect(rows.map(({ name, sentence, tenet }) => ({ name, sentence, tenet }))).toEqual(
      statements.map(({ name, sentence, tenet }) => ({ name, sentence, tenet: String(tenet) }))
    )
  })
})

describe("a finding says whose money it is:", () => {
  it("before, after, the amount, its worth, and the lot", async () => {
    const { problems } = await of(logOf([opened, granted("l", 50), reserved("r", 100, lots)]))
    expect(problems.find(({ rule }) => rule === "hold-takes-what-is-free")?.means).toEqual({
      account: "a",
      lot: "l",
      before: 0.05,
      credits: 0.05,
      worth: "0.00005 USD",
      sentence:
        "0.05 credits (0.00005 USD) were held that the lot did not have: they were spent before, had expired, or were never granted."
    })
  })

  it("in the money of the host", async () => {
    const { Money } = await import("@millrace/core")
    const money = { credit: "token", credits: "tokens", value: "0.5", currency: "EUR" }
    const events = written(logOf([opened, granted("l", 2_000), reserved("r", 1_000, [part("l", 1_000)], { quantity: 2 })]))
    const report = await Effect.runPromise(
      Audit.run().pipe(Effect.provideService(Money.Current, money), Effect.provide(storeOf({ events, snapshots: nothing })))
    )
    expect(report.problems[0]?.means).toMatchObject({ before: 2, after: 1, credits: 0.8, worth: "0.4 EUR" })
    expect(report.problems[0]?.means.sentence).toBe(
      "0.8 tokens (0.4 EUR) too much was held for grammar.check: 1 token (0.5 EUR) instead of 0.2 tokens (0.1 EUR)."
    )
  })
})
