/** A job operation of a host's own: routes, catalog, OpenAPI and clients know it by this. `npm run custom-job -w examples` serves it. */
import { Operation } from "@millrace/core"
import { Api } from "@millrace/http"
import { Effect, Schema } from "effect"

const counts = Operation.family("text.count", {
  resource: "count",
  path: "/counts/:job",
  result: Schema.Struct({ words: Schema.Int }),
  checkpoint: Schema.Struct({ done: Schema.Int, words: Schema.Int })
})

export const count = Operation.job("text.count", {
  summary: "Count the words of a book, chapter by chapter",
  price: 0.5, // a chapter
  route: { method: "POST", path: "/counts", body: { chapters: Schema.Array(Schema.String).check(Schema.isMinLength(1)) } },
  family: counts,
  unit: "chapter",
  quantity: ({ chapters }) => chapters.length,
  success: Schema.Struct({ id: Schema.String, status: Schema.String }),
  created: ({ id, status }) => ({ id, status }),
  run: Effect.fnUntraced(function* ({ chapters }, job) {
    let { done, words } = job.checkpoint ?? { done: 0, words: 0 } // after a crash: from where it was
    for (const chapter of chapters.slice(done)) {
      words += chapter.match(/\S+/gu)?.length ?? 0
      yield* job.progress((100 * ++done) / chapters.length, { done, words })
    }
    return { data: { words } }
  })
})
export const read = Operation.readJob("text.readCount", counts, {
  summary: "Read a count",
  success: Schema.Struct({ status: Schema.String, percent: Schema.Int, words: Schema.NullOr(Schema.Int) }),
  view: ({ percent, result, status }) => Effect.map(result, (found) => ({ status, percent, words: found?.words ?? null }))
})
export const cancel = Operation.cancelJob("text.cancelCount", counts, { summary: "Cancel a count: it costs nothing" })

export const api = Api.make({ texts: Api.group([count, read, cancel]) })
