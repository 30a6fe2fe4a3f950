/** Ideas for prompts: templates by category. */
import { Context, Effect, Schema } from "effect"
import * as Operation from "./Operation.ts"
import type { UpstreamUnavailable } from "./OperationError.ts"

export const Topics = Schema.Struct({
  topics: Schema.Array(
    Schema.Struct({
      category: Schema.String,
      /** Each may hold placeholders such as `{topic}`. */
      templates: Schema.Array(Schema.String)
    })
  )
})

export class TopicLibrary extends Context.Service<
  TopicLibrary,
  {
    /** All topics, or those whose category or templates have every word of `query`. */
    readonly search: (query: string | undefined) => Effect.Effect<typeof Topics.Type, UpstreamUnavailable>
  }
>()("@millrace/core/operations/Topics/TopicLibrary") {}

export const list = Operation.make("topics.list", {
  summary: "Browse prompt topics and their templates",
  route: {
    method: "GET",
    path: "/content/prompts/topics",
    query: { q: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(100))) }
  },
  success: Topics,
  run: Effect.fnUntraced(function* ({ q }) {
    const library = yield* TopicLibrary
    return { data: yield* library.search(q) }
  })
})
