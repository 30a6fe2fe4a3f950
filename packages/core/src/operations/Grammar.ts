/** The operation that checks grammar and spelling, and the service that does it. */
import { Context, Effect, Schema } from "effect"
import * as Operation from "../work/Operation.ts"
import { InvalidInput, type UpstreamUnavailable } from "../work/OperationError.ts"

export const GrammarReport = Schema.Struct({
  matches: Schema.Array(
    Schema.Struct({
      message: Schema.String,
      /** The start and length of the match in UTF-16 code units, as in JavaScript. */
      offset: Schema.Int,
      length: Schema.Int,
      replacements: Schema.Array(Schema.String),
      /** Name of the rule that matched. */
      rule: Schema.String
    })
  )
})

export class GrammarChecker extends Context.Service<
  GrammarChecker,
  {
    /** Whether the checker supports a language (BCP 47, such as `en` or `en-GB`, in any case). */
    readonly supports: (language: string) => boolean
    /**
     * Checks a text in a supported language. Returns matches in order of offset. A checker that computes in this process takes turns
     * between accounts.
     */
    readonly check: (request: {
      readonly accountId: string
      readonly text: string
      readonly language: string
    }) => Effect.Effect<typeof GrammarReport.Type, UpstreamUnavailable>
  }
>()("@millrace/core/operations/Grammar/GrammarChecker") {}

const DEFAULT_LANGUAGE = "en-US"

export const check = Operation.make("grammar.check", {
  summary: "Check the grammar and spelling of a text",
  price: 1,
  route: {
    method: "POST",
    path: "/grammar/check",
    body: {
      text: Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(50_000)),
      language: Schema.optionalKey(Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(20)))
    }
  },
  success: GrammarReport,
  check: Effect.fnUntraced(function* ({ language = DEFAULT_LANGUAGE }) {
    const checker = yield* GrammarChecker
    if (!checker.supports(language)) {
      return yield* new InvalidInput({ field: "language", message: `language ${JSON.stringify(language)} is not supported` })
    }
  }),
  run: Effect.fnUntraced(function* ({ text, language = DEFAULT_LANGUAGE }, { accountId }) {
    return { data: yield* GrammarChecker.use((checker) => checker.check({ accountId, text, language })) }
  }),
  example: {
    input: { text: "This is an test.", language: "en-US" },
    data: { matches: [{ message: "Incorrect indefinite article.", offset: 8, length: 2, replacements: ["a"], rule: "AnA" }] }
  }
})
