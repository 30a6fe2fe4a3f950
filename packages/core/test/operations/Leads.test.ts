import { Effect } from "effect"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as Leads from "../../src/operations/Leads.ts"
import { InvalidInput } from "../../src/work/OperationError.ts"

const CALLER = { accountId: "acc_1", requestId: "req_1", reservationId: "res_1" }

const business = (id: number, has_phone: boolean, has_website: boolean): Leads.Business => ({
  ...{ platform: "openstreetmap", type: "business", id: `node/${id}`, url: null, title: `Business ${id}`, text: null },
  ...{ author: { name: null, url: null }, thumbnail_url: null, published_at: null },
  stats: { views: null, likes: null, dislikes: null, replies: null, shares: null, rating: null },
  extra: {
    ...{ category: null, categories: [], reviews_count: null, phone: has_phone ? "+31" : null, has_phone },
    ...{ website: has_website ? "https://a.example" : null, has_website, latitude: null, longitude: null, place_id: null, cid: null },
    attribution: "Data"
  }
})

const businesses = fc
  .array(fc.tuple(fc.boolean(), fc.boolean()), { maxLength: 20 })
  .map((all) => all.map(([phone, website], i) => business(i, phone, website)))

const input = fc.record(
  { limit: fc.integer({ min: 1, max: 20 }), with_phone: fc.boolean(), with_website: fc.boolean() },
  { requiredKeys: [] }
)

describe("a search for businesses", () => {
  test("gives the best that have what is asked for, as many as are asked for and there are", () =>
    fc.assert(
      fc.property(businesses, input, (all, given) => {
        const map = Effect.provideService(Leads.MapSearch, {
          configured: Effect.void,
          platform: "openstreetmap",
          search: ({ limit }) => Effect.succeed({ cache: "miss", data: all.slice(0, limit) })
        })
        const { data } = Effect.runSync(map(Leads.search.run({ query: " bakeries ", ...given }, CALLER)))
        const { limit = 20, with_phone = false, with_website = false } = given
        const fitting = all.filter(({ extra }) => (!with_phone || extra.phone !== null) && (!with_website || extra.website !== null))
        expect(data.items).toEqual(fitting.slice(0, limit))
        expect(data.total).toBe(data.items.length)
        expect(data.query).toEqual({ query: " bakeries ", hl: "en", with_phone, with_website })
      })
    ))

  test.each(["  ", "\n\t"])("for %j is for nothing", (query) => {
    const error = Effect.runSync(Effect.flip(Leads.search.check({ query }, CALLER) as Effect.Effect<void, InvalidInput>))
    expect(error).toEqual(new InvalidInput({ field: "query", message: "must have words to search for" }))
  })
})
