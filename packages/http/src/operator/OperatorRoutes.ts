/**
 * What operators read of a host, behind a key of their own. The routes only read. They stand in no document of the API; where they are
 * served, the document names their place, so that a page knows that they are there.
 */
import { AuthThrottle, Unauthorized } from "@millrace/core"
import { Effect, Layer, Redacted } from "effect"
import { HttpRouter } from "effect/http"
import * as Access from "../Access.ts"
import { type Fields, PREFIX } from "../Endpoint.ts"
import { isEqual } from "../hooks/Signature.ts"
import type { Failure } from "../Problem.ts"
import { type Given, type Request, routeOf } from "../sessions/SessionRoute.ts"

/** The place of everything that operators read. */
export const PLACE = `${PREFIX}/operator`

/** The fewest characters of an operator's key. */
export const SHORTEST_KEY = 32

/** The paths below {@link PLACE}; the empty one is the place itself. */
const PATHS = ["", "/accounts", "/holds", "/jobs", "/head"] as const

/** Where the routes are, for requests with another method. */
export const PLACES = PATHS.map((path) => ({ method: "GET", path: `${PLACE}${path}` }) as const)

/** Something that operators read. */
export interface View {
  readonly path: (typeof PATHS)[number]
  readonly query?: Fields
  /** Returns data for JSON. */
  readonly read: (input: Given["input"]) => Effect.Effect<unknown, Failure>
}

/** Serves views to whoever has the key. A wrong key counts as a wrong API key does. */
export const layer = (
  key: Redacted.Redacted,
  views: ReadonlyArray<View>
): Layer.Layer<never, never, HttpRouter.HttpRouter | AuthThrottle> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const router = yield* HttpRouter.HttpRouter
      const throttled = Access.throttling(yield* AuthThrottle)
      const admit = (request: Request) =>
        throttled(
          request,
          Effect.suspend(() => (isEqual(Access.keyOf(request) ?? "", Redacted.value(key)) ? Effect.void : Effect.fail(new Unauthorized())))
        )
      yield* router.addAll(
        views.map(({ path, query = {}, read }) =>
          routeOf({
            method: "GET",
            path: `${PLACE}${path}`,
            query,
            admit,
            answer: ({ input }) => Effect.map(read(input), (data) => ({ status: 200, data }))
          })
        )
      )
    })
  )
