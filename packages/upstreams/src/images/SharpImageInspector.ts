/** `ImageInspector` on sharp: decodes the whole image off the event loop, and discards it. */
import { Image } from "@millrace/core"
import { Effect, Layer } from "effect"
import * as FairTurns from "../shared/FairTurns.ts"
import * as ImageFile from "./ImageFile.ts"

export interface Options extends Partial<Omit<FairTurns.QueueLimits, "upstream">> {
  /** The most images decoded at once: 1 by default. One of 50 million pixels takes about half a second and 200 MB. */
  readonly concurrency?: number
}

/** Accounts take fair turns. After a wait of 15 seconds by default, a call fails with isolated `UpstreamUnavailable`. */
export const layer = ({ concurrency = 1, waitLimit = "15 seconds", ...limits }: Options = {}): Layer.Layer<Image.ImageInspector> =>
  Layer.effect(
    Image.ImageInspector,
    Effect.gen(function* () {
      const turns = yield* FairTurns.make(
        Array.from({ length: concurrency }, (_, slot) => slot),
        { upstream: "sharp", waitLimit, ...limits }
      )
      return {
        inspect: Effect.fn("SharpImageInspector.inspect")(({ accountId, image }) =>
          turns.use(accountId, () => ImageFile.inspect("image", image)).pipe(turns.admit(accountId))
        )
      }
    })
  )
