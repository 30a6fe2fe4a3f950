import { Effect, Schema } from "effect"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { inputOf } from "../../../testing/src/Arbitraries.ts"
import * as Bin from "../../src/operations/Bin.ts"
import * as Grammar from "../../src/operations/Grammar.ts"
import * as Operation from "../../src/work/Operation.ts"
import { NotFound } from "../../src/work/OperationError.ts"
import { check, checkAsync } from "../vault/Property.ts"

const CALLER = { accountId: "acc_1", requestId: "req_1", reservationId: "res_1" }

describe("an operation", () => {
  test("has defaults for all options", async () => {
    const operation = Operation.make("a.b", {
      summary: "Does nothing",
      route: { method: "GET", path: "/a" },
      success: Schema.Struct({}),
      run: () => Effect.succeed({ data: {} })
    })
    expect(operation).toMatchObject({
      key: "a.b",
      route: { params: {}, query: {}, body: {}, status: 200 },
      timeout: "30 seconds",
      secret: []
    })
    expect("recover" in operation).toBe(false)
    expect(operation.quantity({})).toBe(1)
    expect(await Effect.runPromise(operation.check({}, CALLER))).toBeUndefined()
  })

  test("has the given options", async () => {
    const operation = Operation.make("a.b", {
      summary: "Does much",
      route: {
        method: "POST",
        path: "/a/:id",
        params: { id: Schema.String },
        query: { q: Schema.optionalKey(Schema.String) },
        body: { emails: Schema.Array(Schema.String) },
        status: 202
      },
      success: Schema.Struct({ id: Schema.String }),
      quantity: ({ emails }) => emails.length,
      check: ({ id }) => (id === "none" ? Effect.fail(new NotFound({ resource: "a" })) : Effect.void),
      run: ({ id }, { reservationId }) => Effect.succeed({ data: { id: `${id} ${reservationId}` }, quantity: 1 }),
      recover: (reservationId) => Effect.succeed({ data: { id: reservationId } }),
      timeout: "2 minutes",
      secret: ["emails"]
    })
    expect(operation).toMatchObject({ route: { method: "POST", path: "/a/:id", status: 202 }, timeout: "2 minutes", secret: ["emails"] })
    expect(Object.keys(operation.route.params)).toEqual(["id"])
    expect(Object.keys(operation.route.query)).toEqual(["q"])
    expect(Object.keys(operation.route.body)).toEqual(["emails"])
    expect(operation.quantity({ id: "x", emails: ["a", "b"] })).toBe(2)
    const input = { id: "x", emails: [] }
    expect(await Effect.runPromise(operation.run(input, CALLER))).toEqual({ data: { id: "x res_1" }, quantity: 1 })
    expect(await Effect.runPromise(Effect.flip(operation.check({ ...input, id: "none" }, CALLER)))).toMatchObject({ resource: "a" })
    expect(operation.recover && (await Effect.runPromise(operation.recover("res_2")))).toEqual({ data: { id: "res_2" } })
  })
})

describe("bin.lookup", () => {
  const { run } = Bin.lookup
  const record = { scheme: "visa", type: null, brand: null, country: null, bank: null }
  const directory = Bin.BinDirectory.of({
    lookup: (bin) => (bin.startsWith("0") ? Effect.fail(new NotFound({ resource: "bin" })) : Effect.succeed({ bin, ...record }))
  })

  test("returns the directory's record for every prefix of six to eight digits", () =>
    checkAsync(
      fc.asyncProperty(inputOf(Bin.lookup), async ({ bin }) => {
        expect(bin).toMatch(/^[0-9]{6,8}$/u)
        expect(Bin.lookup.quantity({ bin })).toBe(1)
        const found = Effect.provideService(run({ bin }, CALLER), Bin.BinDirectory, directory)
        const answer = Effect.catch(found, ({ _tag }) => Effect.succeed(_tag))
        expect(await Effect.runPromise(answer)).toEqual(bin.startsWith("0") ? "NotFound" : { data: { bin, ...record } })
      })
    ))

  test("refuses any other input", () => {
    const decode = Schema.decodeUnknownOption(Schema.Struct(Bin.lookup.route.params))
    for (const bin of ["12345", "123456789", "1234567a", " 123456", "123456\n", "١٢٣٤٥٦"])
      expect(decode({ bin })).toMatchObject({ _tag: "None" })
  })
})

describe("grammar.check", () => {
  const asked: Array<unknown> = []
  const checker = Grammar.GrammarChecker.of({
    supports: (language) => language.toLowerCase().startsWith("en"),
    check: (request) => {
      asked.push(request)
      return Effect.succeed({ matches: [] })
    }
  })
  const provide = Effect.provideService(Grammar.GrammarChecker, checker)

  test("refuses an unsupported language before the hold", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const error = yield* Effect.flip(Grammar.check.check({ text: "x", language: 'tlh"' }, CALLER))
        expect(error).toMatchObject({ _tag: "InvalidInput", field: "language", message: 'language "tlh\\"" is not supported' })
        for (const language of ["en", "EN-gb", "en-US"]) yield* Grammar.check.check({ text: "x", language }, CALLER)
        yield* Grammar.check.check({ text: "x" }, CALLER)
      }).pipe(provide)
    ))

  test("uses American English by default", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        yield* Grammar.check.run({ text: "a" }, CALLER)
        yield* Grammar.check.run({ text: "b", language: "en-GB" }, CALLER)
        expect(asked).toEqual([
          { accountId: "acc_1", text: "a", language: "en-US" },
          { accountId: "acc_1", text: "b", language: "en-GB" }
        ])
      }).pipe(provide)
    ))

  test("costs one unit for any text", () => {
    check(
      fc.property(inputOf(Grammar.check), (input) => {
        expect(Grammar.check.quantity(input)).toBe(1)
      })
    )
  })
})
