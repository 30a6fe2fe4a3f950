/**
 * Amounts of credits, in whole thousandths. A credit is $0.001, so a thousandth is a millionth of a dollar. Decimal credits, with at most
 * three decimals, exist only in requests and replies.
 */
import { type Brand, Effect, Schema, SchemaGetter, SchemaIssue } from "effect"

/** A non-negative whole number of thousandths of a credit. */
export type Credits = number & Brand.Brand<"Credits">

/** The largest amount: a billion dollars. Doubles are still exact there. */
export const MAXIMUM = 1_000_000_000_000_000

/** The schema of an amount in events: thousandths. */
export const Credits: Schema.Codec<Credits, number> = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: MAXIMUM })).pipe(
  Schema.brand("Credits")
)

export const zero = 0 as Credits

/** Asserts that a computed number of thousandths is an amount. A negative, fractional or too large number is a bug, so it throws. */
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

/** Parses decimal text such as `199.5`. Undefined for text that is negative, has more than three decimals, or is not a number. */
export const parse = (decimal: string): Credits | undefined => {
  const groups = DECIMAL.exec(decimal)?.groups
  return groups === undefined ? undefined : of(Number(groups["whole"]) * 1000 + Number((groups["part"] ?? "").padEnd(3, "0")))
}

/** The schema of an amount in requests and replies: decimal credits outside, thousandths inside. */
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
