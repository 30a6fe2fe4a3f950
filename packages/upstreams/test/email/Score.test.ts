import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { type Findings, scoreOf } from "../../src/email/MailDomain.ts"

const findings: fc.Arbitrary<Findings> = fc.record({
  delivery: fc.constantFrom("mx", "address", "none"),
  healthy: fc.boolean(),
  disposable: fc.boolean(),
  role: fc.boolean()
})

const BEST: Findings = { delivery: "mx", healthy: true, disposable: false, role: false }

const always = (holds: (findings: Findings) => void) => fc.assert(fc.property(findings, holds), { seed: 1 })

describe("a score", () => {
  test.each<[number, Partial<Findings>]>([
    [0.9, {}],
    [0.75, { role: true }],
    [0.8, { healthy: false }],
    [0.65, { role: true, healthy: false }],
    [0.1, { disposable: true }],
    [0.1, { disposable: true, role: true, healthy: false }],
    [0.5, { delivery: "address" }],
    [0.35, { delivery: "address", role: true }],
    [0.25, { delivery: "address", role: true, healthy: false }],
    [0.1, { delivery: "address", disposable: true }],
    [0, { delivery: "none" }]
  ])("is %d for the best address with %j", (score, found) => {
    expect(scoreOf({ ...BEST, ...found })).toBe(score)
  })

  test("is 0 exactly if mail cannot be delivered, and at most 0.9", () => {
    always((found) => {
      const score = scoreOf(found)
      expect(score === 0).toBe(found.delivery === "none")
      expect(score).toBeGreaterThanOrEqual(0)
      expect(score).toBeLessThanOrEqual(0.9)
      expect(Math.round(score * 100) / 100).toBe(score)
    })
  })

  test("is at most 0.1 for a disposable address, and higher for deliverable others", () => {
    always((found) => {
      const disposable = scoreOf({ ...found, disposable: true })
      expect(disposable).toBeLessThanOrEqual(0.1)
      const lasting = scoreOf({ ...found, disposable: false })
      expect(found.delivery === "none" ? lasting === 0 : lasting > disposable).toBe(true)
    })
  })

  test("is never raised by a fault of the address", () => {
    always((found) => {
      const score = scoreOf(found)
      expect(scoreOf({ ...found, role: true })).toBeLessThanOrEqual(score)
      expect(scoreOf({ ...found, healthy: false })).toBeLessThanOrEqual(score)
      expect(scoreOf({ ...found, disposable: true })).toBeLessThanOrEqual(score)
      expect(scoreOf({ ...found, delivery: "mx" })).toBeGreaterThanOrEqual(scoreOf({ ...found, delivery: "address" }))
      expect(scoreOf({ ...found, delivery: "address" })).toBeGreaterThanOrEqual(scoreOf({ ...found, delivery: "none" }))
    })
  })
})
