/**
 * The HTTP face of Millrace as a layer of routes: for `HttpRouter.serve` of an Effect host, and for `WebHandler`, which serves any
 * other.
 */

import type { AuthThrottle, Charge, KeyRing, RateLimit } from "@millrace/core"
import { type Array, Context, Effect, Layer, type Predicate, Scope, Tracer } from "effect"
import { HttpMiddleware, HttpRouter } from "effect/http"
import type { Api, Groups, OperationsOf } from "./Api.ts"
import type { Services } from "./Endpoint.ts"
import * as OperationRoute from "./OperationRoute.ts"
import type { Readiness } from "./Readiness.ts"
import * as RequestMiddleware from "./RequestMiddleware.ts"
import * as SystemRoutes from "./SystemRoutes.ts"

export interface Options {
  /** Bytes of a request body: 1 MiB by default. */
  readonly bodyLimit?: number
  /** Which web pages may call from a browser: none by default. Credentials are never allowed, for there are no cookies. */
  readonly cors?: { readonly origins: Array.NonEmptyReadonlyArray<string> | Predicate.Predicate<string>; readonly maxAge?: number }
  /** Where people read the documentation: `/docs` by default. False: nowhere. */
  readonly docs?: `/${string}` | false
}

/** What the routes need beside what their operations do. */
export type Requirements<G extends Groups> = Charge.Charge | KeyRing | AuthThrottle | RateLimit | Readiness | Services<OperationsOf<G>>

/** Every route of the API. Routes that a host adds to the same router get a request id and error objects, too. */
export const layer = <G extends Groups>(
  { groups, contract }: Api<G>,
  { bodyLimit = 1024 * 1024, cors, docs = "/docs" }: Options = {}
): Layer.Layer<never, never, HttpRouter.HttpRouter | Requirements<G>> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const router = yield* HttpRouter.HttpRouter
      // All but what belongs to the building, and would stand before what belongs to a request
      const services = Context.omit(Scope.Scope, Tracer.ParentSpan)(yield* Effect.context<Services<OperationsOf<G>>>())
      const routeOf = yield* OperationRoute.make({ bodyLimit, services })
      const served = Object.values(groups).flatMap(({ operations, scope }) => operations.map((operation) => routeOf(operation, scope)))
      const routes = [...served, ...(yield* SystemRoutes.make({ contract, docs }))]
      yield* router.addGlobalMiddleware(yield* RequestMiddleware.make({ places: routes, context: services }))
      if (cors !== undefined) yield* router.addGlobalMiddleware(crossOrigin(cors))
      yield* router.addAll(routes)
    })
  )

const crossOrigin = ({ origins, maxAge }: NonNullable<Options["cors"]>) =>
  HttpMiddleware.cors({
    allowedOrigins: origins,
    allowedMethods: ["GET", "POST", "PUT", "PATCH", "DELETE"],
    allowedHeaders: [
      "Authorization",
      "Content-Type",
      "Idempotency-Key",
      "If-None-Match",
      "If-Range",
      "Prefer",
      "Range",
      "Traceparent",
      "Tracestate",
      "X-Max-Credits",
      "X-Request-Id"
    ],
    exposedHeaders: [
      "Accept-Ranges",
      "Content-Disposition",
      "Content-Range",
      "ETag",
      "Idempotent-Replayed",
      "Link",
      "Preference-Applied",
      "RateLimit",
      "RateLimit-Policy",
      "Retry-After",
      "X-Credits-Available",
      "X-Credits-Balance",
      "X-Credits-Charged",
      "X-Credits-Required",
      "X-Credits-Shortfall",
      "X-Replay-Request-Id",
      "X-Request-Id",
      "X-Should-Retry"
    ],
    ...(maxAge === undefined ? {} : { maxAge })
  })
