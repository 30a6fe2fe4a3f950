/**
 * Millrace's HTTP API as a layer of routes. An Effect host gives it to `HttpRouter.serve`; every other host serves it by `WebHandler`.
 */

import {
  type AccountWatch,
  type AuthThrottle,
  type Charge,
  type KeyRing,
  type Ledger,
  PriceAlertOperations,
  type RateLimit
} from "@millrace/core"
import { type Array, Context, Effect, Layer, type Predicate, Scope, Struct, Tracer } from "effect"
import { HttpMiddleware, HttpRouter } from "effect/http"
import * as AccountEvents from "./AccountEvents.ts"
import type { Api, Groups, OperationsOf } from "./Api.ts"
import * as AlertPage from "./alerts/AlertPage.ts"
import * as DirectRoute from "./DirectRoute.ts"
import type { Services } from "./Endpoint.ts"
import type { Name as Hook } from "./hooks/HookEndpoints.ts"
import * as OperationRoute from "./OperationRoute.ts"
import { RESPONSE_HEADERS } from "./openapi/Headers.ts"
import * as OperatorRoutes from "./operator/OperatorRoutes.ts"
import type { Readiness } from "./Readiness.ts"
import * as RequestContext from "./RequestContext.ts"
import * as RequestMiddleware from "./RequestMiddleware.ts"
import * as ServedOperation from "./ServedOperation.ts"
import * as SystemRoutes from "./SystemRoutes.ts"
import * as PasskeyEndpoints from "./sessions/PasskeyEndpoints.ts"
import * as SessionEndpoints from "./sessions/SessionEndpoints.ts"

export interface Options {
  /** The largest request body in bytes: 1 MiB by default. */
  readonly bodyLimit?: number
  /** The web pages that may call from a browser: none by default. Credentials are never allowed: only pages of this host use sessions. */
  readonly cors?: { readonly origins: Array.NonEmptyReadonlyArray<string> | Predicate.Predicate<string>; readonly maxAge?: number }
  /** The path of the documentation page: `/docs` by default, no page if false. */
  readonly docs?: `/${string}` | false
  /** The hooks that `SmsHooks.layer` and `PaymentHooks.layer` serve beside these routes, for the document: none by default. */
  readonly hooks?: ReadonlyArray<Hook>
  /** Whether `SessionRoutes.layer` serves sign-ups and sessions beside these routes: false by default. */
  readonly sessions?: boolean
  /** Whether `OperatorRoutes.layer` serves what operators read beside these routes: false by default. */
  readonly operator?: boolean
}

/** The services that the routes need, with those of the operations. */
export type Requirements<G extends Groups> =
  | AccountWatch.AccountWatch
  | AuthThrottle
  | Charge.Charge
  | KeyRing
  | Ledger
  | RateLimit
  | Readiness
  | Services<OperationsOf<G>>

/** Every route of the API. Routes that a host adds to the same router also get request ids and error objects. */
export const layer = <G extends Groups>(
  { groups, contract, operations }: Api<G>,
  { bodyLimit = 1024 * 1024, cors, docs = "/docs", hooks = [], operator = false, sessions = false }: Options = {}
): Layer.Layer<never, never, HttpRouter.HttpRouter | Requirements<G>> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const router = yield* HttpRouter.HttpRouter
      // Without the scope and the span of this layer, which would hide those of a request
      const services = Context.omit(Scope.Scope, Tracer.ParentSpan)(yield* Effect.context<Services<OperationsOf<G>>>())
      yield* RequestContext.share(services)
      const routeOf = yield* OperationRoute.make(bodyLimit, services)
      const directOf = yield* DirectRoute.make
      const { direct } = (yield* RequestContext.CurrentSharing) ?? {}
      const served = Object.values(groups).flatMap(({ operations, scope }) =>
        operations.map((operation) => {
          const served = ServedOperation.make(operation, scope)
          const route = routeOf(served)
          direct?.set(route, directOf(served))
          return route
        })
      )
      const system = yield* SystemRoutes.make(contract, operations, { docs, hooks, operator, sessions })
      const isAlerting = operations.some(({ key }) => key === PriceAlertOperations.register.key)
      const routes = [...served, yield* AccountEvents.make, ...system, ...(isAlerting ? yield* AlertPage.routes : [])]
      const places = [
        ...routes,
        ...(sessions ? [...SessionEndpoints.PLACES, ...PasskeyEndpoints.PLACES] : []),
        ...(operator ? OperatorRoutes.PLACES : [])
      ]
      const middleware = yield* RequestMiddleware.make(places, services)
      direct?.replaces(middleware)
      yield* router.addGlobalMiddleware(middleware)
      if (cors !== undefined) yield* router.addGlobalMiddleware(crossOrigin(cors))
      yield* router.addAll(routes)
    })
  )

/** Every documented header of answers, and `Link`, except those that concern the browser alone. */
const EXPOSED = [...Struct.keys(RESPONSE_HEADERS), "Link"]
  .filter((name) => !["Allow", "Cache-Control", "WWW-Authenticate"].includes(name))
  .sort()

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
    exposedHeaders: EXPOSED,
    ...(maxAge === undefined ? {} : { maxAge })
  })
