/** The routes that are no operations: health, readiness, the OpenAPI document and the documentation page. */
import { Money, PricePlan } from "@millrace/core"
import { Clock, Context, Effect, Layer, Option } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type HttpApi, type HttpApiGroup, HttpApiSwagger, OpenApi } from "effect/http-api"
import * as Access from "./Access.ts"
import type { Servable } from "./Endpoint.ts"
import { CurrentExchange, type Exchange } from "./Exchange.ts"
import * as HookEndpoints from "./hooks/HookEndpoints.ts"
import * as Document from "./openapi/Document.ts"
import { PLACE as OPERATOR } from "./operator/OperatorRoutes.ts"
import { problemOf, responseOf } from "./Problem.ts"
import { Readiness } from "./Readiness.ts"
import { HEALTH, OPENAPI, READY } from "./SystemEndpoints.ts"
import * as PasskeyEndpoints from "./sessions/PasskeyEndpoints.ts"
import * as SessionEndpoints from "./sessions/SessionEndpoints.ts"

type Asked = HttpServerRequest.HttpServerRequest

interface Documented {
  /** The path of the documentation page; false for none. */
  readonly docs: `/${string}` | false
  /** The hooks that are served beside the API. */
  readonly hooks: ReadonlyArray<HookEndpoints.Name>
  /** Whether sign-ups and sessions are served beside the API. */
  readonly sessions: boolean
  /** Whether what operators read is served beside the API. */
  readonly operator: boolean
}

export const make = Effect.fnUntraced(function* <Groups extends HttpApiGroup.Constraint>(
  contract: HttpApi.HttpApi<string, Groups>,
  operations: ReadonlyArray<Pick<Servable, "key" | "unit">>,
  { docs, ...beside }: Documented
) {
  const { report } = yield* Readiness
  const publications = yield* publisher(contract, operations, beside)
  const access = yield* Access.make

  const told = (path: `/${string}`, answer: (exchange: Exchange) => Effect.Effect<HttpServerResponse.HttpServerResponse, never, Asked>) =>
    HttpRouter.route(
      "GET",
      path,
      Effect.gen(function* () {
        const exchange = yield* CurrentExchange
        exchange.route = path
        return yield* answer(exchange)
      })
    )

  /** A large answer, limited by client address like calls without a key. */
  const published = (path: `/${string}`, response: Effect.Effect<HttpServerResponse.HttpServerResponse>) =>
    told(path, (exchange) =>
      HttpServerRequest.HttpServerRequest.pipe(
        Effect.flatMap(access.admitClient),
        Effect.matchEffect({
          onFailure: (limited) => Effect.succeed(responseOf(problemOf(limited), exchange.id)),
          onSuccess: (rate) => {
            exchange.rate = rate
            return response
          }
        })
      )
    )

  const health = HttpServerResponse.jsonUnsafe({ status: "alive" }, { headers: NEVER_KEPT })
  return [
    told(HEALTH, () => Effect.succeed(health)),
    told(READY, () =>
      Effect.map(report, (ready) =>
        HttpServerResponse.jsonUnsafe(ready, { status: ready.status === "ready" ? 200 : 503, headers: NEVER_KEPT })
      )
    ),
    published(
      OPENAPI,
      Effect.flatMap(publications, ({ document }) => document)
    ),
    ...(docs === false
      ? []
      : [
          published(
            docs,
            Effect.flatMap(publications, ({ page }) => page)
          )
        ])
  ]
})

/** A store that takes longer does not hold up the documentation. */
const PATIENCE = "1 second"

