/**
 * `POST /hooks/payments/{gateway}`: where the gateway tells that something happened to a payment. Its signature stands for a key. A notice is
 * only a hint: the gateway is asked how the payments stand that it is about. While that fails, the gateway is told to send it again.
 */
import { AuthThrottle, Checkout, UpstreamNotConfigured, UpstreamUnavailable } from "@millrace/core"
import { Effect, Layer, Option } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { CurrentExchange } from "../Exchange.ts"
import { type Failure, type Problem, problemOf, responseOf } from "../Problem.ts"
import * as Body from "../RequestBody.ts"

export const PATH = "/hooks/payments"

/** The largest notice, in bytes. */
const LIMIT = 1024 * 1024

const FORGED: Problem = { code: "unauthorized", message: "The signature of this notice is missing or wrong." }

/** The route of the host's gateway, beside those of `Http.layer`. None where the host takes no payments. */
export const layer: Layer.Layer<never, never, HttpRouter.HttpRouter | Checkout | AuthThrottle> = Layer.effectDiscard(
  Effect.gen(function* () {
    const router = yield* HttpRouter.HttpRouter
    const checkout = yield* Checkout
    const throttle = yield* AuthThrottle
    if (checkout.gateway === null) return
    const path = `${PATH}/${checkout.gateway}` as const
    const handler = Effect.gen(function* () {
      const exchange = yield* CurrentExchange
      exchange.route = path
      const request = yield* HttpServerRequest.HttpServerRequest
      return yield* Effect.catch(receive({ checkout, throttle }, request), (refused) =>
        Effect.succeed(responseOf("code" in refused ? refused : problemOf(refused), exchange.id))
      )
    })
    yield* router.addAll([HttpRouter.route("POST", path, handler)])
  })
)

interface Needs {
  readonly checkout: Checkout["Service"]
  readonly throttle: AuthThrottle["Service"]
}

const receive = Effect.fnUntraced(function* (
  { checkout, throttle }: Needs,
  request: HttpServerRequest.HttpServerRequest
): Effect.fn.Return<HttpServerResponse.HttpServerResponse, Failure | Problem> {
  yield* Body.checkLength(request, LIMIT)
  const body = yield* Body.readBytes(request, LIMIT)
  const heard = yield* Effect.result(checkout.notice({ headers: request.headers, body }))
  if (heard._tag === "Success") return HttpServerResponse.empty({ status: 204 })
  const { failure } = heard
  if (failure._tag === "NoGateway") return yield* new UpstreamNotConfigured({ upstream: "payments" })
  if (failure._tag === "NoticeForged") {
    const address = Option.getOrUndefined(request.remoteAddress)
    // True signatures are never refused for failures of others at the same address
    if (address !== undefined) yield* Effect.andThen(throttle.check(address), throttle.failed(address))
    return yield* Effect.fail(FORGED)
  }
  yield* Effect.logWarning("A notice of a payment could not be followed", failure)
  return yield* new UpstreamUnavailable({ upstream: "payments", reason: failure._tag, isolated: true })
})
