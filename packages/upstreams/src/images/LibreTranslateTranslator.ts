/** `Translator` on LibreTranslate or a compatible service: `POST {base}/translate`. */
import { Image } from "@millrace/core"
import { Effect, Layer, Redacted, Schema } from "effect"
import { FetchHttpClient, HttpClientRequest } from "effect/http"
import * as JsonService from "../shared/JsonService.ts"
import * as Wire from "../shared/Wire.ts"

const UPSTREAM = "libretranslate"

/** The longest accepted translation, in Unicode code points. */
const MAX_TRANSLATION = 4 * Image.MAX_PROMPT

/** The fields of a reply that are used. */
const TranslateReply = Schema.Struct({
  translatedText: Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(MAX_TRANSLATION))
})

export interface Options extends JsonService.ExchangeLimits {
  /** The URL above `/translate`, such as `https://libretranslate.com`. */
  readonly baseUrl: URL
  readonly apiKey?: Redacted.Redacted
}

/**
 * `UpstreamUnavailable` for any status but 200 (isolated for 400, which concerns this text only), and for a reply that is malformed, empty,
 * too large (256 KiB by default) or too late (20 seconds by default).
 */
export const layer = ({ baseUrl, apiKey, timeLimit = "20 seconds", byteLimit = 256 * 1024 }: Options): Layer.Layer<Image.Translator> =>
  Layer.effect(
    Image.Translator,
    Effect.gen(function* () {
      const ask = yield* JsonService.make({
        upstream: UPSTREAM,
        reply: TranslateReply,
        refusal: (status) => Wire.unexpected(UPSTREAM, status, status === 400),
        timeLimit,
        byteLimit
      })
      const request = HttpClientRequest.post(JsonService.below(baseUrl, "translate")).pipe(HttpClientRequest.acceptJson)
      const key = apiKey === undefined ? {} : { api_key: Redacted.value(apiKey) }
      return {
        configured: Effect.void,
        translate: Effect.fn("LibreTranslateTranslator.translate")(function* (text) {
          const body = { q: text, source: "auto", target: "en", format: "text", ...key }
          return (yield* ask(HttpClientRequest.bodyJsonUnsafe(request, body))).translatedText
        })
      }
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))
