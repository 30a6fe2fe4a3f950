/** `GrammarChecker` on a LanguageTool server: one's own, or the public one with credentials. Speaks `POST /v2/check`. */
import { Grammar, UpstreamUnavailable } from "@millrace/core"
import { Effect, Layer, Redacted, Schema } from "effect"
import { FetchHttpClient, HttpClientRequest } from "effect/http"
import * as JsonService from "../shared/JsonService.ts"

const UPSTREAM = "languagetool"

/** The part of a reply that is read. Offsets are UTF-16 code units, as Java counts like JavaScript. */
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
  /** Above `/v2/check`, such as `https://api.languagetool.org` or `http://localhost:8081`. */
  readonly baseUrl: URL
  /** What the server can check; anything that is well-formed BCP 47 by default. */
  readonly languages?: ReadonlyArray<string>
  /** Of a premium account. */
  readonly credentials?: { readonly username: string; readonly apiKey: Redacted.Redacted }
}

/** A language as LanguageTool writes it: `en-gb` is `en-GB`. Nothing when it is not well-formed. */
const canonical = (language: string): string | undefined => {
  try {
    return Intl.getCanonicalLocales(language)[0]
  } catch {
    return undefined
  }
}

/**
 * Fails with `UpstreamUnavailable` on any status but 200, a reply that is malformed, too large (16 MiB by default), too late (20
 * seconds by default) or by its own word incomplete, and on matches outside of the text.
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
        refusal: (status) => unavailable(`it answered with status ${status}`),
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
