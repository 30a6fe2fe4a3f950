/** Bank identification numbers: the first six to eight digits of a card number. */
import { Context, Effect, Schema } from "effect"
import * as Operation from "../work/Operation.ts"
import type { NotFound, UpstreamUnavailable } from "../work/OperationError.ts"

export const BinRecord = Schema.Struct({
  bin: Schema.String,
  /** The network's name in lower case, such as `visa`. */
  scheme: Schema.String,
  /** `credit`, `debit` or `prepaid`. This field and the following ones are null if no source has a value. */
  type: Schema.NullOr(Schema.String),
  brand: Schema.NullOr(Schema.String),
  country: Schema.NullOr(
    Schema.Struct({
      name: Schema.String,
      /** ISO 3166-1 alpha-2. */
      code: Schema.String,
      /** ISO 4217. */
      currency: Schema.NullOr(Schema.String)
    })
  ),
  bank: Schema.NullOr(Schema.Struct({ name: Schema.String }))
})

export class BinDirectory extends Context.Service<
  BinDirectory,
  {
    /** The record of a prefix of six to eight digits. `NotFound` if it belongs to no known scheme. */
    readonly lookup: (bin: string) => Effect.Effect<typeof BinRecord.Type, NotFound | UpstreamUnavailable>
  }
>()("@millrace/core/operations/Bin/BinDirectory") {}

export const lookup = Operation.make("bin.lookup", {
  summary: "Look up the scheme and issuer of a card number prefix",
  price: 0.5,
  route: {
    method: "GET",
    path: "/bin/:bin",
    params: { bin: Schema.String.check(Schema.isPattern(/^[0-9]{6,8}$/u, { expected: "six to eight digits" })) }
  },
  success: BinRecord,
  run: Effect.fnUntraced(function* ({ bin }) {
    return { data: yield* BinDirectory.use((directory) => directory.lookup(bin)) }
  }),
  example: {
    input: { bin: "45717360" },
    data: {
      bin: "45717360",
      scheme: "visa",
      type: "debit",
      brand: "Visa",
      country: { name: "Denmark", code: "DK", currency: "DKK" },
      bank: { name: "Jyske Bank A/S" }
    }
  }
})
