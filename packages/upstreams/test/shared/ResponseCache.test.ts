import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { Reply } from "../../src/shared/ByteService.ts"
import { ResponseCache } from "../../src/shared/ResponseCache.ts"

const request = { method: "GET", url: "https://api.example/a", headers: { accept: "application/json" } }

const reply = (headers: Readonly<Record<string, string>>, body = "1", status = 200): Reply => ({
  status,
  headers,
  bytes: Buffer.from(body)
})

const textOf = (reply: Reply | undefined) => Buffer.from(reply?.bytes ?? []).toString()

/** An effect with a cache on the test's clock. */
const withCache = <A>(body: (cache: ResponseCache) => Effect.Effect<A>, byteLimit = 1_000_000): Promise<A> =>
  Effect.runPromise(
    Effect.flatMap(Clock.Clock, (clock) => body(new ResponseCache(clock, byteLimit))).pipe(Effect.provide(TestClock.layer()))
  )

/** The server's policies: how long a reply stays fresh, and whether it has a validator. */
const policies = fc.record({ maxAge: fc.constantFrom(undefined, 0, 5, 60), tagged: fc.boolean() })

/** A server changes its content, time passes, and somebody reads. */
const steps = fc.array(
  fc.oneof(
    fc.constant({ _tag: "change" } as const),
    fc.record({ _tag: fc.constant("wait" as const), seconds: fc.integer({ min: 1, max: 30 }) }),
    fc.constant({ _tag: "read" } as const)
  ),
  { maxLength: 40 }
)

describe("a kept reply", () => {
  test("is what a plain cache would answer: fresh for its max-age, then asked for again, by its tag where it has one", () =>
    fc.assert(
      fc.asyncProperty(policies, steps, async ({ maxAge, tagged }, steps) => {
        await withCache(
          Effect.fnUntraced(function* (cache) {
            let [version, now] = [1, 0]
            let kept: { readonly version: number; readonly at: number } | undefined
            const headers = () => ({
              ...(maxAge === undefined ? {} : { "cache-control": `max-age=${maxAge}` }),
              ...(tagged ? { etag: `"${version}"` } : {})
            })
            for (const step of steps) {
              if (step._tag === "change") version++
              if (step._tag === "wait") {
                now += step.seconds
                yield* TestClock.adjust(`${step.seconds} seconds`)
              }
              if (step._tag !== "read") continue
              const found = cache.find(request)
              const isFresh = kept !== undefined && now - kept.at < (maxAge ?? 0)
              expect(found._tag).toBe(isFresh ? "Fresh" : kept !== undefined && tagged ? "Stale" : "None")
              if (found._tag === "Fresh") {
                expect(textOf(found.reply)).toBe(String(kept?.version))
                continue
              }
              if (found._tag === "Stale") expect(found.conditions).toEqual({ "if-none-match": `"${kept?.version}"` })
              const isSame = found._tag === "Stale" && kept?.version === version
              const taken = cache.take(request, found, isSame ? reply(headers(), "", 304) : reply(headers(), String(version)))
              expect([taken?.status, textOf(taken)]).toEqual([200, String(version)])
              kept = { version, at: now }
            }
          })
        )
      }),
      { seed: 1, numRuns: 200 }
    ))

  test.each([
    ["no-store", { "cache-control": "no-store, max-age=60", etag: '"1"' }, 200],
    ["neither age nor validator", {}, 200],
    ["an error", { "cache-control": "max-age=60" }, 500],
    ["a redirect", { "cache-control": "max-age=60", location: "/b" }, 302],
    ["something that is not there", { "cache-control": "max-age=60" }, 404],
    ["a reply that varies by everything", { "cache-control": "max-age=60", vary: "*" }, 200]
  ])("is none for %s", (_, headers, status) =>
    withCache((cache) =>
      Effect.sync(() => {
        const taken = cache.take(request, cache.find(request), reply(headers as Record<string, string>, "1", status))
        expect(taken?.status).toBe(status)
        expect(cache.find(request)._tag).toBe("None")
      })
    )
  )

  test("of the host's own credentials is kept, and never answers a request with other headers", () =>
    withCache((cache) =>
      Effect.sync(() => {
        cache.take(request, cache.find(request), reply({ "cache-control": "private, max-age=60" }))
        expect(cache.find(request)._tag).toBe("Fresh")
        expect(cache.find({ ...request, headers: { accept: "text/html" } })._tag).toBe("None")
        expect(cache.find({ ...request, url: "https://api.example/b" })._tag).toBe("None")
      })
    ))

  test("of a platform that says nothing of its age is asked for again, however old its content is", () =>
    withCache((cache) =>
      Effect.gen(function* () {
        yield* TestClock.setTime(Date.UTC(2026, 0, 22))
        const since = "Thu, 22 Jan 2015 00:00:00 GMT"
        cache.take(request, cache.find(request), reply({ "last-modified": since, date: "Thu, 22 Jan 2026 00:00:00 GMT" }))
        expect(cache.find(request)).toMatchObject({ _tag: "Stale", conditions: { "if-modified-since": since } })
      })
    ))

  test("outlives an error of the upstream, and goes when the resource has gone", () =>
    withCache((cache) =>
      Effect.sync(() => {
        cache.take(request, cache.find(request), reply({ etag: '"1"' }))
        cache.take(request, cache.find(request), reply({}, "", 503))
        expect(cache.find(request)._tag).toBe("Stale")
        cache.take(request, cache.find(request), reply({}, "", 404))
        expect(cache.find(request)._tag).toBe("None")
      })
    ))

  test("answers no 304 that nobody asked for", () =>
    withCache((cache) => Effect.sync(() => expect(cache.take(request, cache.find(request), reply({}, "", 304))).toBeUndefined())))

  test("gives room to newer ones, and one that is too large is not kept", () =>
    withCache(
      (cache) =>
        Effect.sync(() => {
          const at = (i: number) => ({ ...request, url: `https://api.example/${i}` })
          const keep = (i: number, bytes: number) =>
            cache.take(at(i), { _tag: "None" }, reply({ "cache-control": "max-age=60" }, "x".repeat(bytes)))
          for (let i = 0; i < 100; i++) keep(i, 10_000)
          const kept = Array.from({ length: 100 }, (_, i) => cache.find(at(i))._tag)
          const first = kept.indexOf("Fresh")
          expect(kept.filter((tag) => tag === "Fresh").length * 10_000).toBeLessThanOrEqual(100_000)
          expect(kept.slice(first).every((tag) => tag === "Fresh")).toBe(true)
          keep(0, 20_000)
          expect(cache.find(at(0))._tag).toBe("None")
        }),
      100_000
    ))
})
