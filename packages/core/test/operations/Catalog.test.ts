import { MemoryEventStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { ownOf, PriceBook } from "../../src/billing/PricePlan.ts"
import * as Credits from "../../src/Credits.ts"
import * as Bin from "../../src/operations/Bin.ts"
import { Catalog, CatalogEntry, type CatalogOptions } from "../../src/operations/Catalog.ts"
import * as Grammar from "../../src/operations/Grammar.ts"
import * as Standard from "../../src/operations/Standard.ts"
import { CircuitBreaker } from "../../src/work/CircuitBreaker.ts"
import * as Operation from "../../src/work/Operation.ts"
import { type OperationError, UpstreamNotConfigured, UpstreamUnavailable } from "../../src/work/OperationError.ts"

/** Whether a provider is set up, as a test sets it. */
class Provider extends Context.Service<Provider, { isThere: boolean }>()("test/Provider") {}

const configured = Effect.flatMap(Provider, ({ isThere }) =>
  isThere ? Effect.void : Effect.fail(new UpstreamNotConfigured({ upstream: "dns" }))
)

const named = <const Key extends string>(key: Key) =>
  Operation.make(key, {
    summary: `Summary of ${key}`,
    route: { method: "GET", path: "/x" },
    success: Schema.Struct({}),
    configured,
    run: () => Effect.succeed({ data: {} })
  })

const dns = named("dns.resolve")
const billing = named("account.billing")
const batch = Operation.make("email.validateBatch", {
  summary: "Validate e-mail addresses",
  description: "Up to fifty.",
  route: {
    method: "POST",
    path: "/batch/:list/of/:kind",
    params: { list: Schema.String, kind: Schema.String },
    body: { emails: Schema.Array(Schema.String), token: Schema.String }
  },
  unit: "address",
  quantity: ({ emails }) => emails.length,
  success: Schema.Struct({ price: Credits.CreditsFromDecimal }),
  secret: ["token"],
  run: () => Effect.succeed({ data: { price: Credits.of(500) } }),
  example: { input: { list: "spring", kind: "all", emails: ["a@example.com"], token: "canary" }, data: { price: Credits.of(600) } }
})
const OPERATIONS = [Grammar.check, Bin.lookup, dns, batch, billing]

const unavailable = (reason: string, retry_after: number | null = null) => ({ available: false, reason, retry_after })
const AVAILABLE = { available: true, reason: null, retry_after: null }
const NOT_SET_UP = unavailable("No provider for dns is set up at this host.")

const ANYTHING = { type: "object", properties: {}, additionalProperties: true }
const NOTHING = { ...ANYTHING, additionalProperties: false }

const upstreams = Layer.mergeAll(
  Layer.succeed(Bin.BinDirectory, { lookup: () => Effect.fail(new UpstreamUnavailable({ upstream: "bin", reason: "a test" })) }),
  Layer.succeed(Grammar.GrammarChecker, { supports: () => true, check: () => Effect.succeed({ matches: [] }) }),
  Layer.sync(Provider, () => ({ isThere: true }))
)
type Upstreams = Layer.Success<typeof upstreams>
type Offered = Operation.AnyCall<OperationError, Upstreams>

const testing = <A, E>(
  operations: ReadonlyArray<Offered>,
  body: Effect.Effect<A, E, Catalog | PriceBook | CircuitBreaker | Provider>,
  options?: CatalogOptions
): Promise<A> =>
  Effect.runPromise(
    body.pipe(
      Effect.provide(
        Catalog.layer(operations, options).pipe(
          Layer.provideMerge(
            Layer.mergeAll(
              PriceBook.layerOf(ownOf(Standard.operations)),
              CircuitBreaker.layer({ failures: 2, openFor: 10_000 }),
              Layer.fresh(upstreams)
            )
          ),
          Layer.provide(MemoryEventStore.layer)
        )
      ),
      Effect.provide(TestClock.layer())
    )
  )

describe("the catalog", () => {
  test("lists every operation once, in order, with its route, its price in force and its input", () =>
    testing(
      OPERATIONS,
      Effect.gen(function* () {
        const catalog = yield* Catalog
        const entries = yield* catalog.entries
        expect(entries).toMatchObject([
          {
            key: "grammar.check",
            name: "grammar check",
            method: "POST",
            path: "/grammar/check",
            price: { credits: 1_000, unit: "call", version: 1 }
          },
          { key: "bin.lookup", name: "bin lookup", method: "GET", path: "/bin/{bin}", price: { credits: 500, unit: "call", version: 1 } },
          { key: "dns.resolve" },
          {
            key: "email.validateBatch",
            name: "email validate batch",
            path: "/batch/{list}/of/{kind}",
            price: { credits: 600, unit: "address" }
          },
          { key: "account.billing", price: { credits: 0 } }
        ])
        expect(entries.map(({ summary }) => summary)).toEqual(OPERATIONS.map(({ summary }) => summary))
        const [grammar, bin, , , free] = entries
        expect(grammar?.bounds.body).toMatchObject({
          type: "object",
          required: ["text"],
          additionalProperties: false,
          properties: { text: { type: "string" }, language: { type: "string" } }
        })
        expect(JSON.stringify(grammar?.bounds.body)).toContain('"maxLength":50000')
        expect(JSON.stringify(bin?.bounds.params)).toContain("^[0-9]{6,8}$")
        expect(grammar?.bounds.query).toEqual(ANYTHING)
        expect(free?.bounds).toEqual({ params: ANYTHING, query: ANYTHING, body: NOTHING })
      })
    ))

  test("contains complete JSON Schemas, also of schemas with an identifier", () =>
    testing(
      [
        Operation.make("bin.lookup", {
          summary: "",
          route: { method: "GET", path: "/x", query: { at: Schema.String.annotate({ identifier: "Named" }) } },
          success: Schema.Struct({}),
          run: () => Effect.succeed({ data: {} })
        })
      ],
      Effect.gen(function* () {
        const catalog = yield* Catalog
        const [entry] = yield* catalog.entries
        expect(entry?.bounds.query).toMatchObject({ properties: { at: { $ref: "#/$defs/Named" } }, $defs: { Named: { type: "string" } } })
      })
    ))

  test("shows prices in decimal credits in replies", () =>
    testing(
      OPERATIONS,
      Effect.gen(function* () {
        const catalog = yield* Catalog
        const Entries = Schema.toCodecJson(Schema.Array(CatalogEntry))
        const entries = yield* catalog.entries
        const shown = Schema.encodeSync(Entries)(entries)
        expect(shown).toMatchObject([1, 0.5, 0.5, 0.6, 0].map((credits) => ({ price: { credits } })))
        expect(Schema.decodeUnknownSync(Entries)(JSON.parse(JSON.stringify(shown)))).toEqual(entries)
      })
    ))

  test("follows the price plan as versions come into force", () =>
    testing(
      OPERATIONS,
      Effect.gen(function* () {
        const [catalog, book] = [yield* Catalog, yield* PriceBook]
        yield* book.publish({ "bin.lookup": Credits.of(700) }, 1_000)
        const shown = Effect.map(catalog.entries, (entries) => entries.slice(0, 2).map(({ price }) => [price?.credits, price?.version]))
        expect(yield* shown).toEqual([
          [1_000, 1],
          [500, 1]
        ])
        yield* TestClock.adjust(1_000)
        expect(yield* shown).toEqual([
          [1_000, 2],
          [700, 2]
        ])
      })
    ))

  test("describes an operation in full without secrets, and returns undefined for an unknown key", () =>
    testing(
      OPERATIONS,
      Effect.gen(function* () {
        const catalog = yield* Catalog
        const entries = yield* catalog.entries
        const known = yield* catalog.capability("email.validateBatch")
        expect(known).toEqual({
          ...entries[3],
          description: "Up to fifty.",
          output: expect.objectContaining({ type: "object", required: ["price"] }),
          example: { input: { list: "spring", kind: "all", emails: ["a@example.com"], token: "***" }, data: { price: 0.6 } }
        })
        expect(yield* catalog.capability("dns.resolve")).toMatchObject({ description: null, example: null })
        for (const key of ["constructor", "", "dns", "email.validatebatch"]) expect(yield* catalog.capability(key)).toBeUndefined()
      })
    ))

  test("describes an operation only by its key", () =>
    testing(
      OPERATIONS,
      Effect.gen(function* () {
        const catalog = yield* Catalog
        const keys = fc.sample(fc.oneof(fc.string(), fc.constantFrom("constructor", "__proto__", "toString", "grammar")), 100)
        for (const { key } of OPERATIONS) expect((yield* catalog.capability(key))?.key).toBe(key)
        for (const key of keys) {
          const known = OPERATIONS.some((operation) => operation.key === key)
          expect((yield* catalog.capability(key))?.key ?? "none").toBe(known ? key : "none")
        }
      })
    ))

  test("refuses two operations with one key", async () => {
    await expect(testing([dns, Grammar.check, named("dns.resolve")], Catalog)).rejects.toThrow("Two operations have the same key")
  })

  test("refuses an example that the schemas of its operation refuse, before anybody reads it", async () => {
    const example = { input: { text: 7 }, data: {} }
    const wrong = Operation.make("word.count", {
      summary: "Count words",
      route: { method: "POST", path: "/words", body: { text: Schema.String } },
      success: Schema.Struct({}),
      run: () => Effect.succeed({ data: {} }),
      example: example as never
    })
    await expect(testing([wrong], Catalog)).rejects.toThrow("text")
    // Also of a copy that has another schema for the same example
    await testing([batch], Catalog)
    const copy = { ...batch, success: Schema.Struct({ total: Schema.Number }) } as unknown as typeof batch
    await expect(testing([copy], Catalog)).rejects.toThrow("total")
  })
})

/** The catalog's entry of an operation. */
const said = (key: string) => Effect.flatMap(Catalog, (catalog) => Effect.map(catalog.capability(key), (known) => known?.availability))

describe("an operation", () => {
  test("without a price is unavailable, while the others are available", () =>
    testing(
      [dns, named("nobody.priced")],
      Effect.gen(function* () {
        const catalog = yield* Catalog
        expect(yield* catalog.entries).toMatchObject([
          { price: { credits: 500 }, availability: AVAILABLE },
          { price: null, availability: unavailable("It has no price yet.") }
        ])
        const book = yield* PriceBook
        yield* book.publish({ "nobody.priced": Credits.zero })
        expect(yield* said("nobody.priced")).toEqual(AVAILABLE)
      })
    ))

  test("without a provider is unavailable", () =>
    testing(
      OPERATIONS,
      Effect.gen(function* () {
        const provider = yield* Provider
        provider.isThere = false
        for (const { key } of OPERATIONS) {
          expect(yield* said(key)).toEqual(key === "dns.resolve" || key === "account.billing" ? NOT_SET_UP : AVAILABLE)
        }
        provider.isThere = true
        expect(yield* said("dns.resolve")).toEqual(AVAILABLE)
      })
    ))

  test("is unavailable while the circuit of its upstream is open, with the remaining time", () =>
    testing(
      [...OPERATIONS, named("dns.reverse")],
      Effect.gen(function* () {
        const breaker = yield* CircuitBreaker
        const book = yield* PriceBook
        yield* book.publish({ "dns.reverse": Credits.zero })
        yield* breaker.record("dns", "failure")
        expect(yield* said("dns.resolve")).toEqual(AVAILABLE)
        yield* breaker.record("dns", "failure")
        yield* TestClock.adjust(2_500)
        for (const key of ["dns.resolve", "dns.reverse"]) expect(yield* said(key)).toEqual(unavailable("It is temporarily unavailable.", 8))
        expect(yield* said("bin.lookup")).toEqual(AVAILABLE)
        yield* TestClock.adjust(7_500)
        expect(yield* said("dns.resolve")).toEqual(AVAILABLE)
      })
    ))
})

describe("groups", () => {
  const groupsOf = Effect.flatMap(Catalog, ({ groups }) => groups)
  const names = (groups: Effect.Success<typeof groupsOf>) =>
    groups.map(({ key, operations }) => [key, operations.map(({ key }) => key)] as const)

  test("are those of the host, then areas for the other operations; every operation is in one", () =>
    testing(
      OPERATIONS,
      Effect.gen(function* () {
        const catalog = yield* Catalog
        const groups = yield* catalog.groups
        expect(names(groups)).toEqual([
          ["lookups", ["dns.resolve", "bin.lookup"]],
          ["grammar", ["grammar.check"]],
          ["email", ["email.validateBatch"]],
          ["account", ["account.billing"]]
        ])
        expect(groups.map(({ name, summary }) => [name, summary])).toContainEqual(["lookups", "Questions."])
        for (const { group, key } of yield* catalog.entries)
          expect(groups.find((one) => one.key === group)?.operations.map(({ key }) => key)).toContain(key)
      }),
      { groups: { lookups: { operations: [dns, Bin.lookup], description: "Questions." }, empty: { operations: [] } } }
    ))

  test("are available while one of their operations is, and otherwise give its shortest wait", () =>
    testing(
      [dns, batch, named("dns.reverse")],
      Effect.gen(function* () {
        const ofGroup = (key: string) => Effect.map(groupsOf, (groups) => groups.find((group) => group.key === key)?.availability)
        const [provider, breaker] = [yield* Provider, yield* CircuitBreaker]
        expect(yield* ofGroup("both")).toEqual(AVAILABLE)
        provider.isThere = false
        expect(yield* ofGroup("both")).toEqual(AVAILABLE)
        expect(yield* ofGroup("dns")).toEqual(NOT_SET_UP)
        yield* breaker.record("email", "failure")
        yield* breaker.record("email", "failure")
        expect(yield* ofGroup("both")).toEqual(unavailable("It is temporarily unavailable.", 10))
      }),
      { groups: { both: { operations: [dns, batch] } } }
    ))

  test("must name operations of the host, each at most once", async () => {
    const make = (groups: CatalogOptions["groups"] & {}) => testing([dns, batch], Catalog, { groups })
    await expect(make({ a: { operations: [dns] }, b: { operations: [batch, dns] } })).rejects.toThrow("Group b names dns.resolve")
    await expect(make({ a: { operations: [billing] } })).rejects.toThrow("Group a names account.billing")
  })
})
