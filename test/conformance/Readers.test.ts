/** Readers of public data over HTTP: what they keep, where their pages lead, and what they cost when there is nobody to ask. */
import { Effect, Schedule } from "effect"
import { expect } from "vitest"
import { least } from "./Cases.ts"
import { host, hostWith, type Options, testing } from "./Host.ts"
import { type Answer, send } from "./Requests.ts"
import { rows } from "./Rows.ts"

const rowOf = (key: string) => {
  const row = rows.find((row) => row.key === key)
  if (row === undefined) throw new Error(`There is no row ${key}`)
  return row
}

const told = ({ body, headers, status }: Answer) => [status, JSON.parse(body).error?.code, headers.get("x-credits-charged")]

testing(
  "an answer that was kept costs every caller the same, and says that it was kept",
  Effect.gen(function* () {
    const { open, url } = yield* host
    for (const key of ["codeHost.user", "codeHost.repository", "codeHost.activity", "codeHost.searchRepositories", "storeCatalog.read"]) {
      const row = rowOf(key)
      const [ada, grace] = [yield* open(10), yield* open(10)]
      const ask = (key: string) => Effect.promise(() => send(url, row, least(row).input, key))
      const answers = [yield* ask(ada.key), yield* ask(grace.key), yield* ask(ada.key)]
      expect([key, answers.map(({ headers }) => headers.get("x-cache"))]).toEqual([key, ["miss", "hit", "hit"]])
      expect(new Set(answers.map(({ headers }) => headers.get("x-credits-charged")))).toEqual(new Set([`${row.price?.credits}`]))
      expect(new Set(answers.map(({ body }) => JSON.stringify(JSON.parse(body).data))).size).toBe(1)
    }
  })
)

testing(
  "calls for the same at once share a request, say which of them made it, and each pays",
  Effect.gen(function* () {
    let requests = 0
    const { open, url } = yield* hostWith({
      codeHost: () => {
        requests++
        return undefined
      }
    })
    const row = rowOf("codeHost.user")
    const accounts = yield* Effect.forEach(Array.from({ length: 12 }), () => open(10))
    const answers = yield* Effect.forEach(accounts, ({ key }) => Effect.promise(() => send(url, row, least(row).input, key)), {
      concurrency: "unbounded"
    })
    expect(answers.map(({ headers, status }) => [status, headers.get("x-credits-charged")])).toEqual(accounts.map(() => [200, "0.5"]))
    expect(answers.filter(({ headers }) => headers.get("x-cache") === "miss")).toHaveLength(requests)
    expect(requests).toBeLessThan(accounts.length)
  })
)

testing(
  "what one caller read in a shop is offered to another one who compares prices, and to nobody before",
  Effect.gen(function* () {
    const { open, url } = yield* host
    const [ada, grace] = [yield* open(10), yield* open(1_000)]
    const [catalog, comparison] = [rowOf("storeCatalog.read"), rowOf("prices.compare")]
    const compare = Effect.promise(() => send(url, comparison, { name: "Product 1, variant 11", price: 20, limit: 2 }, grace.key))
    const offersOf = ({ body }: Answer) => JSON.parse(body).data.items
    expect(offersOf(yield* compare)).toEqual([])
    expect((yield* Effect.promise(() => send(url, catalog, { domain: "example.com" }, ada.key))).status).toBe(200)
    // The catalog is recorded behind the answer, and the search follows the log
    const isThere = (answer: Answer): boolean => answer.body.includes("Variant 11")
    const answer = yield* Effect.repeat(compare, { until: isThere, schedule: Schedule.spaced("20 millis"), times: 500 })
    expect(answer.headers.get("x-credits-charged")).toBe("1")
    expect(JSON.parse(answer.body).data).toMatchObject({ currencies: [null], same_currency: false, total_matches: 2 })
    expect(offersOf(answer)[0]).toEqual({
      ...{ title: "Product 1 - Variant 11", shop: "example.com", url: "https://example.com/products/product-1" },
      ...{ price: 19.9, currency: null, observed_at: expect.any(String), similarity: 1, difference: -0.1 }
    })
  })
)

testing(
  "the price that a caller gives with a search of coupons is in that caller's own history alone",
  Effect.gen(function* () {
    const { open, url } = yield* host
    const [ada, grace] = [yield* open(10), yield* open(10)]
    const page = "https://shop.example.com/products/mug"
    const historyOf = (key: string) =>
      Effect.map(
        Effect.promise(() => send(url, rowOf("prices.history"), { url: page }, key)),
        ({ body }) => JSON.parse(body).data.current_price
      )
    for (const input of [{ url: page, price: 19.9 }, { url: page, price: 0.0000001 }, { url: page }])
      expect((yield* Effect.promise(() => send(url, rowOf("coupons.search"), input, ada.key))).status).toBe(200)
    expect([yield* historyOf(ada.key), yield* historyOf(grace.key)]).toEqual([19.9, null])
  })
)

