import type { ServerResponse } from "node:http"
import { Bin, NotFound, UpstreamUnavailable } from "@millrace/core"
import { BinlistBinDirectory } from "@millrace/upstreams"
import { Effect, Fiber, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import { faults, hangs, json, nobody, serve } from "../shared/LocalService.ts"

/** The example of the published documentation. */
const published = {
  number: { length: 16, luhn: true },
  scheme: "visa",
  type: "debit",
  brand: "Visa/Dankort",
  prepaid: false,
  country: { numeric: "208", alpha2: "DK", name: "Denmark", emoji: "🇩🇰", currency: "DKK", latitude: 56, longitude: 10 },
  bank: { name: "Jyske Bank", url: "www.jyskebank.dk", phone: "+4589893300", city: "Hjørring" }
}

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

const lookup = (options: BinlistBinDirectory.Options, bin = "45717360") =>
  Bin.BinDirectory.use((directory) => directory.lookup(bin)).pipe(Effect.provide(BinlistBinDirectory.layer(options)))

const replied = (body: unknown) => Effect.flatMap(serve(json(body)), ({ url }) => lookup({ baseUrl: url }))

describe("a service shaped like binlist", () => {
  test.each(["", "/", "/v1/bins", "/v1/bins/"])("is asked below its base address, here ending in %j", (path) =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(json(published))
        expect(yield* lookup({ baseUrl: new URL(path, service.url) })).toEqual({
          bin: "45717360",
          scheme: "visa",
          type: "debit",
          brand: "Visa/Dankort",
          country: { name: "Denmark", code: "DK", currency: "DKK" },
          bank: { name: "Jyske Bank" }
        })
        const request = yield* service.received
        expect(request).toMatchObject({ method: "GET", path: `${path.replace(/\/$/u, "")}/45717360`, headers: { "accept-version": "3" } })
      })
    )
  )

  test.each([
    ["missing", { scheme: "jcb" }],
    ["null", { scheme: "jcb", type: null, brand: null, prepaid: null, country: null, bank: null }],
    ["empty objects", { number: {}, scheme: "jcb", country: {}, bank: {} }],
    ["empty words", { scheme: "jcb", type: "", brand: "", country: { alpha2: "", name: "Nowhere" }, bank: { name: "" } }]
  ])("does not know a BIN if %s", (_, body) =>
    run(
      Effect.gen(function* () {
        expect(yield* replied(body)).toEqual({ bin: "45717360", scheme: "jcb", type: null, brand: null, country: null, bank: null })
      })
    )
  )

  test("may write its fields differently", () =>
    run(
      Effect.gen(function* () {
        expect(yield* replied({ scheme: "amex", type: "Credit", country: { alpha2: "ch" } })).toMatchObject({
          scheme: "american-express",
          type: "credit",
          country: { name: "Switzerland", code: "CH", currency: "CHF" }
        })
        expect(yield* replied({ scheme: "Diners Club International", prepaid: true })).toMatchObject({
          scheme: "diners-club",
          type: "prepaid"
        })
        expect(yield* replied({ scheme: "visa", type: "debit", prepaid: true })).toMatchObject({ type: "debit" })
      })
    ))

  test.each([
    ["404", json({}, 404)],
    ["404 without a body", (response: ServerResponse) => response.writeHead(404).end()],
    ["no scheme", json({ ...published, scheme: null })]
  ] as const)("that answers with %s does not know the prefix", (_, answer) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer)
        expect(yield* Effect.flip(lookup({ baseUrl: url }))).toEqual(new NotFound({ resource: "bin" }))
      })
    )
  )

  test.each([
    ...faults(published, 65_536),
    ["a country that is none", json({ ...published, country: "Denmark" })] as const,
    ["a scheme that is no word", json({ ...published, scheme: 4 })] as const
  ])("is unavailable if it answers with %s", (_, answer) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer)
        expect(yield* Effect.flip(lookup({ baseUrl: url }))).toBeInstanceOf(UpstreamUnavailable)
      })
    )
  )

  test("is unavailable if it cannot be reached", () =>
    run(
      Effect.gen(function* () {
        expect(yield* Effect.flip(lookup({ baseUrl: yield* nobody }))).toBeInstanceOf(UpstreamUnavailable)
      })
    ))

  test.each(hangs(published))("is unavailable if it hangs %s longer than allowed, and the connection is closed", (_, answer) =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(answer)
        const asked = yield* Effect.forkChild(Effect.flip(lookup({ baseUrl: service.url })), { startImmediately: true })
        yield* service.received
        yield* TestClock.adjust("10 seconds")
        expect(yield* Fiber.join(asked)).toBeInstanceOf(UpstreamUnavailable)
        yield* service.abandoned
      })
    )
  )
})
