import { Topics } from "@millrace/core"
import { BundledTopicLibrary } from "@millrace/upstreams"
import { Effect } from "effect"
import { describe, expect, test } from "vitest"

const library = BundledTopicLibrary.TOPICS

const run = (input: { readonly q?: string }) =>
  Topics.list
    .run(input, { accountId: "acc", requestId: "req", reservationId: "res" })
    .pipe(Effect.provide(BundledTopicLibrary.layer), Effect.runPromise)

describe("the operation on the bundled library", () => {
  test("lists every topic for no query, or blanks", async () => {
    for (const input of [{}, { q: "" }, { q: "   " }]) expect(await run(input)).toEqual({ data: { topics: library } })
  })

  test("returns the documented example", async () => {
    const { input, data } = Topics.list.example ?? {}
    if (input === undefined) throw new Error("there is no example")
    expect(await run(input)).toEqual({ data })
    expect(data?.topics).not.toEqual([])
  })

  test("returns no topics where nothing matches, and does not fail", async () => {
    expect(await run({ q: "no such thing as qwxz" })).toEqual({ data: { topics: [] } })
  })
})
