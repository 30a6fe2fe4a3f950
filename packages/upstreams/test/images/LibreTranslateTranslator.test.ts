import { Image } from "@millrace/core"
import { LibreTranslateTranslator } from "@millrace/upstreams"
import { Effect, Fiber, Redacted, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import { faults, hangs, json, jsonOf, serve } from "./VendorService.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

const translate = (baseUrl: URL, options: Partial<LibreTranslateTranslator.Options> = {}) =>
  Image.Translator.use((translator) => translator.translate("un moulin à eau")).pipe(
    Effect.provide(LibreTranslateTranslator.layer({ baseUrl, ...options }))
  )

/** A reply in the shape of the published API, with all of its fields. */
const published = { alternatives: [], detectedLanguage: { confidence: 90, language: "fr" }, translatedText: "a water mill" }

describe("a LibreTranslate server", () => {
  test("is asked by its API", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(json(published))
        expect(yield* translate(service.url, { apiKey: Redacted.make("secret") })).toBe("a water mill")
        const asked = yield* service.arrivals
        expect(asked).toMatchObject({ method: "POST", path: "/translate" })
        expect(jsonOf(asked)).toEqual({ q: "un moulin à eau", source: "auto", target: "en", format: "text", api_key: "secret" })
        yield* translate(new URL("/below/", service.url))
        const below = yield* service.arrivals
        expect([below.path, jsonOf(below)["api_key"]]).toEqual(["/below/translate", undefined])
      })
    ))

  test.each([
    ...faults(published),
    ["a text too long", json({ translatedText: "x".repeat(8_001) })] as const,
    ["no text", json({ translatedText: "" })] as const,
    ["a list of texts", json({ translatedText: ["a water mill"] })] as const,
    ["403 for the key", json({ error: "Invalid API key" }, 403)] as const
  ])("is unavailable if it answers with %s, and its words reach no log", (_, answer) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer)
        const error = yield* Effect.flip(translate(url))
        expect(error).toMatchObject({ _tag: "UpstreamUnavailable", upstream: "libretranslate" })
        expect(error).not.toHaveProperty("isolated")
        expect(JSON.stringify(error)).not.toMatch(/moulin|water/u)
      })
    )
  )

  test("is unavailable for this text only if it answers 400", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(json({ error: "Invalid request: request (15) exceeds text limit (10)" }, 400))
        expect(yield* Effect.flip(translate(url))).toMatchObject({ _tag: "UpstreamUnavailable", isolated: true })
      })
    ))

  test.each(hangs)("is unavailable if it hangs %s longer than allowed, and the connection is closed", (_, answer) =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(answer)
        const asked = yield* Effect.forkChild(Effect.flip(translate(service.url)), { startImmediately: true })
        yield* service.arrivals
        yield* TestClock.adjust("20 seconds")
        expect(yield* Fiber.join(asked)).toMatchObject({ _tag: "UpstreamUnavailable" })
        yield* service.left
      })
    )
  )
})
