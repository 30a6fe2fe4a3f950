import { MemoryEventStore } from "@millrace/event-sourcing"
import { Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { PriceBook } from "../../src/billing/PricePlan.ts"
import * as Credits from "../../src/Credits.ts"
import * as AccountBilling from "../../src/operations/AccountBilling.ts"
import * as Bin from "../../src/operations/Bin.ts"
import { Catalog, CatalogEntry } from "../../src/operations/Catalog.ts"
import * as Grammar from "../../src/operations/Grammar.ts"
import * as Operation from "../../src/operations/Operation.ts"
import { check } from "../vault/Property.ts"

const OPERATIONS = [Grammar.check, Bin.lookup, AccountBilling.read]

const NOTHING = { type: "object", properties: {} }
const EMPTY = { params: NOTHING, query: NOTHING, body: NOTHING }

const testing = <A, E>(operations: ReadonlyArray<Operation.Any>, body: Effect.Effect<A, E, Catalog | PriceBook>): Promise<A> =>
  Effect.runPromise(
    body.pipe(
      Effect.provide(Catalog.layer(operations).pipe(Layer.provideMerge(PriceBook.layer), Layer.provide(MemoryEventStore.layer))),
      Effect.provide(TestClock.layer())
    )
  )

const named = (key: string) =>
  Operation.make(key, {
    summary: key,
    route: { method: "GET", path: "/x" },
    success: Schema.Struct({}),
    run: () => Effect.succeed({ data: {} })
  })

describe("the catalog", () => {
  test("lists every operation in order, with its route, its price in force and what it takes", () =>
    testing(
      OPERATIONS,
      Effect.gen(function* () {
        const catalog = yield* Catalog
        const entries = yield* catalog.entries
        expect(entries).toMatchObject([
          { key: "grammar.check", method: "POST", path: "/grammar/check", price: 1_000, priceVersion: 1 },
          { key: "bin.lookup", method: "GET", path: "/bin/:bin", price: 500, priceVersion: 1 },
          { key: "account.billing", method: "GET", path: "/account/billing", price: 0, priceVersion: 1 }
        ])
        expect(entries.map(({ summary }) => summary)).toEqual(OPERATIONS.map(({ summary }) => summary))
        expect(entries[0]?.input.body).toMatchObject({
          type: "object",
          required: ["text"],
          properties: { text: { type: "string" }, language: { type: "string" } }
        })
        expect(JSON.stringify(entries[0]?.input.body)).toContain('"maxLength":50000')
        expect(JSON.stringify(entries[1]?.input.params)).toContain("^[0-9]{6,8}$")
        expect(entries[0]?.input.query).toEqual(NOTHING)
        expect(entries[2]?.input).toEqual(EMPTY)
      })
    ))

  test("says what is taken by itself, also where a schema has a name of its own", () =>
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
        expect(entry?.input.query).toMatchObject({ properties: { at: { $ref: "#/$defs/Named" } }, $defs: { Named: { type: "string" } } })
      })
    ))

  test("shows prices in decimal credits where it is told to others", () =>
    testing(
      OPERATIONS,
      Effect.gen(function* () {
        const catalog = yield* Catalog
        const shown = Schema.encodeSync(Schema.Array(CatalogEntry))(yield* catalog.entries)
        expect(shown.map(({ price }) => price)).toEqual([1, 0.5, 0])
        expect(JSON.parse(JSON.stringify(shown))).toEqual(shown)
      })
    ))

  test("follows the price plan as versions come into force", () =>
    testing(
      OPERATIONS,
      Effect.gen(function* () {
        const [catalog, book] = [yield* Catalog, yield* PriceBook]
        yield* book.publish({ "bin.lookup": Credits.of(700) }, 1_000)
        expect((yield* catalog.entries).map(({ price, priceVersion }) => [price, priceVersion])).toEqual([
          [1_000, 1],
          [500, 1],
          [0, 1]
        ])
        yield* TestClock.adjust(1_000)
        expect((yield* catalog.entries).map(({ price, priceVersion }) => [price, priceVersion])).toEqual([
          [1_000, 2],
          [700, 2],
          [0, 2]
        ])
      })
    ))

  test("names the operation that nobody priced", () =>
    testing(
      [Grammar.check, named("nobody.priced")],
      Effect.gen(function* () {
        const catalog = yield* Catalog
        expect({ ...(yield* Effect.flip(catalog.entries)) }).toEqual({ _tag: "NotPriced", operation: "nobody.priced" })
      })
    ))

  test("finds an operation by its key, and by nothing else", () =>
    testing(
      OPERATIONS,
      Effect.gen(function* () {
        const catalog = yield* Catalog
        expect(catalog.operations).toBe(OPERATIONS)
        for (const operation of OPERATIONS) expect(catalog.find(operation.key)).toBe(operation)
        check(
          fc.property(fc.oneof(fc.string(), fc.constantFrom("constructor", "__proto__", "toString", "grammar")), (key) => {
            expect(catalog.find(key)?.key ?? "none").toBe(OPERATIONS.some((operation) => operation.key === key) ? key : "none")
          })
        )
      })
    ))

  test("cannot be made of two operations with one key", async () => {
    await expect(testing([named("a.b"), Grammar.check, named("a.b")], Catalog)).rejects.toThrow("Two operations have the same key")
  })
})
