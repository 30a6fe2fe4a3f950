/**
 * Amounts of money: whole thousandths of a credit. 1 credit = 1,000 of them = $0.001, so one is a millionth of a dollar.
 * Decimal credits, with at most three decimals, exist only at the rim.
 */
import { type Brand, Effect, Schema, SchemaGetter, SchemaIssue } from "effect"

/** A non-negative whole number of thousandths of a credit. */
export type Credits = number & Brand.Brand<"Credits">

/** The largest amount that can be written down: a billion dollars, below where doubles stop being exact. */
export const MAXIMUM = 1_000_000_000_000_000

/** Thousandths, as events hold them. */
export const Credits: Schema.Codec<Credits, number> = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: MAXIMUM })).pipe(
  Schema.brand("Credits")
)

export const zero = 0 as Credits

/** Asserts that a computed amount is one: a negative, broken or boundless amount is a bug, never a value. */
export const of = (thousandths: number): Credits => {
  if (!Number.isInteger(thousandths) || thousandths < 0 || thousandths > MAXIMUM)
    throw new Error(`Not an amount of credits: ${thousandths}`)
  return thousandths as Credits
}

export const min = (a: Credits, b: Credits): Credits => (a < b ? a : b)

export const sum = (amounts: Iterable<Credits>): Credits => {
  let total = 0
  for (const amount of amounts) total += amount
  return of(total)
}

/** Credits as a number with at most three decimals: `199500` is `199.5`. */
export const toDecimal = (credits: Credits): number => credits / 1000

const DECIMAL = /^(?<whole>[0-9]{1,12})(?:\.(?<part>[0-9]{1,3})0*)?$/u

/** Decimal text such as `199.5` to credits; undefined when it is negative, has more than three decimals, or is no number. */
export const parse = (decimal: string): Credits | undefined => {
  const groups = DECIMAL.exec(decimal)?.groups
  return groups === undefined ? undefined : of(Number(groups["whole"]) * 1000 + Number((groups["part"] ?? "").padEnd(3, "0")))
}

/** A decimal number of credits outside, thousandths inside. */
export const CreditsFromDecimal: Schema.Codec<Credits, number> = Schema.Finite.pipe(
  Schema.decodeTo(Schema.toType(Credits), {
    decode: SchemaGetter.transformEffect((decimal: number) => {
      const credits = parse(String(decimal))
      return credits === undefined
        ? Effect.fail(new SchemaIssue.InvalidValue({ message: "expected an amount of credits with at most three decimals" }))
        : Effect.succeed(credits)
    }),
    encode: SchemaGetter.transform(toDecimal)
  })
)
