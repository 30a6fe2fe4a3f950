/** `TopicLibrary` in this process and offline: prompts of our own, which come with this package. */
import { Topics } from "@millrace/core"
import { Effect, Layer } from "effect"
import { library } from "./library/Library.ts"
import * as Search from "./Search.ts"

export { PLACEHOLDERS, type Placeholder } from "./Topic.ts"

const search = Search.over(library)

export const layer: Layer.Layer<Topics.TopicLibrary> = Layer.succeed(Topics.TopicLibrary, {
  search: (query = "") => Effect.sync(() => ({ topics: search(query) }))
})
