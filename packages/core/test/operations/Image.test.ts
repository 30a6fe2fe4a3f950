import { Effect } from "effect"
import { describe, expect, test } from "vitest"
import { ImageGenerator, Translator } from "../../src/operations/Image.ts"
import { UpstreamNotConfigured } from "../../src/work/OperationError.ts"

const request = { prompt: "a mill", width: 256, height: 256, samples: 1, idempotencyKey: "job_1" }

describe("without a provider", () => {
  test("the generator and its check fail with UpstreamNotConfigured", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const images = yield* ImageGenerator
        const missing = new UpstreamNotConfigured({ upstream: "images" })
        expect(yield* Effect.flip(images.configured)).toEqual(missing)
        expect(yield* Effect.flip(images.generate(request))).toEqual(missing)
        expect(yield* Effect.flip(images.edit({ ...request, image: undefined }))).toEqual(missing)
      }).pipe(Effect.provide(ImageGenerator.unconfigured))
    ))

  test("the translator and its check fail with UpstreamNotConfigured", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const translator = yield* Translator
        const missing = new UpstreamNotConfigured({ upstream: "translation" })
        expect(yield* Effect.flip(translator.configured)).toEqual(missing)
        expect(yield* Effect.flip(translator.translate("un moulin"))).toEqual(missing)
      }).pipe(Effect.provide(Translator.unconfigured))
    ))
})
