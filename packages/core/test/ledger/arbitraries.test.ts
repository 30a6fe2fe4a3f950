/** Generated values match their schemas. */
import { Account, AccountEvent, AccountId, Bin, Credits, Grammar, Timestamp } from "@millrace/core"
import { Schema } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { accountEvent, arbitraryOf, inputOf, lots, script } from "../../../testing/src/Arbitraries.ts"

describe("arbitrary values of a schema", () => {
  const schemas = {
    AccountId,
    AccountEvent,
    Credits: Credits.Credits,
    CreditsFromDecimal: Credits.CreditsFromDecimal,
    Timestamp,
    union: Schema.Union([Schema.Literals(["a", "b"]), Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 3, maximum: 5 })))]),
    record: Schema.Record(Schema.String.check(Schema.isPattern(/^k[0-9]$/u)), Schema.Array(Schema.Boolean)),
    tuple: Schema.Tuple([Schema.String.check(Schema.isMinLength(2), Schema.isMaxLength(3)), Schema.optionalKey(Schema.Int)]),
    patterned: Schema.String.check(Schema.isPattern(/^[a-z]+@[a-z]+\.(com|org)$/u))
  }

  test.each(Object.entries(schemas))("match the schema %s", (_, schema) => {
    const is = Schema.is<Schema.Constraint>(schema)
    fc.assert(fc.property(arbitraryOf(schema), (value) => is(value)))
  })

  test("are valid inputs of operations", () => {
    fc.assert(fc.property(inputOf(Bin.lookup), ({ bin }) => /^[0-9]{6,8}$/u.test(bin)))
    fc.assert(
      fc.property(inputOf(Grammar.check), ({ text, language }) => text.length > 0 && (language === undefined || language.length <= 20))
    )
  })

  test("are the same for the same seed", () => {
    const sample = () => fc.sample(arbitraryOf(AccountEvent), { seed: 5, numRuns: 50 })
    expect(sample()).toStrictEqual(sample())
  })

  test("shrink to small values", () => {
    const { counterexample } = fc.check(
      fc.property(arbitraryOf(Schema.Array(Schema.String), { size: 30 }), (all) => all.length === 0),
      { seed: 1 }
    )
    expect(counterexample?.[0].length).toBeLessThan(3)
  })
})

describe("arbitrary account events", () => {
  test("survive encoding and decoding", () => {
    const { codec } = Account.Account
    fc.assert(
      fc.property(accountEvent, (event) => {
        const { type, data } = codec.encode(event)
        expect(codec.decode(type, data)).toStrictEqual(event)
      }),
      { numRuns: 2_000 }
    )
  })

  test("cover every event type", () => {
    const types = new Set(fc.sample(accountEvent, { seed: 1, numRuns: 1_000 }).map(({ _tag }) => _tag))
    expect(types.size).toBe(Object.keys(AccountEvent.cases).length)
  })
})

describe("arbitrary lots and scripts", () => {
  test("match their invariants", () => {
    fc.assert(fc.property(lots, (lots) => lots.every(({ left, held, claimed }) => left + held > 0 && claimed <= held)))
    fc.assert(fc.property(script({ maxLength: 20 }), (steps) => steps.every(({ at }, i) => i === 0 || at >= (steps[i - 1]?.at ?? 0))))
  })
})
