import { Leads, Pace, UpstreamUnavailable } from "@millrace/core"
import { MemoryStateStore } from "@millrace/event-sourcing"
import { OsmMapSearch } from "@millrace/upstreams"
import { Context, Effect, Fiber, Layer, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import { type Answer, faults, json, nobody, type Received, serve } from "../shared/LocalService.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

const LICENCE = "Data © OpenStreetMap contributors, ODbL 1.0. http://osm.org/copyright"

/** As Nominatim answers: https://nominatim.org/release-docs/latest/api/Output/ */
const place = (osm_id: number, name: string, more: object = {}) => ({
  ...{ place_id: 100_000 + osm_id, licence: LICENCE, osm_type: "node", osm_id, lat: "52.0935", lon: "5.1174" },
  ...{ category: "shop", type: "bakery", place_rank: 30, importance: 0.00001, addresstype: "shop", name },
  ...{ display_name: `${name}, Voorstraat 1, Utrecht, Netherlands`, boundingbox: ["52.09", "52.10", "5.11", "5.12"], ...more }
})

const found = [
  place(1, "Bakkerij", { extratags: { phone: "+31 30 231 0000; +31 30 231 0009", "contact:website": "https://bakery.example" } }),
  place(2, "", { osm_type: "way", display_name: "7, Voorstraat, Utrecht", extratags: null }),
  place(3, "A postcode", { osm_type: undefined, osm_id: undefined })
]

const elements = [
  { type: "node", id: 1, tags: { shop: "bakery", phone: "+31 30 231 1111" } },
  { type: "way", id: 2, tags: { "contact:phone": "+31 30 231 2222", website: "https://oven.example" } }
]

const overpassReply = { version: 0.6, generator: "Overpass API", osm3s: { copyright: "ODbL" }, elements }

const CONTACT = "ops@host.example"

const at = (nominatim: URL, options: Partial<OsmMapSearch.Options> = {}) =>
  Effect.map(
    Layer.build(
      OsmMapSearch.layer({ nominatim, contact: CONTACT, ...options }).pipe(Layer.provide(Pace.layer), Layer.provide(MemoryStateStore.layer))
    ),
    Context.get(Leads.MapSearch)
  )

const SEARCH = { query: "bakeries in Utrecht", hl: "nl", limit: 20 }

describe("a Nominatim server", () => {
  test("is asked for places of interest, by a host that says who it is", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(json(found))
        const { data } = yield* (yield* at(new URL("/nominatim", service.url))).search(SEARCH)
        const { headers, path } = yield* service.received
        const url = new URL(path, service.url)
        expect(url.pathname).toBe("/nominatim/search")
        expect(Object.fromEntries(url.searchParams)).toEqual({
          ...{ q: "bakeries in Utrecht", format: "jsonv2", layer: "poi", extratags: "1", limit: "20", "accept-language": "nl" }
        })
        expect(headers["user-agent"]).toBe(`millrace (${CONTACT})`)
        expect(data).toEqual([
          {
            ...{ platform: "openstreetmap", type: "business", id: "node/1", url: "https://www.openstreetmap.org/node/1" },
            ...{ title: "Bakkerij", text: "Voorstraat 1, Utrecht, Netherlands", author: { name: null, url: null } },
            ...{ thumbnail_url: null, published_at: null },
            stats: { views: null, likes: null, dislikes: null, replies: null, shares: null, rating: null },
            extra: {
              ...{ category: "bakery", categories: ["shop", "bakery"], reviews_count: null, phone: "+31 30 231 0000", has_phone: true },
              ...{ website: "https://bakery.example", has_website: true, latitude: 52.0935, longitude: 5.1174 },
              ...{ place_id: "node/1", cid: null, attribution: LICENCE }
            }
          },
          expect.objectContaining({ id: "way/2", title: "7, Voorstraat, Utrecht", text: "7, Voorstraat, Utrecht" })
        ])
      })
    ))

  test("finds nothing in an empty list, and no Overpass server is asked", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(json([]))
        expect((yield* (yield* at(url, { overpass: yield* nobody })).search(SEARCH)).data).toEqual([])
      })
    ))

  test("is asked once a second, whoever asks", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(json(found))
        const map = yield* at(service.url)
        const searches = yield* Effect.forEach(["a", "b", "c"], (query) =>
          Effect.forkChild(map.search({ ...SEARCH, query }), { startImmediately: true })
        )
        const asked = (request: Received) => new URL(request.path, service.url).searchParams.get("q")
        expect(asked(yield* service.received)).toBe("a")
        expect(searches.slice(1).map((fiber) => fiber.pollUnsafe())).toEqual([undefined, undefined])
        for (const [i, query] of ["b", "c"].entries()) {
          yield* TestClock.adjust("999 millis")
          expect(searches[i + 1]?.pollUnsafe()).toBeUndefined()
          yield* TestClock.adjust("100 millis")
          expect(asked(yield* service.received)).toBe(query)
        }
        const all = yield* Effect.forEach(searches, Fiber.join)
        expect(all.map(({ cache }) => cache)).toEqual(["miss", "miss", "miss"])
      })
    ))

  test("that is limited or moves is not asked again in the same turn", () =>
    run(
      Effect.gen(function* () {
        let asked = 0
        const { url } = yield* serve((response, { path }) => {
          asked++
          if (path.includes("moved")) response.writeHead(302, { location: "/elsewhere" }).end()
          else response.writeHead(429, { "retry-after": "60" }).end()
        })
        const map = yield* at(url)
        expect(yield* Effect.flip(map.search({ ...SEARCH, query: "moved" }))).toMatchObject({ reason: "it answered with status 302" })
        const second = yield* Effect.forkChild(Effect.flip(map.search(SEARCH)), { startImmediately: true })
        yield* TestClock.adjust("1100 millis")
        expect(yield* Fiber.join(second)).toMatchObject({ isolated: true, retryAfter: 60 })
        expect(yield* Effect.flip(map.search(SEARCH))).toMatchObject({ isolated: true, retryAfter: 60 })
        expect(asked).toBe(2)
      })
    ))

  test.each([
    ...faults(found, 100_000),
    ["404", json({}, 404)] as const,
    ["an error in its own form", json({ error: { code: 500, message: "Internal" } })] as const,
    ["a latitude that is none", json([{ ...found[0], lat: "north" }])] as const
  ])("is unavailable if it answers with %s", (_, answer) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer)
        expect(yield* Effect.flip((yield* at(url, { byteLimit: 100_000 })).search(SEARCH))).toBeInstanceOf(UpstreamUnavailable)
      })
    )
  )
})

