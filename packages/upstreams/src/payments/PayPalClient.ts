/** Requests to PayPal's REST API, with an access token that is renewed in time. */
import { PaymentGateway } from "@millrace/core"
import { Clock, Duration, Effect, Redacted, Result, Schema, Semaphore } from "effect"
import { type HttpClient, HttpClientRequest } from "effect/http"
import * as ByteService from "../shared/ByteService.ts"
import { below, type ExchangeLimits } from "../shared/JsonService.ts"
import * as Retries from "../shared/Retries.ts"
import { Problem, Token } from "./PayPalModel.ts"

const { GatewayRefused, GatewayUnavailable } = PaymentGateway

export const GATEWAY = "paypal"

export interface Options extends ExchangeLimits, Retries.Options {
  /** The id and the secret of a REST app. */
  readonly clientId: string
  readonly clientSecret: Redacted.Redacted
  /** `https://api-m.paypal.com` by default; `https://api-m.sandbox.paypal.com` for tests. */
  readonly baseUrl?: URL
}

type Unavailable = PaymentGateway.GatewayUnavailable

export const unavailable = (reason: string): Unavailable => new GatewayUnavailable({ gateway: GATEWAY, reason })

export const refused = (reason: string): PaymentGateway.GatewayRefused => new GatewayRefused({ gateway: GATEWAY, reason })

/** PayPal refused a request. `issue`: its code, such as `INSTRUMENT_DECLINED`. Nothing else of the reply is kept, as it may quote the request. */
export interface Refusal {
  readonly _tag: "Refusal"
  readonly status: number
  readonly issue: string
}

/** Sends a request and decodes the answer. The request must be safe to repeat. */
export type Ask = <A>(request: HttpClientRequest.HttpClientRequest, shape: Schema.Decoder<A>) => Effect.Effect<A, Unavailable | Refusal>

export interface PayPalClient {
  readonly ask: Ask
  /** The URL of a path below the API's. */
  readonly at: (path: string) => URL
}

/** A token is renewed so long before it expires. */
const MARGIN = Duration.toMillis("1 minute")

/** Statuses that say nothing of the request itself: the app is refused, another request is under way, too many requests. */
const PASSING: ReadonlySet<number> = new Set([401, 403, 409, 429])

export const make = Effect.fnUntraced(function* ({
  timeLimit = "30 seconds",
  byteLimit = 4 * 1024 * 1024,
  baseUrl = new URL("https://api-m.paypal.com"),
  clientId,
  clientSecret,
  ...retries
}: Options): Effect.fn.Return<PayPalClient, never, HttpClient.HttpClient> {
  const sent = Retries.make(yield* ByteService.make({ upstream: GATEWAY, timeLimit, byteLimit }), retries)
  const reply = (request: HttpClientRequest.HttpClientRequest) => Effect.mapError(sent(request), ({ reason }) => unavailable(reason))
  const at = (path: string) => below(baseUrl, path)
  const tokens = tokensOf(
    HttpClientRequest.post(at("v1/oauth2/token")).pipe(
      HttpClientRequest.acceptJson,
      HttpClientRequest.basicAuth(clientId, clientSecret),
      HttpClientRequest.bodyUrlParams({ grant_type: "client_credentials" })
    ),
    reply
  )

  const authorized = Effect.fnUntraced(function* (request: HttpClientRequest.HttpClientRequest) {
    const token = yield* tokens.current
    const first = yield* reply(HttpClientRequest.bearerToken(request, token))
    if (first.status !== 401) return first
    // The token was revoked before its time
    yield* tokens.drop(token)
    return yield* reply(HttpClientRequest.bearerToken(request, yield* tokens.current))
  })

  const ask: Ask = (request, shape) => Effect.flatMap(authorized(HttpClientRequest.acceptJson(request)), (reply) => decoded(reply, shape))
  return { ask, at }
})

const decoded = <A>(reply: ByteService.Reply, shape: Schema.Decoder<A>): Effect.Effect<A, Unavailable | Refusal> => {
  const { status } = reply
  if (status === 200 || status === 201) return Effect.mapError(jsonOf(reply, shape), () => unavailable("its reply is malformed"))
  if (status < 400 || status >= 500 || PASSING.has(status)) return Effect.fail(unavailable(`it answered with status ${status}`))
  return Effect.flatMap(Effect.result(jsonOf(reply, Problem)), (problem) => Effect.fail(refusalOf(status, problem)))
}

const jsonOf = <A>({ bytes }: ByteService.Reply, shape: Schema.Decoder<A>) =>
  Schema.decodeUnknownEffect(Schema.fromJsonString(shape))(new TextDecoder().decode(bytes))

const CODE = /^[A-Z0-9_]{1,100}$/u

const refusalOf = (status: number, problem: Result.Result<typeof Problem.Type, unknown>): Refusal => {
  const codes = Result.isSuccess(problem) ? [problem.success.details?.at(0)?.issue, problem.success.name] : []
  const issue = codes.find((code) => code !== undefined && CODE.test(code))
  return { _tag: "Refusal", status, issue: issue ?? `it answered with status ${status}` }
}

/** The access token: fetched when there is none, by one request at a time. */
const tokensOf = (
  request: HttpClientRequest.HttpClientRequest,
  send: (request: HttpClientRequest.HttpClientRequest) => Effect.Effect<ByteService.Reply, Unavailable>
) => {
  const turn = Semaphore.makeUnsafe(1)
  let known: { readonly token: Redacted.Redacted; readonly until: number } | undefined

  const fetched = Effect.gen(function* () {
    const reply = yield* send(request)
    if (reply.status === 401) return yield* unavailable("it refuses the client id and the secret")
    if (reply.status !== 200) return yield* unavailable(`it answered with status ${reply.status}`)
    const { access_token, expires_in } = yield* Effect.mapError(jsonOf(reply, Token), () => unavailable("its reply is malformed"))
    const token = Redacted.make(access_token)
    known = { token, until: (yield* Clock.currentTimeMillis) + expires_in * 1_000 - MARGIN }
    return token
  })

  return {
    current: turn.withPermit(
      Effect.flatMap(Clock.currentTimeMillis, (now) => (known !== undefined && now < known.until ? Effect.succeed(known.token) : fetched))
    ),
    /** Forgets a token, unless another one has replaced it. */
    drop: (token: Redacted.Redacted) =>
      Effect.sync(() => {
        if (known?.token === token) known = undefined
      })
  }
}

/** What a refusal means for a caller who expected none. */
export const asRefused = <A, E>(
  effect: Effect.Effect<A, E | Refusal>
): Effect.Effect<A, Exclude<E, Refusal> | PaymentGateway.GatewayRefused> =>
  Effect.mapError(effect, (error) => (isRefusal(error) ? refused(error.issue) : (error as Exclude<E, Refusal>)))

const isRefusal = (error: unknown): error is Refusal =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "Refusal"