/** The document with what is served beside the API. */
const documented = <Groups extends HttpApiGroup.Constraint>(
  contract: HttpApi.HttpApi<string, Groups>,
  { hooks, operator, sessions }: Omit<Documented, "docs">
) => {
  // The groups that are added change the type, not what is generated from it
  const groups = [
    ...(hooks.length === 0 ? [] : [HookEndpoints.group(hooks)]),
    ...(sessions ? [SessionEndpoints.group, PasskeyEndpoints.group] : [])
  ]
  const whole = groups.reduce((whole, group) => whole.add(group), contract as unknown as HttpApi.HttpApi<string, HttpApiGroup.Constraint>)
  const secured = Document.secured(OpenApi.fromApi(whole), HookEndpoints.securitySchemes(hooks))
  const open = sessions ? Document.withSessions(secured, SessionEndpoints.SECURITY_SCHEMES, SessionEndpoints.securityOf) : secured
  return operator ? Document.withOperator(open, OPERATOR) : open
}

/** The document and the page with the prices in force. Each is made when it is first asked for, once for each version of the price plan. */
const publisher = Effect.fnUntraced(function* <Groups extends HttpApiGroup.Constraint>(
  contract: HttpApi.HttpApi<string, Groups>,
  operations: ReadonlyArray<Pick<Servable, "key" | "unit">>,
  beside: Omit<Documented, "docs">
) {
  const generated = () => documented(contract, beside)
  const book = Option.getOrUndefined(yield* Effect.serviceOption(PricePlan.PriceBook))
  const money = yield* Money.Current
  const make = Effect.fnUntraced(function* (list: PricePlan.PriceList | undefined) {
    const prices = operations.flatMap(({ key, unit }) => {
      const price = list?.prices[key]
      return price === undefined ? [] : [[key, { price, unit }] as const]
    })
    const spec = yield* Effect.cached(Effect.sync(() => Document.priced(generated(), new Map(prices), money)))
    const document = Effect.map(spec, (spec) =>
      HttpServerResponse.text(JSON.stringify(spec), { contentType: "application/json", headers: REVALIDATED })
    )
    const page = Effect.flatMap(spec, (spec) => viewer(contract.annotateMerge(OpenApi.annotations({ transform: () => spec }))))
    // A caller that leaves does not interrupt what others wait for
    return { version: list?.version, document: yield* Effect.cached(document), page: yield* Effect.cached(Effect.uninterruptible(page)) }
  })
  let made = yield* make(undefined)
  if (book === undefined) return Effect.sync(() => made)
  // Where the plan cannot be read now, the last prices stand
  return Effect.gen(function* () {
    const plan = yield* book.plan.pipe(
      Effect.timeout(PATIENCE),
      Effect.orElseSucceed(() => undefined)
    )
    const list = plan && PricePlan.inForce(plan, yield* Clock.currentTimeMillis)
    if (list !== undefined && list.version !== made.version) made = yield* make(list)
    return made
  })
})

const NEVER_KEPT = { "cache-control": "no-store" }
const REVALIDATED = { "cache-control": "no-cache" }

/** The page contains all it needs: it may load nothing, and call only this server. */
const POLICY = [
  "default-src 'none'",
  "script-src 'unsafe-inline'",
  "style-src 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join("; ")

/** The Swagger UI that comes with Effect. */
const viewer = Effect.fnUntraced(function* <Groups extends HttpApiGroup.Constraint>(contract: HttpApi.HttpApi<string, Groups>) {
  const path = "/"
  const page = yield* Effect.scoped(
    Effect.gen(function* () {
      // On a router of its own: the page is rendered once, and then served like a file
      const router = yield* Layer.build(Layer.provideMerge(HttpApiSwagger.layer(contract, { path }), Layer.fresh(HttpRouter.layer)))
      const request = HttpServerRequest.fromWeb(new Request(`http://localhost${path}`))
      return yield* Context.get(router, HttpRouter.HttpRouter)
        .asHttpEffect()
        .pipe(Effect.provideService(HttpServerRequest.HttpServerRequest, request), Effect.orDie)
    })
  )
  return HttpServerResponse.setHeaders(page, { ...REVALIDATED, "content-security-policy": POLICY, "referrer-policy": "no-referrer" })
})
