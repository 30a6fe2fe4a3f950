/**
 * The simulator over hundreds of seeds, and an hour in which every N-th append fails. `MILLRACE_SOAK` runs so many times as many seeds,
 * from `MILLRACE_SEED` on.
 */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Bin, Grammar, Operation } from "@millrace/core"
import { Effect, Layer, Schema } from "effect"
import { describe, expect, test } from "vitest"
import type * as FaultyEventStore from "../src/FaultyEventStore.ts"
import * as Simulator from "../src/Simulator.ts"

const SOAK = Math.max(1, Number(process.env["MILLRACE_SOAK"] ?? 1))
const FIRST = Number(process.env["MILLRACE_SEED"] ?? 1)
const SEEDS = 600 * SOAK
const CHUNKS = 6

const simulate = (seed: number, options: Omit<Simulator.Options<never>, "seed" | "workload"> = {}) =>
  Effect.runPromise(Simulator.run({ ...options, seed }))

describe("whatever happens, everybody is told the truth and nobody pays for less", () => {
  const stats: Record<string, number> = {}

  for (let chunk = 0; chunk < CHUNKS; chunk++) {
    const first = FIRST + (chunk * SEEDS) / CHUNKS
    const last = first + SEEDS / CHUNKS - 1
    test(
      `seeds ${first} to ${last}`,
      async () => {
        for (let seed = first; seed <= last; seed++)
          for (const [what, times] of Object.entries((await simulate(seed)).stats)) stats[what] = (stats[what] ?? 0) + times
      },
      120_000 * SOAK
    )
  }

  // A simulation that no longer meets them would prove nothing
  test("and all of it does happen", () => {
    const met = Object.keys(stats)
    expect(met).toEqual(
      expect.arrayContaining(
        [
          ...["done", "replayed", "InFlight", "KeyReused", "OutcomeUnknown", "ResultWithheld", "hung", "Disconnected", "died"],
          ...["StoreUnavailable", "StateUnavailable", "AppendInDoubt", "Busy", "CostExceedsLimit", "InsufficientCredits"],
          ...["AccountSuspended", "AccountInDebt", "InvalidInput", "NotFound", "UpstreamUnavailable", "UpstreamNotConfigured"]
        ].map((told) => `told ${told}`)
      )
    )
    expect(met).toEqual(
      expect.arrayContaining(["LotExpired", "Refunded", "CreditsClawedBack", "ClawbackReversed", "DebtRepaid", "AccountReinstated"])
    )
    expect(stats["promises"]).toBeGreaterThan(0)
  })
})

describe("what was found once stays mended", () => {
  const FOUND = {
    23: "a later attempt that had failed put its reply in the place of a late success's: that one ran and was charged again",
    90: "a late success, to be charged anew, put its reply in the place of a later attempt's: that one ran and was charged again",
    311: "a call of a recoverable operation was told that it failed, its refund did not get through, and recovery charged it"
  }

  for (const [seed, what] of Object.entries(FOUND)) test(`seed ${seed}: ${what}`, () => simulate(Number(seed)))
})

describe("a seed", () => {
  const SEED = 7

  test("gives the same trace and the same log each time", async () => {
    const [one, other] = [await simulate(SEED), await simulate(SEED)]
    expect(other.trace).toEqual(one.trace)
    expect(other.events).toEqual(one.events)
    expect(other.hash).toBe(one.hash)
    expect((await simulate(SEED + 1)).hash).not.toBe(one.hash)
  })

  test("gives them in another process, too", async () => {
    const program = `
      import { Effect } from "effect"
      import * as Simulator from ${JSON.stringify(new URL("../src/Simulator.ts", import.meta.url).href)}
      const { hash } = await Effect.runPromise(Simulator.run({ seed: ${SEED} }))
      process.stdout.write(hash)
    `
    const cwd = fileURLToPath(new URL("..", import.meta.url))
    const node = promisify(execFile)(process.execPath, ["--conditions=@millrace/source", "--input-type=module", "--eval", program], { cwd })
    expect((await node).stdout).toBe((await simulate(SEED)).hash)
  })
})

