/** `ImageInspector` on sharp: decodes the whole picture, off the event loop, and keeps nothing of it. */
import { Image } from "@millrace/core"
import { Effect, Layer } from "effect"
import * as FairTurns from "../shared/FairTurns.ts"
import * as ImageFile from "./ImageFile.ts"

export interface Options extends Partial<Omit<FairTurns.QueueLimits, "upstream">> {
  /** Pictures decoded at once: 1 by default. One of 50 million pixels takes about half a second and 200 MB. */
  readonly concurrency?: number
}

/** Accounts take fair turns. A picture waits 15 seconds for its turn by default; then it fails with `UpstreamUnavailable`, isolated. */
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
