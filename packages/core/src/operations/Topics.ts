/** The operation that searches templates of prompts, and the service that holds them. */
import { Context, Effect, Schema } from "effect"
import * as Operation from "../work/Operation.ts"
import type { UpstreamUnavailable } from "../work/OperationError.ts"

export const Topics = Schema.Struct({
  topics: Schema.Array(
    Schema.Struct({
      category: Schema.String,
      /** Whole prompts. Placeholders are in braces, such as `{topic}` or `{audience}`. */
      templates: Schema.Array(Schema.String)
    })
  )
})

export class TopicLibrary extends Context.Service<
  TopicLibrary,
  {
    /**
     * Returns topics with the templates that match: every word of the query occurs in the category or in the template. Topics without a
     * match are left out. An empty or blank query matches all.
     */
    readonly search: (query: string | undefined) => Effect.Effect<typeof Topics.Type, UpstreamUnavailable>
  }
>()("@millrace/core/operations/Topics/TopicLibrary") {}

export const list = Operation.make("topics.list", {
  summary: "Browse prompt topics and their templates",
  price: 0.1,
  description:
    "Each template is a whole prompt with placeholders in braces, such as `{topic}` or `{audience}`. `q` selects the templates that " +
    "contain each of its words, in the template or in the name of the category, in any case. The list may be empty.",
  route: {
    method: "GET",
    path: "/content/prompts/topics",
    query: { q: Schema.optionalKey(Schema.String.check(Schema.isMaxCodePoints(100))) }
  },
  success: Topics,
  run: Effect.fnUntraced(function* ({ q }) {
    return { data: yield* TopicLibrary.use((library) => library.search(q)) }
  }),
  example: {
    input: { q: "interview salary" },
    data: {
      topics: [
        {
          category: "Job interviews",
          templates: ["Practise the salary question with me; my wish is {budget} and I tend to give in too soon."]
        }
      ]
    }
  }
})
