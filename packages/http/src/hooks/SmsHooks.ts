/**
 * `POST /hooks/sms/{provider}`: where providers of phone numbers bring the messages that arrive at the host's public numbers. The signature
 * of the provider stands for a key. A message that comes again is answered as it was, and is not kept twice.
 */
import { AuthThrottle, e164, SmsReceiver, UpstreamNotConfigured } from "@millrace/core"
import { Clock, Effect, Layer, Option, Redacted } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { CurrentExchange } from "../Exchange.ts"
import { type Failure, type Problem, problemOf, responseOf } from "../Problem.ts"
import * as Body from "../RequestBody.ts"
import { PATH } from "./HookEndpoints.ts"
import { type Fields, type Name, type Provider, providers } from "./Providers.ts"
import type { SignedRequest } from "./Signature.ts"

export { PATH } from "./HookEndpoints.ts"
export type { Name } from "./Providers.ts"

export interface Settings {
  /** By provider: its auth token, signature secret or signing key. A provider without one is answered that it is not set up. */
  readonly secrets: Partial<Readonly<Record<Name, Redacted.Redacted>>>
  /**
   * The address under which providers reach this server, such as `https://api.example.com`. By default what the request says is tried, with
   * both schemes: behind a proxy that changes `Host`, set it.
   */
  readonly publicUrl?: URL
}

/** The largest call, in bytes: the longest message has some 40,000 characters. */
const LIMIT = 256 * 1024

/** The routes, beside those of `Http.layer`. */
export const layer = (settings: Settings): Layer.Layer<never, never, HttpRouter.HttpRouter | SmsReceiver | AuthThrottle> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const router = yield* HttpRouter.HttpRouter
      const receiver = yield* SmsReceiver
      const throttle = yield* AuthThrottle
      yield* router.addAll(
        (Object.keys(providers) as ReadonlyArray<Name>).map((name) => {
          const path = `${PATH}/${name}` as const
          const handler = Effect.gen(function* () {
            const exchange = yield* CurrentExchange
            exchange.route = path
            const request = yield* HttpServerRequest.HttpServerRequest
            return yield* Effect.catch(receive({ receiver, throttle, settings }, name, request), (refused) =>
              Effect.succeed(responseOf("code" in refused ? refused : problemOf(refused), exchange.id))
            )
          })
          return HttpRouter.route("POST", path, handler)
        })
      )
    })
  )

interface Needs {
  readonly receiver: SmsReceiver["Service"]
  readonly throttle: AuthThrottle["Service"]
  readonly settings: Settings
}

const FORGED: Problem = { code: "unauthorized", message: "The signature of this call is missing or wrong." }
const NOT_OURS: Problem = { code: "not_found", message: "The message was sent to a number that is not one of this host's." }

const receive = Effect.fnUntraced(function* (
  { receiver, settings, throttle }: Needs,
  name: Name,
  request: HttpServerRequest.HttpServerRequest
): Effect.fn.Return<HttpServerResponse.HttpServerResponse, Failure | Problem> {
  const provider: Provider = providers[name]
  const secret = settings.secrets[name]
  yield* receiver.configured
  if (secret === undefined) return yield* new UpstreamNotConfigured({ upstream: `messages of ${name}` })
  yield* Body.checkLength(request, LIMIT)
  const signed = yield* signedOf(request, settings.publicUrl)
  if (!provider.isAuthentic(Redacted.value(secret), signed)) {
    const address = Option.getOrUndefined(request.remoteAddress)
    // True signatures are never refused for failures of others at the same address
    if (address !== undefined) yield* Effect.andThen(throttle.check(address), throttle.failed(address))
    return yield* Effect.fail(FORGED)
  }
  const message = provider.messageOf(fieldsOf(signed))
  if (message !== undefined)
    yield* receiver
      .receive({ source: name, ...message, from: e164OfDigits(message.from) })
      .pipe(Effect.catchTag("NotAPublicNumber", () => Effect.fail(NOT_OURS)))
  const [contentType, body] = provider.answer
  return HttpServerResponse.text(body, { contentType })
})

/** A sender of digits alone is a phone number without its plus sign; of fewer than seven, a short code. */
const e164OfDigits = (sender: string): string => (/^[1-9]\d{6,14}$/u.test(sender) ? (e164(sender) ?? sender) : sender)

const signedOf = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, publicUrl: URL | undefined) {
  const { headers, source, url } = request
  // A web request has its host in its address
  const host = headers["host"] ?? ("url" in source && URL.canParse(String(source.url)) ? new URL(String(source.url)).host : "")
  const bases = publicUrl === undefined ? [`https://${host}`, `http://${host}`] : [publicUrl.href.replace(/\/$/u, "")]
  const body = yield* Body.readBytes(request, LIMIT)
  const isForm = (headers["content-type"] ?? "").toLowerCase().startsWith("application/x-www-form-urlencoded")
  const signed: SignedRequest = {
    urls: bases.map((base) => base + url),
    headers,
    body,
    form: isForm ? [...new URLSearchParams(Buffer.from(body).toString())] : [],
    now: Math.floor((yield* Clock.currentTimeMillis) / 1_000)
  }
  return signed
})

const fieldsOf = ({ body, form }: SignedRequest): Fields => {
  if (form.length > 0) return Object.fromEntries(form)
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString())
    const entries = typeof value === "object" && value !== null ? Object.entries(value) : []
    return Object.fromEntries(
      entries.flatMap(([name, field]) => (typeof field === "string" || typeof field === "number" ? [[name, String(field)]] : []))
    )
  } catch {
    return {}
  }
}
