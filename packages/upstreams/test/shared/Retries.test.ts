import { UpstreamUnavailable } from "@millrace/core"
import { Result } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { waitAfter } from "../../src/shared/Retries.ts"

const NOW = Date.parse("2026-09-21T10:00:00Z")

const answer = (status: number, headers: Readonly<Record<string, string>> = {}) =>
  Result.succeed({ status, headers, bytes: new Uint8Array() })

describe("a request that is safe to repeat", () => {
  test("is repeated without an answer, and after those that pass", () => {
    expect(waitAfter(Result.fail(new UpstreamUnavailable({ upstream: "stripe", reason: "no answer" })), 7, NOW)).toBe(7)
    for (const status of [409, 429, 500, 502, 503, 504]) expect(waitAfter(answer(status), 7, NOW)).toBe(7)
    for (const status of [200, 201, 302, 400, 401, 402, 404, 422]) expect(waitAfter(answer(status), 7, NOW)).toBeUndefined()
  })

  test("is repeated as the server advises", () => {
    expect(waitAfter(answer(500, { "stripe-should-retry": "false" }), 7, NOW)).toBeUndefined()
    expect(waitAfter(answer(400, { "stripe-should-retry": "true" }), 7, NOW)).toBe(7)
    expect(waitAfter(answer(200, { "stripe-should-retry": "true" }), 7, NOW)).toBeUndefined()
  })

  test("waits as long as it is asked to, and is not repeated if that is long", () => {
    fc.assert(
      fc.property(fc.nat(30), (seconds) => {
        const expected = seconds <= 10 ? Math.max(500, seconds * 1_000) : undefined
        expect(waitAfter(answer(429, { "retry-after": String(seconds) }), 500, NOW)).toBe(expected)
        const date = new Date(NOW + seconds * 1_000).toUTCString()
        expect(waitAfter(answer(503, { "retry-after": date }), 500, NOW)).toBe(expected)
      })
    )
  })

  test("waits as usual if what it is asked makes no sense, or is past", () => {
    for (const value of ["", "soon", "-5", "1.5", "Mon, 01 Jan 2001 00:00:00 GMT"])
      expect(waitAfter(answer(429, { "retry-after": value }), 500, NOW), value).toBe(500)
  })
})
