/** A host's own operation with its upstream. Routes, catalog and billing derive from this one definition. */
import { Operation, UpstreamUnavailable } from "@millrace/core"
import { Api } from "@millrace/http"
import { Context, Effect, Layer, Schema } from "effect"

/** The service that the operation needs. */
export class Rates extends Context.Service<Rates, { readonly of: (currency: string) => Effect.Effect<number, UpstreamUnavailable> }>()(
  "Rates"
) {
  /** A service that answers `GET <url>/EUR` with a number. */
  static readonly layer = (url: string) => Layer.succeed(Rates, { of: (currency) => ask(`${url}/${currency}`) })
}

const ask = (url: string) =>
  Effect.tryPromise({
    try: async (signal) => {
      const answer = await fetch(url, { signal })
      if (!answer.ok) throw new Error(`status ${answer.status}`)
      return Schema.decodeUnknownSync(Schema.FiniteFromString)(await answer.text())
    },
    catch: (cause) => new UpstreamUnavailable({ upstream: "rates", reason: String(cause) })
  })

export const convert = Operation.make("currency.convert", {
  summary: "Convert an amount of US dollars into another currency",
  price: 1.5,
  route: { method: "GET", path: "/currency/:to", params: { to: Schema.Literals(["CHF", "EUR"]) }, query: { amount: Schema.Finite } },
  success: Schema.Struct({ amount: Schema.Finite, currency: Schema.String }),
  run: ({ to, amount }) =>
    Effect.map(
      Rates.use(({ of }) => of(to)),
      (rate) => ({ data: { amount: amount * rate, currency: to } })
    ),
  example: { input: { to: "EUR", amount: 10 }, data: { amount: 9, currency: "EUR" } }
})

export const api = Api.make({ money: Api.group([convert]) })
