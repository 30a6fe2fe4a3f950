/** The simulator where most steps concern people who sign in. `MILLRACE_SOAK` multiplies the number of seeds; `MILLRACE_SEED` is the first one. */
import { Effect } from "effect"
import { describe, expect, test } from "vitest"
import * as KeyHistory from "../src/KeyHistory.ts"
import * as Simulator from "../src/Simulator.ts"

const SOAK = Math.max(1, Number(process.env["MILLRACE_SOAK"] ?? 1))
const FIRST = Number(process.env["MILLRACE_SEED"] ?? 1)

const MET = [
  ...["SignInRequested", "SignInUsed", "SessionOpened", "SessionEnded", "ApiKeyIssued", "ApiKeyRotated", "ApiKeyRevoked", "TrialUsed"],
  ...["told TrialUsedUp", "people SignedUp", "people SignedOut"],
  ...["Followed admitted", "Followed refused", "Followed unknown", "Called in", "Called out"].map((what) => `people ${what}`),
  ...["Issued", "Rotated", "Revoked", "Used in", "Used out"].map((what) => `people key ${what}`)
]

describe("the simulator finds no violation of people who sign in", () => {
  const stats: Record<string, number> = {}

  test(
    "under all faults",
    async () => {
      for (let seed = FIRST; seed < FIRST + 6 * SOAK; seed++) {
        const workload = () => Simulator.standard({ jobs: false })
        const run = await Effect.runPromise(Simulator.run({ seed, steps: 60, people: 0.8, workload }))
        for (const [what, times] of Object.entries(run.stats)) stats[what] = (stats[what] ?? 0) + times
      }
    },
    120_000 * SOAK
  )

  test("and meets every kind of event and answer", () => {
    for (const what of MET) expect([what, stats[what] ?? 0]).toEqual([what, expect.toSatisfy((times: number) => times > 3)])
  })
})

describe("the checker of what was done with keys", () => {
  const during = (n: number) => ({ order: [2 * n, 2 * n + 1], time: [1_000 * n, 1_000 * n + 10] }) as const
  const issued: KeyHistory.Act = { _tag: "Issued", key: "k", expiresAt: null, ...during(0) }
  const used = (n: number, answer: "in" | "out", isRight = true): KeyHistory.Act => ({
    _tag: "Used",
    key: "k",
    answer,
    isRight,
    ...during(n)
  })
  const revoked = (isSure: boolean): KeyHistory.Act => ({ _tag: "Revoked", key: "k", isSure, ...during(2) })
  const rotated = (overlap: number, n = 2): KeyHistory.Act => ({ _tag: "Rotated", key: "k", overlap, isSure: true, ...during(n) })

  test("says nothing of what is right", () => {
    expect(KeyHistory.mistakesIn([issued, used(1, "in"), revoked(true), used(3, "out")])).toEqual([])
    // After a fault, a key may be revoked or not
    expect(KeyHistory.mistakesIn([issued, revoked(false), used(3, "in"), used(4, "out")])).toEqual([])
    expect(KeyHistory.mistakesIn([issued, rotated(2_000), used(3, "in"), used(5, "out"), used(5, "out", false)])).toEqual([])
    // At once with the act that ends it
    expect(KeyHistory.mistakesIn([issued, revoked(true), { ...used(2, "out"), order: [4, 6] }])).toEqual([])
    expect(KeyHistory.mistakesIn([{ ...issued, expiresAt: 3_005 }, used(3, "in"), { ...used(3, "out") }])).toEqual([])
  })

  test.each<[string, ReadonlyArray<KeyHistory.Act>, string]>([
    ["a key after it was revoked", [issued, revoked(true), used(3, "in")], "k was used after it was revoked"],
    ["a key after its expiry", [{ ...issued, expiresAt: 2_500 }, used(3, "in")], "k was used after its expiry"],
    ["a key after its overlap", [issued, rotated(500), used(3, "in")], "k was used after it was replaced"],
    ["a key that ends in its overlap", [issued, rotated(60_000), used(3, "out")], "k was refused, and had not ended"],
    ["a key that ends by itself", [issued, used(1, "out")], "k was refused, and had not ended"],
    ["a key by another secret", [issued, used(1, "in", false)], "k was taken with another secret"],
    ["a key that is replaced twice", [issued, rotated(0), rotated(0, 3)], "k was rotated twice"]
  ])("finds %s", (_, acts, mistake) => expect(KeyHistory.mistakesIn(acts)).toEqual([mistake]))
})
