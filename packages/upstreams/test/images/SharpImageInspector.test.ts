import { Image } from "@millrace/core"
import { SharpImageInspector } from "@millrace/upstreams"
import { Effect, Fiber } from "effect"
import sharp from "sharp"
import { expect, test } from "vitest"
import { png } from "./Png.ts"

test("accounts take turns: many large images of one account do not block another", () =>
  Effect.gen(function* () {
    const { inspect } = yield* Image.ImageInspector
    const large = yield* Effect.promise(() =>
      sharp({ create: { width: 4_000, height: 4_000, channels: 3, background: "red" } })
        .png()
        .toBuffer()
    )
    const order: Array<string> = []
    const asked = (accountId: string, image: Uint8Array) =>
      Effect.forkChild(
        Effect.tap(inspect({ accountId, image }), () => Effect.sync(() => order.push(accountId))),
        { startImmediately: true }
      )
    const many = yield* Effect.forEach(Array.from({ length: 10 }), () => asked("many", large))
    const one = yield* asked("one", png(40, 30))
    yield* Effect.forEach([...many, one], Fiber.join)
    expect(order.indexOf("one")).toBeLessThan(3)
  }).pipe(Effect.provide(SharpImageInspector.layer({ waitLimit: "1 hour" })), Effect.runPromise))

test("too many calls of one account are refused, isolated", () =>
  Effect.gen(function* () {
    const { inspect } = yield* Image.ImageInspector
    const results = yield* Effect.forEach(
      Array.from({ length: 3 }),
      () => Effect.result(inspect({ accountId: "many", image: png(40, 30) })),
      { concurrency: "unbounded" }
    )
    expect(results).toMatchObject([
      { _tag: "Success" },
      { _tag: "Success" },
      { failure: { _tag: "UpstreamUnavailable", reason: "2 calls of the account wait already", isolated: true } }
    ])
  }).pipe(Effect.provide(SharpImageInspector.layer({ accountLimit: 2 })), Effect.runPromise))
