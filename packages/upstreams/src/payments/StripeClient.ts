/** The official client of Stripe, whose requests go the way of all upstreams: with limits of bytes and time, in a span, and repeated here. */
import { PaymentGateway } from "@millrace/core"
import { Effect, Redacted, Result } from "effect"
import { type HttpClient, HttpClientRequest } from "effect/http"
import Stripe from "stripe"
import * as ByteService from "../shared/ByteService.ts"
import type { ExchangeLimits } from "../shared/JsonService.ts"
import * as Retries from "../shared/Retries.ts"

const { GatewayRefused, GatewayUnavailable } = PaymentGateway

export const GATEWAY = "stripe"

/** The version whose shapes are decoded. The client sends it with each request, whatever the account's own is. */
export const API_VERSION = "2026-10-28.endive"

export interface Options extends ExchangeLimits, Retries.Options {
  /** A secret key, or a restricted one that may write PaymentIntents and refunds, and read disputes: `sk_...` or `rk_...`. */
  readonly apiKey: Redacted.Redacted
  /** `https://api.stripe.com` by default. */
  readonly baseUrl?: URL
}

type Refused = PaymentGateway.GatewayRefused
type Unavailable = PaymentGateway.GatewayUnavailable

/** Makes requests with the official client. */
export type Call = <A>(run: (stripe: Stripe) => Promise<A>) => Effect.Effect<A, Refused | Unavailable>

export const unavailable = (reason: string): Unavailable => new GatewayUnavailable({ gateway: GATEWAY, reason })

export const refused = (reason: string): Refused => new GatewayRefused({ gateway: GATEWAY, reason })

const KEY = /^(?:sk|rk)_[!-~]+$/u

/**
 * Returns the function that makes requests. No error quotes a message of Stripe, which may quote the key. `GatewayRefused` has Stripe's code
 * of the error, such as `amount_too_small`.
 */
export const make = Effect.fnUntraced(function* ({
  timeLimit = "30 seconds",
  byteLimit = 4 * 1024 * 1024,
  baseUrl = new URL("https://api.stripe.com"),
  apiKey,
  ...retries
}: Options): Effect.fn.Return<Call, never, HttpClient.HttpClient> {
  if (!KEY.test(Redacted.value(apiKey))) return () => Effect.fail(unavailable("apiKey must be a key of Stripe"))
  const ask = Retries.make(yield* ByteService.make({ upstream: GATEWAY, timeLimit, byteLimit }), retries)
  return <A>(run: (stripe: Stripe) => Promise<A>) =>
    Effect.flatMap(Effect.context<never>(), (context) =>
      Effect.tryPromise({
        try: (signal) => {
          const send: Send = (request) => Effect.runPromiseWith(context)(Effect.result(ask(request)), { signal })
          return run(clientAt(baseUrl, Redacted.value(apiKey), send))
        },
        catch: failureOf
      })
    )
})

type Send = (request: HttpClientRequest.HttpClientRequest) => Promise<Effect.Success<ReturnType<typeof resultOf>>>

const resultOf = (ask: ByteService.Ask, request: HttpClientRequest.HttpClientRequest) => Effect.result(ask(request))

const clientAt = ({ hostname, port, protocol }: URL, apiKey: string, send: Send): Stripe =>
  new Stripe(apiKey, {
    apiVersion: API_VERSION,
    host: hostname,
    port: port || (protocol === "http:" ? 80 : 443),
    protocol: protocol === "http:" ? "http" : "https",
    httpClient: new ClientOfUpstreams(send),
    // Requests are repeated below the client, by our clock
    maxNetworkRetries: 0,
    telemetry: false
  })

/** What went wrong below the client, which the client wraps in an error of its own. */
class Broken extends Error {}

const broken = (status: number): Broken => new Broken(`it answered with status ${status}`)

/** Sends the requests of Stripe's client. */
class ClientOfUpstreams extends Stripe.HttpClient {
  readonly #send: Send

  constructor(send: Send) {
    super()
    this.#send = send
  }

  override getClientName(): string {
    return "millrace"
  }

  override async makeRequest(
    ...[host, port, path, method, headers, body, protocol]: Parameters<InstanceType<typeof Stripe.HttpClient>["makeRequest"]>
  ): Promise<ReplyOfUpstreams> {
    const url = new URL(path, `${protocol}://${host}:${port}`)
    const request = method === "POST" ? HttpClientRequest.post(url) : HttpClientRequest.get(url)
    // The body has its own type and length
    const { "Content-Type": type, "Content-Length": _, ...others } = headers
    const sent = HttpClientRequest.setHeaders(request, stringsIn(others))
    const reply = await this.#send(method === "POST" ? HttpClientRequest.bodyText(sent, body ?? "", String(type)) : sent)
    if (Result.isFailure(reply)) throw new Broken(reply.failure.reason)
    return new ReplyOfUpstreams(reply.success.status, jsonOf(reply.success))
  }
}

const stringsIn = (headers: object): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (value == null ? [] : [[name, String(value)]])))

/** The object of a reply. Stripe's client would take any object without an error for a success, whatever the status. */
const jsonOf = ({ bytes, status }: ByteService.Reply): object => {
  const isSuccess = status >= 200 && status < 300
  let json: unknown
  try {
    json = JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    throw isSuccess ? new Broken(MALFORMED) : broken(status)
  }
  if (typeof json !== "object" || json === null) throw isSuccess ? new Broken(MALFORMED) : broken(status)
  const isError = "error" in json && typeof json.error === "object" && json.error !== null
  if (isError === isSuccess) throw broken(status)
  return json
}

const MALFORMED = "its reply is malformed"

class ReplyOfUpstreams extends Stripe.HttpClientResponse {
  readonly #json: object

  constructor(status: number, json: object) {
    super(status, {})
    this.#json = json
  }

  override getRawResponse(): object {
    return {}
  }

  override toJSON(): Promise<object> {
    return Promise.resolve(this.#json)
  }
}

/** Statuses of errors that say nothing of the request itself: the key is refused, another request is under way, too many requests. */
const PASSING: ReadonlySet<number> = new Set([401, 403, 409, 429])

const CODE = /^[a-z0-9_]{1,100}$/u

const failureOf = (cause: unknown): Refused | Unavailable => {
  if (!(cause instanceof Stripe.errors.StripeError)) return unavailable(cause instanceof Broken ? cause.message : MALFORMED)
  const { code, detail, statusCode } = cause
  if (detail instanceof Broken) return unavailable(detail.message)
  if (statusCode === undefined) return unavailable("no cause given")
  if (statusCode >= 500 || PASSING.has(statusCode)) return unavailable(`it answered with status ${statusCode}`)
  return refused(code !== undefined && CODE.test(code) ? code : `it answered with status ${statusCode}`)
}