testing(
  "no coupon is of a registry, below which the shops are",
  Effect.gen(function* () {
    const { balance, open, url } = yield* host
    const { accountId, key } = yield* open(10)
    for (const [name, also] of [
      ["coupons.submit", { code: "SAVE20" }],
      ["coupons.requestStore", {}]
    ] as const)
      for (const domain of ["co.uk", "www.com.au"]) {
        const { body, status } = yield* Effect.promise(() => send(url, rowOf(name), { domain, ...also }, key))
        expect([status, JSON.parse(body).error.message]).toEqual([422, expect.stringMatching(/^domain: /u)])
      }
    expect(yield* balance(accountId)).toMatchObject({ available: 10_000, held: 0 })
  })
)

testing(
  "a search of repositories leads from page to page, as far as the platform gives pages",
  Effect.gen(function* () {
    const { open, url } = yield* host
    const { key } = yield* open(10)
    const row = rowOf("codeHost.searchRepositories")
    const links = (page: number) =>
      Effect.map(
        Effect.promise(() => send(url, row, { q: "many", page, per_page: 30 }, key)),
        ({ headers }) =>
          Object.fromEntries(
            [...(headers.get("link") ?? "").matchAll(/[?&]page=(\d+)[^>]*>; rel="(\w+)"/gu)].map(([, to, rel]) => [rel, to])
          )
      )
    expect(yield* links(1)).toEqual({ first: "1", next: "2", last: "33" })
    expect(yield* links(33)).toEqual({ first: "1", prev: "32", last: "33" })
    const { body, status } = yield* Effect.promise(() => send(url, row, { q: "many", page: 34, per_page: 30 }, key))
    expect([status, JSON.parse(body).error.message]).toEqual([422, "page: page 34 of 30 ends beyond the first 1000 results"])
  })
)

type Reply = NonNullable<ReturnType<NonNullable<Options["codeHost"]>>>

const FAILURES: ReadonlyArray<readonly [string, Reply, status: number, code: string, retryAfter: string | null]> = [
  ["is not there", { status: 404, body: {} }, 404, "not_found", null],
  ["was taken down", { status: 451, body: {} }, 404, "not_found", null],
  ["refuses the host's token", { status: 401, body: { message: "Bad credentials" } }, 503, "upstream_unavailable", "5"],
  ["refuses the host", { status: 403, body: { message: "Forbidden" } }, 503, "upstream_unavailable", "5"],
  ["is limited, for a time", { status: 429, body: {}, headers: { "retry-after": "17" } }, 503, "upstream_unavailable", "17"],
  ["is limited, for no time that it tells", { status: 429, body: {} }, 503, "upstream_unavailable", "60"],
  ["fails", { status: 500, body: {} }, 503, "upstream_unavailable", "5"],
  ["is down for a time", { status: 503, body: {}, headers: { "retry-after": "120" } }, 503, "upstream_unavailable", "120"],
  ["answers something else", { status: 200, body: { login: 7 } }, 503, "upstream_invalid_reply", "60"]
]

for (const [what, reply, status, code, retryAfter] of FAILURES)
  testing(
    `a platform that ${what} is answered with ${code}, and what was held goes back`,
    Effect.gen(function* () {
      const { balance, open, url } = yield* hostWith({ codeHost: () => reply })
      const { accountId, key } = yield* open(10)
      const row = rowOf("codeHost.user")
      const answer = yield* Effect.promise(() => send(url, row, least(row).input, key))
      expect([...told(answer), answer.headers.get("retry-after")]).toEqual([status, code, null, retryAfter])
      expect(answer.body).not.toMatch(/github|127\.0\.0\.1|credentials|octocat/iu)
      expect(yield* balance(accountId)).toMatchObject({ available: 10_000, held: 0 })
    })
  )

testing(
  "without a provider they answer that they are not set up, at no cost, and the catalog says so",
  Effect.gen(function* () {
    const { balance, open, url } = yield* hostWith({ isConfigured: false })
    const { accountId, key } = yield* open(10)
    const without = ["codeHost.user", "codeHost.repository", "codeHost.activity", "codeHost.searchRepositories", "leads.search"]
    const catalog = yield* Effect.promise(() => send(url, rowOf("catalog.read"), {}))
    const entries = JSON.parse(catalog.body).data.operations as ReadonlyArray<{ key: string; availability: { available: boolean } }>
    for (const name of without) {
      const row = rowOf(name)
      expect([name, ...told(yield* Effect.promise(() => send(url, row, least(row).input, key)))]).toEqual([
        name,
        503,
        "upstream_not_configured",
        null
      ])
      expect(entries.find(({ key }) => key === name)?.availability.available).toBe(false)
    }
    expect(yield* balance(accountId)).toMatchObject({ available: 10_000, held: 0 })
  })
)
