/** `ImageDownloader` for public URLs: reads with `SafeFetch`, checks with `ImageFile`. */
import { Image } from "@millrace/core"
import { type Duration, Effect, Layer } from "effect"
import * as SafeFetch from "../shared/SafeFetch.ts"
import * as ImageFile from "./ImageFile.ts"

const FIELD = "image_url"

export interface Options extends Pick<SafeFetch.Options, "ports" | "isAllowed" | "resolve" | "redirects"> {
  /** 16 MiB by default. */
  readonly byteLimit?: number
  /** 15 seconds by default. */
  readonly timeLimit?: Duration.Input
}

/** Each image becomes a PNG of its own size, scaled into the bounds. */
export const layer = ({
  byteLimit = Image.MAX_IMAGE,
  timeLimit = "15 seconds",
  ...options
}: Options = {}): Layer.Layer<Image.ImageDownloader> => {
  const read = SafeFetch.make({ ...options, field: FIELD, accept: "image/png, image/jpeg, image/webp", byteLimit, timeLimit })
  return Layer.succeed(Image.ImageDownloader, {
    download: Effect.fn("UrlImageDownloader.download")(function* (url) {
      return yield* ImageFile.given(FIELD, yield* read(url))
    })
  })
}
