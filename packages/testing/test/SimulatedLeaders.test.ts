/** Simulations in which one host leads each account: hosts forward calls, links break, hosts disagree about who leads, and leaders end. */
import { Effect } from "effect"
import { afterEach, describe, expect, test, vi } from "vitest"
import * as Simulator from "../src/Simulator.ts"
import { Links } from "../src/simulator/Links.ts"

const SOAK = Math.max(1, Number(process.env["MILLRACE_SOAK"] ?? 1))
const FIRST = Number(process.env["MILLRACE_SEED"] ?? 1)
/** Without what concerns no leader. */
const ALONE = { webhooks: 0, inboxes: 0, codes: 0, proxies: 0, payments: 0, subscriptions: 0, people: 0 }

const simulate = (seed: number, options: Omit<Simulator.Options<never>, "seed" | "workload"> = {}) =>
  Simulator.run({ ...ALONE, hosts: 2 + (seed % 2), leading: true, ...options, seed })

afterEach(() => vi.restoreAllMocks())

describe("with leaders, the simulator finds no violation", () => {
  const met = new Map<string, number>()

  test(
    "under all faults",
    async () => {
      for (let seed = FIRST; seed < FIRST + 10 * SOAK; seed++)
        for (const line of (await Effect.runPromise(simulate(seed))).trace)
          for (const [what = ""] of line.matchAll(/the link breaks .*$|(?<=hears that \w+ ).*$/gu)) met.set(what, (met.get(what) ?? 0) + 1)
    },
    120_000 * SOAK
  )

  test("under broken links alone", async () => {
    for (let seed = FIRST; seed < FIRST + 3 * SOAK; seed++)
      await Effect.runPromise(simulate(seed, { faults: { ...Simulator.none, links: 0.4 } }))
  }, 60_000)

  // A simulation that never meets these would prove nothing
  test("and meets each way in which a link breaks, and each end of a call", () => {
    const breaks = ["before it is sent", "on its way", "while it runs", "on the way back"].map((where) => `the link breaks ${where}`)
    for (const what of [...breaks, "has ended", "is lost", "was not sent"])
      expect([what, met.get(what) ?? 0]).toEqual([what, expect.toSatisfy((times: number) => times > 3)])
  })
})

describe("with leaders, the simulator finds", () => {
  test("a call that runs again after its link broke", async () => {
    vi.spyOn(Links.prototype, "afterBreak").mockReturnValue({ _tag: "NotBegun" })
    const run = (seed: number) => Effect.runPromise(Effect.result(simulate(seed, { keys: 0, faults: { ...Simulator.none, links: 0.4 } })))
    const violations: Array<string> = []
    for (let seed = FIRST; seed < FIRST + 3; seed++) {
      const ran = await run(seed)
      if (ran._tag === "Failure") violations.push(...ran.failure.violations)
    }
    expect(violations).toContainEqual(expect.stringContaining("was charged 2 times"))
  }, 60_000)

  test("nothing where links are whole, and the same trace each time", async () => {
    const faults = Simulator.none
    const [one, other] = await Promise.all([1, 2].map(() => Effect.runPromise(simulate(FIRST, { faults }))))
    expect(one?.trace.some((line) => line.includes(" forwards "))).toBe(true)
    expect(other?.hash).toBe(one?.hash)
  })
})
