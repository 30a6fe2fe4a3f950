/** What is sent for an input is what the server understands, whatever the input holds. */
import { Effect } from "effect"
import * as fc from "fast-check"
import { expect } from "vitest"
import { createClient } from "../../src/client/index.ts"
import { api, host, testing } from "../Host.ts"
import { retry, surroundings } from "./Surroundings.ts"

const text = (maxLength: number) => fc.oneof(fc.string({ maxLength, unit: "binary" }), fc.string({ maxLength, unit: "grapheme" }))

/** Of any characters but halves of a pair, which no URL can hold. */
const inputs = fc.record(
  {
    room: text(40).filter((room) => room.length > 0 && room !== "." && room !== ".." && room.isWellFormed()),
    times: fc.integer({ min: 1, max: 9 }),
    tag: fc.array(
      text(10).filter((tag) => tag.isWellFormed()),
      { minLength: 1, maxLength: 4 }
    ),
    how: fc.constant("at once" as const),
    deep: fc.jsonValue()
  },
  { requiredKeys: ["room", "how"] }
)

testing(
  "the server reads path, query and body as the client sent them",
  Effect.gen(function* () {
    const { handler, account } = yield* host()
    const { key } = yield* account(1_000_000)
    const { around } = yield* surroundings
    const echoes: Array<unknown> = []
    const millrace = createClient({
      baseUrl: "http://millrace.test",
      apiKey: key,
      api,
      retry,
      surroundings: {
        ...around,
        fetch: async (request) => {
          const response = await handler.handle(request)
          echoes.push(await response.clone().json())
          return response
        }
      }
    })
    yield* Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(inputs, async (input) => {
          const { data } = await millrace.test.work(input)
          expect(data).toEqual({ room: input.room, times: input.times ?? 1 })
          // As JSON: minus zero is zero
          const echo = expect.objectContaining({ input: JSON.parse(JSON.stringify(input)) })
          expect(echoes.pop()).toEqual(expect.objectContaining({ request: echo }))
        }),
        { numRuns: 300 }
      )
    )
  })
)
