import type { ServerResponse } from "node:http"
import { NotFound, StoreCatalog } from "@millrace/core"
import { Context, Effect, Layer, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import { type Answer, faults, json, nobody, serve } from "../shared/LocalService.ts"
import { answer, catalogsAt, products } from "./ShopServer.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

const at = (url: URL) => Effect.map(Layer.build(catalogsAt(url, "shop.example")), Context.get(StoreCatalog.StoreCatalogs))

const PAGE = { domain: "shop.example", limit: 30, page: 1 }
const NONE = new NotFound({ resource: "store" })

/** What becomes of a shop that answers so. */
const answered = (answer: Answer) =>
  Effect.gen(function* () {
    const { url } = yield* serve(answer)
    return yield* Effect.flip((yield* at(url)).products(PAGE))
  })

describe("a shop", () => {
  test("is read at its domain, page by page, and kept while it allows that", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(answer())
        const catalogs = yield* at(service.url)
        const first = yield* catalogs.products({ ...PAGE, limit: 2 })
        expect([first.cache, first.data.map(({ id }) => id)]).toEqual(["miss", [1, 2]])
        const { headers, path } = yield* service.received
        expect([path, headers.host]).toEqual(["/products.json?limit=2&page=1", `shop.example:${service.url.port}`])
        expect((yield* catalogs.products({ ...PAGE, limit: 2 })).cache).toBe("hit")
        expect((yield* catalogs.products({ ...PAGE, limit: 2, page: 2 })).data.map(({ id }) => id)).toEqual([3])
        expect((yield* catalogs.products({ ...PAGE, page: 9 })).data).toEqual([])
      })
    ))

  test("shows the fields of the contract, prices as it wrote them", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer())
        const { data } = yield* (yield* at(url)).products(PAGE)
        expect(data[0]).toEqual({
          ...{ id: 1, title: "Product 1", handle: "product-1", vendor: "Potter", product_type: "Kitchen" },
          ...{ created_at: "2026-01-20T12:00:00+01:00", published_at: "2026-01-22T12:00:00+01:00" },
          images: ["https://cdn.example.com/1.jpg"],
          variants: [
            { id: 11, title: "Variant 11", price: "19.90", sku: "SKU-11", available: true },
            { id: 12, title: "Variant 12", price: "24.95", sku: null, available: false }
          ]
        })
        expect(StoreCatalog.catalogOf("shop.example", data)).toMatchObject({
          total_products: 3,
          // 154.35 / 5
          price_range: { min: "4.50", max: "100.00", avg: "30.87" },
          newest_product: { id: 2, price: "4.50", published_at: "2026-01-22T11:30:00+00:00" }
        })
      })
    ))

  test.each<readonly [string, Answer]>([
    ["404", json({}, 404)],
    ["410", json({}, 410)],
    ["402, as closed shops do", json({}, 402)],
    ["423, as locked shops do", json({}, 423)],
    ["a page of its own", (response: ServerResponse) => response.writeHead(200, { "content-type": "text/html" }).end("<html></html>")],
    [
      "the page that asks for a password",
      (response, { path }) =>
        path === "/password" ? response.writeHead(200).end("<form>") : response.writeHead(302, { location: "/password" }).end()
    ],
    ["JSON of something else", json({ items: [] })],
    ["JSON that is no object", json([1, 2, 3])],
    ["nothing", (response: ServerResponse) => response.writeHead(200).end()],
    [
      "a redirect into private space",
      (response: ServerResponse) => response.writeHead(302, { location: "http://10.0.0.1/products.json" }).end()
    ]
  ])("is none if it answers with %s", (_, answer) => run(Effect.map(answered(answer), (error) => expect(error).toEqual(NONE))))

  test.each(["nowhere.example", "localhost"])("is none at %s", (domain) =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(answer())
        expect(yield* Effect.flip((yield* at(url)).products({ ...PAGE, domain }))).toEqual(NONE)
      })
    )
  )

  test.each<readonly [string, Answer]>([
    ["half a catalog", (response) => response.writeHead(200).end(JSON.stringify({ products }).slice(0, -40))],
    ["a price that is a number", json({ products: [{ ...products[0], variants: [{ ...products[0]?.variants[0], price: 19.9 }] }] })],
    ["a price that is none", json({ products: [{ ...products[0], variants: [{ ...products[0]?.variants[0], price: "free" }] }] })],
    ["a product without variants' list", json({ products: [{ ...products[0], variants: null }] })]
  ])("sends an invalid reply with %s", (_, answer) =>
    run(
      Effect.map(answered(answer), (error) =>
        expect(error).toMatchObject({ _tag: "UpstreamUnavailable", invalidReply: true, isolated: true })
      )
    )
  )

  test.each(faults({ products }, 16 * 1024 * 1024).filter(([name]) => /^(?:4|50|201|a body|a connection|no body)/u.test(name)))(
    "that answers with %s concerns nobody else",
    (name, answer) =>
      run(
        Effect.map(answered(answer), (error) =>
          expect(error).toMatchObject(name === "no body" ? NONE : { _tag: "UpstreamUnavailable", isolated: true })
        )
      )
  )

  test("that cannot be reached concerns nobody else", () =>
    run(
      Effect.gen(function* () {
        const catalogs = yield* at(yield* nobody)
        expect(yield* Effect.flip(catalogs.products(PAGE))).toMatchObject({ _tag: "UpstreamUnavailable", isolated: true })
      })
    ))
})
