/** The simulator where most steps concern subscriptions. `MILLRACE_SOAK` multiplies the number of seeds; `MILLRACE_SEED` is the first one. */
import { Effect } from "effect"
import { describe, expect, test } from "vitest"
import * as Simulator from "../src/Simulator.ts"

const SOAK = Math.max(1, Number(process.env["MILLRACE_SOAK"] ?? 1))
const FIRST = Number(process.env["MILLRACE_SEED"] ?? 1)

const EVENTS = [
  ...["Started", "PeriodRequested", "PeriodBegan", "PaymentFailed", "UpgradeRequested", "PlanChanged", "PlanChosen", "PaymentNotNeeded"],
  ...["Canceled", "Resumed", "Ended"]
].map((event) => `Subscription${event}`)
const TURNS = ["subscription renewed", ...["canceled", "unpaid", "replaced", "refunded"].map((reason) => `subscription ended: ${reason}`)]

describe("the simulator finds no violation of subscriptions", () => {
  const stats: Record<string, number> = {}
  const isMet = () => [...EVENTS, ...TURNS].every((what) => what in stats)

  // Which seeds meet all kinds changes with the code
  test(
    "under all faults",
    async () => {
      for (let seed = FIRST; seed < FIRST + 5 * SOAK || (!isMet() && seed < FIRST + 20 * SOAK); seed++) {
        const run = await Effect.runPromise(
          Simulator.run({ seed, steps: 60, subscriptions: 0.8, workload: () => Simulator.standard({ jobs: false }) })
        )
        for (const [what, times] of Object.entries(run.stats)) stats[what] = (stats[what] ?? 0) + times
      }
    },
    120_000 * SOAK
  )

  test("and meets every kind of event, and of end", () => {
    for (const what of [...EVENTS, ...TURNS])
      expect([what, stats[what] ?? 0]).toEqual([what, expect.toSatisfy((times: number) => times > 0)])
    expect(stats["SubscriptionPeriodBegan"]).toBeGreaterThan(10)
  })
})

describe("a day of subscriptions at two hosts", () => {
  const day = (faults: Partial<Simulator.Faults>) =>
    Effect.runPromise(
      Simulator.run({
        ...{ seed: 5, steps: 14, hosts: 2, keys: 0, opens: 0, subscriptions: 1 },
        workload: () => Simulator.standard({ jobs: false }),
        faults: { ...Simulator.none, ...faults }
      })
    )

  /** Every eighth write, and at each another stage; every write with `MILLRACE_SOAK`. */
  const STRIDE = SOAK > 1 ? 1 : 8

  test(
    "ends correctly when a host dies at any of its writes",
    async () => {
      const { stats } = await day({})
      expect(stats["SubscriptionPeriodBegan"]).toBeGreaterThan(1)
      let crashes = 0
      for (let write = 1, met = true; met; write += STRIDE) {
        const stage = (["before", "sent", "arrived"] as const)[write % 3] ?? "sent"
        const { trace } = await day({ crash: { write, stage } })
        met = trace.some((line) => line.includes("crashes by plan"))
        if (met) crashes++
      }
      expect(crashes).toBeGreaterThan(5)
    },
    120_000 * SOAK
  )
})
