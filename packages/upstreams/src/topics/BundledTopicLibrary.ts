/** `TopicLibrary` in this process and offline: the prompts of `topics.json`. */
import { Topics } from "@millrace/core"
import { Effect, Layer } from "effect"
import placeholders from "./placeholders.json" with { type: "json" }
import * as Search from "./Search.ts"
import topics from "./topics.json" with { type: "json" }

/** A description of each placeholder, such as `{audience}`, by its name. */
export const PLACEHOLDERS = placeholders

export type Placeholder = keyof typeof PLACEHOLDERS

/** All topics, in display order. */
export const TOPICS: ReadonlyArray<Search.Topic> = topics

const search = Search.over(TOPICS)

export const layer: Layer.Layer<Topics.TopicLibrary> = Layer.succeed(Topics.TopicLibrary, {
  search: (query = "") => Effect.sync(() => ({ topics: search(query) }))
})
