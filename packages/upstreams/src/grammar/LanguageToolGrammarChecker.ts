/** `GrammarChecker` on a LanguageTool server, self-hosted or public: `POST /v2/check`. */
import { Grammar, UpstreamUnavailable } from "@millrace/core"
import { Effect, Layer, Redacted, Schema } from "effect"
import { FetchHttpClient, HttpClientRequest } from "effect/http"
import * as JsonService from "../shared/JsonService.ts"
import * as Wire from "../shared/Wire.ts"

const UPSTREAM = "languagetool"

/** The fields of a reply that are used. Offsets are UTF-16 code units, in Java as in JavaScript. */
const CheckReply = Schema.Struct({
  warnings: Schema.optionalKey(Schema.Struct({ incompleteResults: Schema.optionalKey(Schema.Boolean) })),
  matches: Schema.Array(
    Schema.Struct({
      message: Schema.String,
      offset: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
      length: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
      replacements: Schema.Array(Schema.Struct({ value: Schema.String })),
      rule: Schema.Struct({ id: Schema.String })
    })
  )
})

export interface Options extends JsonService.ExchangeLimits {
  /** The URL above `/v2/check`, such as `https://api.languagetool.org` or `http://localhost:8081`. */
  readonly baseUrl: URL
  /** The supported languages; by default any well-formed BCP 47 tag. */
  readonly languages?: ReadonlyArray<string>
  /** Credentials of a premium account. */
  readonly credentials?: { readonly username: string; readonly apiKey: Redacted.Redacted }
}

/** A language tag in canonical case: `en-gb` becomes `en-GB`. Undefined if it is malformed. */
const canonical = (language: string): string | undefined => {
  try {
    return Intl.getCanonicalLocales(language)[0]
  } catch {
    return undefined
  }
}

/**
 * `UpstreamUnavailable` for any status but 200, for a reply that is malformed, too large (16 MiB by default), too late (20 seconds by
 * default) or declared incomplete, and for matches outside the text.
 */
export const layer = ({
  baseUrl,
  languages,
  credentials,
  timeLimit = "20 seconds",
  byteLimit = 16 * 1024 * 1024
}: Options): Layer.Layer<Grammar.GrammarChecker> => {
  const unavailable = (reason: string) => new UpstreamUnavailable({ upstream: UPSTREAM, reason })
  const known = languages === undefined ? undefined : new Set(languages.map((language) => canonical(language) ?? language))
  const account = credentials === undefined ? {} : { username: credentials.username, apiKey: Redacted.value(credentials.apiKey) }
  const request = HttpClientRequest.post(JsonService.below(baseUrl, "v2/check")).pipe(HttpClientRequest.acceptJson)

  return Layer.effect(
    Grammar.GrammarChecker,
    Effect.gen(function* () {
      const ask = yield* JsonService.make({
        upstream: UPSTREAM,
        reply: CheckReply,
        refusal: (status) => Wire.unexpected(UPSTREAM, status),
        timeLimit,
        byteLimit
      })
      return {
        supports: (language) => {
          const tag = canonical(language)
          return tag !== undefined && (known === undefined || known.has(tag))
        },
        check: Effect.fn("LanguageToolGrammarChecker.check")(function* ({ text, language }) {
          const form = { text, language: canonical(language) ?? language, ...account }
          const reply = yield* ask(HttpClientRequest.bodyUrlParams(request, form))
          if (reply.warnings?.incompleteResults === true) return yield* unavailable("it gave up before the end of the text")
          if (reply.matches.some(({ offset, length }) => offset + length > text.length))
            return yield* unavailable("a match lies outside of the text")
          const matches = reply.matches.map(({ message, offset, length, replacements, rule }) => ({
            message,
            offset,
            length,
            replacements: replacements.map(({ value }) => value),
            rule: rule.id
          }))
          return { matches: matches.sort((a, b) => a.offset - b.offset) }
        })
      }
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))
}
