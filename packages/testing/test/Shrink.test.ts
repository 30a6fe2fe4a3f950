/** How a failure is shrunk and shown, over failures that are made by a rule instead of a simulation. */
import { Effect } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { excerpt } from "../src/simulator/Excerpt.ts"
import * as Faults from "../src/simulator/Faults.ts"
import { pastedTest } from "../src/simulator/PastedTest.ts"
import { faultsOf, type Run } from "../src/simulator/Run.ts"
import type { Settings } from "../src/simulator/Settings.ts"
import { kindOf, shrink } from "../src/simulator/Shrink.ts"

const OPERATIONS = ["a.one", "b.two", "c.three"]

/** What a run must have to fail. */
interface Rule {
  readonly steps: number
  readonly hosts: number
  readonly fault: "upstreams" | "hangUps" | undefined
  readonly operation: string
}

const rules: fc.Arbitrary<Rule> = fc.record({
  steps: fc.integer({ min: 1, max: 40 }),
  hosts: fc.integer({ min: 1, max: 3 }),
  fault: fc.constantFrom("upstreams", "hangUps", undefined),
  operation: fc.constantFrom(...OPERATIONS)
})

const needs = ({ fault, hosts, operation, steps }: Rule, settings: Settings): boolean =>
  (settings.steps ?? 40) >= steps &&
  (settings.hosts ?? 3) >= hosts &&
  (fault === undefined || faultsOf(settings)[fault] > 0) &&
  (settings.operations ?? OPERATIONS).includes(operation)

/** A run that fails by the rule; otherwise in another way, or not at all. */
const runOf = (rule: Rule, settings: Settings): Run => {
  const violations = needs(rule, settings)
    ? [`q${settings.seed}: was charged ${settings.steps ?? 40} times`]
    : settings.hosts === 1
      ? ["else"]
      : []
  return {
    settings,
    violations,
    trace: violations,
    firstAt: 0,
    steps: settings.steps ?? 40,
    webhooks: settings.webhooks ?? 0.25,
    inboxes: settings.inboxes ?? 0.3,
    codes: settings.codes ?? 0.3,
    proxies: settings.proxies ?? 0.3,
    payments: settings.payments ?? 0.3,
    subscriptions: settings.subscriptions ?? 0.3,
    people: settings.people ?? 0.3,
    isReal: false,
    outcome: undefined
  }
}

const ALL: Settings = { seed: 7, hosts: 3, faults: { ...Faults.none, upstreams: 0.5, hangUps: 0.2, events: 0.1, appends: { 3: "before" } } }

const shrunk = (rule: Rule, limit: number) =>
  Effect.runSync(shrink(runOf(rule, ALL), OPERATIONS, limit, (settings) => Effect.sync(() => runOf(rule, settings))))

describe("shrinking", () => {
  test("ends at what the failure needs, and nothing more", () => {
    fc.assert(
      fc.property(rules, (rule) => {
        const { settings, violations } = shrunk(rule, 1_000).run
        expect(violations[0]).toContain("was charged")
        expect({ steps: settings.steps ?? 40, hosts: settings.hosts, operations: settings.operations }).toEqual({
          ...{ steps: rule.steps, hosts: rule.hosts },
          operations: [rule.operation]
        })
        const { codes, inboxes, keys, opens, payments, people, proxies, subscriptions, webhooks } = settings
        const none = { codes: 0, inboxes: 0, keys: 0, opens: 0, payments: 0, people: 0, proxies: 0, subscriptions: 0, webhooks: 0 }
        expect({ codes, inboxes, keys, opens, payments, people, proxies, subscriptions, webhooks }).toEqual(none)
        const left = Object.entries(settings.faults ?? {}).filter(([name, value]) => Reflect.get(Faults.none, name) !== value)
        expect(left.map(([name]) => name)).toEqual(rule.fault === undefined ? [] : [rule.fault])
      })
    )
  })

  test("uses no more runs than it may, keeps the kind of violation, and does the same each time", () => {
    fc.assert(
      fc.property(rules, fc.integer({ min: 0, max: 30 }), (rule, limit) => {
        fc.pre(needs(rule, ALL))
        const one = shrunk(rule, limit)
        expect(one.runs).toBeLessThanOrEqual(limit)
        expect(kindOf(one.run.violations[0] ?? "")).toBe("#: was charged # times")
        expect(shrunk(rule, limit)).toEqual(one)
      })
    )
  })

  test("takes violations for alike that differ in names and numbers only", () => {
    expect(kindOf("q12: was charged 3 times for acc_01Q3DCBD0R at h0.1")).toBe(kindOf("q7: was charged 2 times for acc_77Q3DCBD0R at h2.4"))
    expect(kindOf("q12: was charged 3 times")).not.toBe(kindOf("q12: was refunded 3 times"))
  })
})

describe("the excerpt of a trace", () => {
  const lines = fc.array(
    fc.nat(9).map((n) => `1 q${n}: something happens`),
    { minLength: 1, maxLength: 300 }
  )

  test("marks the violation, keeps the order, has its neighbours, and stays short", () => {
    fc.assert(
      fc.property(lines, fc.nat(), (trace, place) => {
        const at = place % trace.length
        const numbered = trace.map((line, i) => `${line} ${i}.`)
        const shown = excerpt(numbered, at)
        const numbers = shown.flatMap((line) => (line === "  ..." ? [] : [Number(/ (?<n>\d+)\.$/u.exec(line)?.groups?.["n"])]))
        expect(shown.filter((line) => line.startsWith("> "))).toEqual([`> ${numbered[at]}`])
        expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
        for (const i of [at - 2, at - 1, at + 1]) if (i >= 0 && i < trace.length) expect(numbers).toContain(i)
        expect(numbers.length).toBeLessThanOrEqual(60)
        expect(shown.includes("  ...")).toBe(numbers.length < trace.length)
      })
    )
  })

  test("has the distant lines of the call and of its account", () => {
    const noise = Array.from({ length: 100 }, (_, i) => `${i} upstream: works`)
    const trace = ["1 q3: calls a.one for acc_7 at h0.0", "2 log: account-acc_7 4: CreditReserved", ...noise, "9 checker: q3: is wrong"]
    expect(
      excerpt(trace, trace.length - 1)
        .slice(0, 2)
        .map((line) => line.trim())
    ).toEqual(trace.slice(0, 2))
  })
})

test("the printed test has only what differs from the defaults", () => {
  const source = { name: "letters", from: "./letters.ts" }
  const printed = pastedTest({ seed: 4, steps: 2, hosts: undefined, faults: { ...Faults.none, upstreams: 0.5 } }, "q1: is\nwrong", source)
  expect(printed).toContain(`import { letters } from "./letters.ts"`)
  expect(printed).toContain("// q1: is wrong\n")
  expect(printed).toContain("Simulator.run({ seed: 4, steps: 2, faults: { ...Simulator.none, upstreams: 0.5 }, workload: letters })")
  expect(pastedTest({ seed: 4, faults: { hosts: 0.1 } }, "", undefined)).toContain("Simulator.run({ seed: 4, faults: { hosts: 0.1 } })")
})
