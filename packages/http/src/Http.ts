/**
 * The HTTP face of Millrace as a layer of routes: for `HttpRouter.serve` of an Effect host, and for `WebHandler`, which serves any
 * other.
 */

import type { AuthThrottle, Charge, KeyRing, RateLimit } from "@millrace/core"
import { type Array, Context, Effect, Layer, type Predicate, Scope, Tracer } from "effect"
import { HttpMiddleware, HttpRouter, HttpServerResponse } from "effect/http"
import type { Api, Groups, OperationsOf } from "./Api.ts"
import * as Edge from "./Edge.ts"
import type { Services } from "./Endpoint.ts"
import { CurrentExchange } from "./Exchange.ts"
import * as OperationRoute from "./OperationRoute.ts"
import { Readiness } from "./Readiness.ts"

export interface Options {
  /** Bytes of a request body: 1 MiB by default. */
  readonly bodyLimit?: number
  /** Which web pages may call from a browser: none by default. Credentials are never allowed, for there are no cookies. */
  readonly cors?: { readonly origins: Array.NonEmptyReadonlyArray<string> | Predicate.Predicate<string>; readonly maxAge?: number }
}

/** What the routes need beside what their operations do. */
export type Requirements<G extends Groups> = Charge.Charge | KeyRing | AuthThrottle | RateLimit | Readiness | Services<OperationsOf<G>>

/** Every route of the API. Routes that a host adds to the same router get a request id and error objects, too. */
export const layer = <G extends Groups>(
  { groups }: Api<G>,
  { bodyLimit = 1024 * 1024, cors }: Options = {}
): Layer.Layer<never, never, HttpRouter.HttpRouter | Requirements<G>> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const router = yield* HttpRouter.HttpRouter
      // All but what belongs to the building, and would stand before what belongs to a request
      const services = Context.omit(Scope.Scope, Tracer.ParentSpan)(yield* Effect.context<Services<OperationsOf<G>>>())
      const routeOf = yield* OperationRoute.make({ bodyLimit, services })
      const served = Object.values(groups).flatMap(({ operations, scope }) => operations.map((operation) => routeOf(operation, scope)))
      const routes = [...served, ...(yield* system)]
      yield* router.addGlobalMiddleware(yield* Edge.make({ places: routes, context: services }))
      if (cors !== undefined) yield* router.addGlobalMiddleware(crossOrigin(cors))
      yield* router.addAll(routes)
    })
  )

/** Whether it lives, and whether it can serve. */
const system = Effect.gen(function* () {
  const { report } = yield* Readiness
  const answer = (path: `/${string}`, response: Effect.Effect<HttpServerResponse.HttpServerResponse>) =>
    HttpRouter.route(
      "GET",
      path,
      Effect.gen(function* () {
        const exchange = yield* CurrentExchange
        exchange.route = path
        return HttpServerResponse.setHeader(yield* response, "cache-control", "no-store")
      })
    )
  return [
    answer("/health", Effect.succeed(HttpServerResponse.jsonUnsafe({ status: "alive" }))),
    answer(
      "/ready",
      Effect.map(report, (ready) => HttpServerResponse.jsonUnsafe(ready, { status: ready.status === "ready" ? 200 : 503 }))
    )
  ]
})

const crossOrigin = ({ origins, maxAge }: NonNullable<Options["cors"]>) =>
  HttpMiddleware.cors({
    allowedOrigins: origins,
    allowedMethods: ["GET", "POST", "PUT", "PATCH", "DELETE"],
    allowedHeaders: ["Authorization", "Content-Type", "Idempotency-Key", "Prefer", "X-Max-Credits", "X-Request-Id"],
    exposedHeaders: [
      "Idempotent-Replayed",
      "RateLimit",
      "RateLimit-Policy",
      "Retry-After",
      "X-Credits-Balance",
      "X-Credits-Charged",
      "X-Replay-Request-Id",
      "X-Request-Id",
      "X-Should-Retry"
    ],
    ...(maxAge === undefined ? {} : { maxAge })
  })