describe("an Overpass server", () => {
  const searched = (answer: Answer) =>
    Effect.gen(function* () {
      const nominatim = yield* serve(json(found))
      const overpass = yield* serve(answer)
      const map = yield* at(nominatim.url, { overpass: new URL("/api", overpass.url), byteLimit: 100_000 })
      return { overpass, search: map.search(SEARCH) }
    })

  test("tells the tags of what was found, as the map has them now", () =>
    run(
      Effect.gen(function* () {
        const { overpass, search } = yield* searched(json(overpassReply))
        const { data } = yield* search
        const { headers, path } = yield* overpass.received
        const url = new URL(path, overpass.url)
        expect([url.pathname, url.searchParams.get("data")]).toEqual([
          "/api/interpreter",
          "[out:json][timeout:10];(node(id:1);way(id:2););out tags;"
        ])
        expect(headers["user-agent"]).toBe(`millrace (${CONTACT})`)
        const told = data.map(({ extra }) => [extra.phone, extra.website])
        expect(told).toEqual([
          ["+31 30 231 1111", "https://bakery.example"],
          ["+31 30 231 2222", "https://oven.example"]
        ])
      })
    ))

  test.each([
    ...faults(overpassReply, 100_000),
    ["an unfinished query", json({ ...overpassReply, elements: [], remark: "runtime error: Query timed out" })] as const
  ])("that answers with %s fails the search, as half of it is no answer", (_, answer) =>
    run(
      Effect.gen(function* () {
        const { search } = yield* searched(answer)
        expect(yield* Effect.flip(search)).toBeInstanceOf(UpstreamUnavailable)
      })
    )
  )
})
