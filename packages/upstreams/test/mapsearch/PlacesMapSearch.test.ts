import { Leads, UpstreamUnavailable } from "@millrace/core"
import { PlacesMapSearch } from "@millrace/upstreams"
import { Context, Effect, Layer, Logger, Redacted, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import { faults, json, nobody, serve } from "../shared/LocalService.ts"
import { answer, KEY, places } from "./PlacesServer.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

const at = (baseUrl: URL, options: Partial<PlacesMapSearch.Options> = {}) =>
  Effect.map(
    Layer.build(PlacesMapSearch.layer({ baseUrl, apiKey: Redacted.make(KEY), retries: 0, ...options })),
    Context.get(Leads.MapSearch)
  )

const SEARCH = { query: "bakeries in Utrecht", hl: "nl", limit: 20 }

describe("the Places API", () => {
  test("is asked for the fields that are used, and nothing is kept", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(answer())
        const map = yield* at(service.url)
        for (const _ of [1, 2]) {
          const { cache, data } = yield* map.search(SEARCH)
          expect([cache, data.map(({ title }) => title)]).toEqual(["miss", places.map(({ displayName }) => displayName.text)])
          const { body, headers } = yield* service.received
          expect(JSON.parse(body)).toEqual({ textQuery: "bakeries in Utrecht", languageCode: "nl", pageSize: 20 })
          expect(headers["x-goog-fieldmask"]).not.toMatch(/\s|\*/u)
        }
      })
    ))

  test("becomes the fields of the contract, null where it does not tell", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer())
        const [bakery, oven] = (yield* (yield* at(url)).search(SEARCH)).data
        expect(bakery).toEqual({
          ...{ platform: "google_places", type: "business", id: "ChIJifIePKtZwokRVZ-UdRGkZzs", url: places[0]?.googleMapsUri },
          ...{ title: "Bakkerij Neplenbroek", text: "Voorstraat 1, 3512 AH Utrecht, Netherlands" },
          ...{ author: { name: null, url: null }, thumbnail_url: null, published_at: null },
          stats: { views: null, likes: null, dislikes: null, replies: null, shares: null, rating: 4.6 },
          extra: {
            ...{ category: "Bakery", categories: places[0]?.types, reviews_count: 512, phone: "+31 30 231 0000", has_phone: true },
            ...{ website: "https://bakery.example/", has_website: true, latitude: 52.0935, longitude: 5.1174 },
            ...{ place_id: "ChIJifIePKtZwokRVZ-UdRGkZzs", cid: "4281112345678901234", attribution: "Google Maps, Some Guide" }
          }
        })
        expect(oven).toMatchObject({ url: null, text: null, stats: { rating: null } })
        expect(oven?.extra).toMatchObject({
          category: null,
          phone: null,
          has_phone: false,
          has_website: false,
          cid: null,
          attribution: "Google Maps"
        })
      })
    ))

  test("that finds nothing gives an empty list, and never more than asked for", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer())
        const map = yield* at(url)
        expect((yield* map.search({ ...SEARCH, query: "nothing" })).data).toEqual([])
        expect((yield* map.search({ ...SEARCH, limit: 1 })).data).toHaveLength(1)
        const many = yield* serve(json({ places }))
        expect((yield* (yield* at(many.url)).search({ ...SEARCH, limit: 2 })).data).toHaveLength(2)
      })
    ))

  test.each([
    ["another", 403],
    ["malformed", 400]
  ])("that refuses the key %s is unavailable, which the host's log is told", (key, status) =>
    run(
      Effect.gen(function* () {
        const lines: Array<string> = []
        const log = Logger.layer([Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${message}`))])
        const { url } = yield* serve(answer())
        const map = yield* at(url, { apiKey: Redacted.make(key) })
        const error = yield* Effect.flip(map.search(SEARCH)).pipe(Effect.provide(log))
        expect(error).toMatchObject({ _tag: "UpstreamUnavailable", reason: `it answered with status ${status}` })
        expect(lines).toEqual([`Error map search refuses this host or its credentials: it answered with status ${status}`])
        expect(JSON.stringify(error)).not.toMatch(/another|malformed|bakeries/u)
      })
    )
  )

  test.each(faults({ places }, 100_000))("is unavailable if it answers with %s", (_, answer) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer)
        const map = yield* at(url, { byteLimit: 100_000 })
        expect(yield* Effect.flip(map.search(SEARCH))).toBeInstanceOf(UpstreamUnavailable)
      })
    )
  )

  test.each([
    ["404", json({}, 404)],
    ["a place without an id", json({ places: [{ displayName: { text: "Oven" } }] })],
    ["a rating that is a text", json({ places: [{ id: "a", rating: "4.6" }] })]
  ])("is unavailable if it answers with %s", (_, answer) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer)
        expect(yield* Effect.flip((yield* at(url)).search(SEARCH))).toBeInstanceOf(UpstreamUnavailable)
      })
    )
  )

  test("is unavailable if it cannot be reached", () =>
    run(
      Effect.gen(function* () {
        expect(yield* Effect.flip((yield* at(yield* nobody)).search(SEARCH))).toBeInstanceOf(UpstreamUnavailable)
      })
    ))
})
