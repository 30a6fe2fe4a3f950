/** The web tool as a layer of routes, beside those of the API on the same router. */
import { WebFiles } from "@millrace/http"
import { Effect, type Layer } from "effect"
import type { HttpRouter } from "effect/http"
import { load } from "./Files.ts"

/** The web tool at `path`, `/` by default. It calls the API of its own origin. */
export const layer = (options: WebFiles.Options = {}): Layer.Layer<never, never, HttpRouter.HttpRouter> =>
  WebFiles.layer(Effect.tryPromise(load), options)
