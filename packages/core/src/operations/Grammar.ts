/** Grammar and spelling. */
import { Context, Effect, Schema } from "effect"
import * as Operation from "../work/Operation.ts"
import { InvalidInput, type UpstreamUnavailable } from "../work/OperationError.ts"

export const GrammarReport = Schema.Struct({
  matches: Schema.Array(
    Schema.Struct({
      message: Schema.String,
      /** Where the match begins in the text and how long it is, in UTF-16 code units, as JavaScript counts. */
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
    /** Whether a text in this language (BCP 47, such as `en` or `en-GB`, in any case) can be checked. */
    readonly supports: (language: string) => boolean
    /** What there is to say about a text, in order of offset. `language` is one that is supported. */
    readonly check: (request: {
      readonly text: string
      readonly language: string
    }) => Effect.Effect<typeof GrammarReport.Type, UpstreamUnavailable>
  }
>()("@millrace/core/operations/Grammar/GrammarChecker") {}

const DEFAULT_LANGUAGE = "en-US"

export const check = Operation.make("grammar.check", {
  summary: "Check the grammar and spelling of a text",
  route: {
    method: "POST",
    path: "/grammar/check",
    body: {
      text: Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(50_000)),
      language: Schema.optionalKey(Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(20)))
    }
  },
  success: GrammarReport,
  check: Effect.fnUntraced(function* ({ language = DEFAULT_LANGUAGE }) {
    const checker = yield* GrammarChecker
    if (!checker.supports(language)) {
      return yield* new InvalidInput({ field: "language", message: `language ${JSON.stringify(language)} is not supported` })
    }
  }),
  run: Effect.fnUntraced(function* ({ text, language = DEFAULT_LANGUAGE }) {
    const checker = yield* GrammarChecker
    return { data: yield* checker.check({ text, language }) }
  }),
  example: {
    input: { text: "This are a test.", language: "en-US" },
    data: { matches: [{ message: "Use `is` here.", offset: 5, length: 3, replacements: ["is"], rule: "Agreement" }] }
  }
})