describe("a host's own operations", () => {
  const workload: Simulator.Workload<typeof Bin.lookup | typeof Grammar.check> = {
    offers: [
      { operation: Bin.lookup, input: (random) => ({ bin: `${400_000 + random.below(99)}` }), price: 500 },
      { operation: Grammar.check, input: (random) => ({ text: "They is here.", language: random.pick(["en", "tlh"]) }), price: 900 }
    ],
    services: Layer.mergeAll(
      Layer.succeed(Bin.BinDirectory, {
        lookup: (bin) => Effect.succeed({ bin, scheme: "visa", type: null, brand: null, country: null, bank: null })
      }),
      Layer.succeed(Grammar.GrammarChecker, {
        supports: (language) => language === "en",
        check: () => Effect.delay(Effect.succeed({ matches: [] }), 100)
      })
    )
  }

  test("are called with their services, and billed as they are priced", async () => {
    const { told, events } = await Effect.runPromise(Simulator.run({ seed: 1, steps: 60, workload, faults: Simulator.none }))
    const answers = (key: string) =>
      new Set(told.flatMap(({ operation, answer }) => (operation === key ? [answer.split(/[ ,]/u, 1)[0]] : [])))
    expect(answers("bin.lookup")).toContain("done")
    expect(answers("grammar.check")).toContain("InvalidInput")
    const first = events.find(({ type, data }) => type === "CreditReserved" && data.includes("bin.lookup"))
    expect(first?.data).toContain(`"amount":500`)
  })

  test("keep to it in any weather", async () => {
    for (let seed = 1; seed <= 20; seed++) await Effect.runPromise(Simulator.run({ seed, workload }))
  })
})

describe("a simulation that fails", () => {
  const complaining = Operation.make("complaining.one", {
    summary: "Complains of something in the log of its host",
    route: { method: "POST", path: "/complaining", body: { n: Schema.Int } },
    success: Schema.Struct({ n: Schema.Int }),
    run: ({ n }) => Effect.as(Effect.logWarning("something is wrong"), { data: { n } })
  })
  const workload: Simulator.Workload<typeof complaining> = {
    offers: [{ operation: complaining, input: (random) => ({ n: random.below(3) }), price: 1_000 }],
    services: Layer.empty
  }

  test("says what is wrong, what happened last, and how to see it again", async () => {
    const run = Simulator.run({ seed: 99, steps: 20, workload, faults: { ...Simulator.none, late: "charge" } })
    const { message, seed, trace, violations } = await Effect.runPromise(Effect.flip(run))
    expect(seed).toBe(99)
    expect(violations[0]).toContain("logs: something is wrong")
    expect(message).toContain("Simulation of seed 99")
    expect(message).toContain(violations[0])
    expect(message).toContain(`"seed":99,"steps":20`)
    expect(message).toContain(trace.at(-1))
  })
})

describe("an hour in which every N-th append fails, for every N", () => {
  /** Some 190 appends of 110 things that happen at two hosts, from the first hold to an hour later. */
  const hour = (appends: Readonly<Record<number, FaultyEventStore.Fault>> = {}) =>
    simulate(45, { steps: 110, hosts: 2, faults: { ...Simulator.none, upstreams: 0.2, hangUps: 0.05, leaps: 0.04, appends } })
  const LONGEST = 190
  const PARTS = 3

  test(`is ${LONGEST} appends long`, async () => {
    const { trace, stats } = await hour()
    const begun = trace.findIndex((line) => line.includes(" is up") && !line.includes("founder"))
    const appends = trace.slice(begun).filter((line) => line.includes(" log: ")).length
    expect(appends).toBeGreaterThan(LONGEST - 15)
    expect(appends).toBeLessThanOrEqual(LONGEST)
    expect(stats["OperationSucceeded"]).toBeGreaterThan(50)
  })

  for (const fault of ["before", "after", "unanswered"] as const) {
    for (let part = 0; part < PARTS; part++) {
      test(`with the fault "${fault}", part ${part + 1} of ${PARTS}`, async () => {
        for (let n = 1 + part; n <= LONGEST; n += PARTS) {
          // Those sent again count, too, so there are more of them
          const failing = Array.from({ length: Math.ceil((8 * LONGEST) / n) }, (_, i) => [(i + 1) * n, fault] as const)
          await hour(Object.fromEntries(failing))
        }
      }, 120_000)
    }
  }
})
