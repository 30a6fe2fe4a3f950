/** `BinDirectory` on binlist.net or a compatible service: `GET {base}/{bin}`, and 404 for an unknown prefix. */
import { Bin, NotFound } from "@millrace/core"
import { Effect, Layer, Schema } from "effect"
import { FetchHttpClient, HttpClientRequest } from "effect/http"
import * as JsonService from "../shared/JsonService.ts"
import * as Wire from "../shared/Wire.ts"
import { countryOf } from "./Countries.ts"
import { schemeNamed } from "./Schemes.ts"

const UPSTREAM = "binlist"

const Word = Schema.optionalKey(Schema.NullOr(Schema.String))

/** The fields of a reply that are used. An unknown value is null, missing, or an object without fields. */
const LookupReply = Schema.Struct({
  scheme: Word,
  type: Word,
  brand: Word,
  prepaid: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  country: Schema.optionalKey(Schema.NullOr(Schema.Struct({ alpha2: Word, name: Word, currency: Word }))),
  bank: Schema.optionalKey(Schema.NullOr(Schema.Struct({ name: Word })))
})

export interface Options extends JsonService.ExchangeLimits {
  /** Such as `https://lookup.binlist.net`. */
  readonly baseUrl: URL
}

const recordOf = (bin: string, scheme: string, reply: typeof LookupReply.Type): typeof Bin.BinRecord.Type => {
  const code = reply.country?.alpha2 || undefined
  const known = code === undefined ? undefined : countryOf(code)
  const name = reply.country?.name || known?.name
  const bank = reply.bank?.name || undefined
  return {
    bin,
    scheme: schemeNamed(scheme),
    type: reply.type?.toLowerCase() || (reply.prepaid === true ? "prepaid" : null),
    brand: reply.brand || null,
    country:
      code === undefined || name === undefined
        ? null
        : { name, code: code.toUpperCase(), currency: reply.country?.currency || known?.currency || null },
    bank: bank === undefined ? null : { name: bank }
  }
}

/**
 * `NotFound` for 404 and for a reply without a scheme. `UpstreamUnavailable` for any other status but 200, and for a reply that is
 * malformed, too large (64 KiB by default) or too late (10 seconds by default).
 */
export const layer = ({ baseUrl, timeLimit = "10 seconds", byteLimit = 64 * 1024 }: Options): Layer.Layer<Bin.BinDirectory> =>
  Layer.effect(
    Bin.BinDirectory,
    Effect.gen(function* () {
      const ask = yield* JsonService.make({
        upstream: UPSTREAM,
        reply: LookupReply,
        refusal: (status) => (status === 404 ? new NotFound({ resource: "bin" }) : Wire.unexpected(UPSTREAM, status)),
        timeLimit,
        byteLimit
      })
      return {
        lookup: Effect.fn("BinlistBinDirectory.lookup")(function* (bin) {
          const reply = yield* ask(
            HttpClientRequest.get(JsonService.below(baseUrl, bin), { accept: "application/json", headers: { "accept-version": "3" } })
          )
          if (!reply.scheme) return yield* new NotFound({ resource: "bin" })
          return recordOf(bin, reply.scheme, reply)
        })
      }
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))
