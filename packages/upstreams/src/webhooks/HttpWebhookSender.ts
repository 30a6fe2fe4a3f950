/**
 * `WebhookSender` over HTTP, signed as https://www.standardwebhooks.com says. By default it posts only by https and only to public addresses:
 * whoever sets a webhook's address must not reach the network behind this host.
 */
import { InvalidWebhookUrl, type WebhookAnswer, type WebhookMessage, WebhookNotSent, WebhookSender } from "@millrace/core"
import { type Duration, Effect, Layer, Redacted } from "effect"
import ipaddr from "ipaddr.js"
import { Webhook } from "standardwebhooks"
import * as PinnedHost from "../shared/PinnedHost.ts"
import { isPublic } from "../shared/PublicAddress.ts"
import * as RetryAfter from "../shared/RetryAfter.ts"

export interface Options extends Pick<PinnedHost.Options, "resolve"> {
  /**
   * Also posts by http, and to this machine and private networks: false by default. Addresses that only the link knows, among them the
   * metadata services of clouds, stay refused.
   */
  readonly allowPrivate?: boolean
  /** From the connection to the headers of the answer: 15 seconds by default. */
  readonly timeLimit?: Duration.Input
}

const PRIVATE: ReadonlySet<string> = new Set(["private", "loopback", "uniqueLocal", "carrierGradeNat"])

const isPrivate = (address: string): boolean => ipaddr.isValid(address) && PRIVATE.has(ipaddr.parse(address).range())

export const layer = ({ allowPrivate = false, resolve, timeLimit = "15 seconds" }: Options = {}): Layer.Layer<WebhookSender> => {
  const host: PinnedHost.Options = {
    isAllowed: (address) => isPublic(address) || (allowPrivate && isPrivate(address)),
    ...(resolve === undefined ? {} : { resolve })
  }
  return Layer.succeed(WebhookSender, {
    check: Effect.fnUntraced(function* (text) {
      const url = yield* parse(text, allowPrivate)
      // A name may lead elsewhere by the time of a delivery, which resolves it
      if (!PinnedHost.isLiteral(url.hostname)) return
      yield* Effect.mapError(PinnedHost.addressesOf(url, host), () => new InvalidWebhookUrl({ reason: "is no public address" }))
    }),
    send: Effect.fn("HttpWebhookSender.send")(function* (message) {
      const url = yield* Effect.mapError(parse(message.url, allowPrivate), ({ reason }) => notSent(`its address ${reason}`))
      const addresses = yield* Effect.mapError(PinnedHost.addressesOf(url, host), (trouble) =>
        notSent(trouble === "refused" ? "its address leads to no public address" : "its name cannot be resolved now")
      )
      return yield* Effect.tryPromise({
        try: (signal) => post(url, addresses, message, signal),
        catch: (cause) => notSent(`the connection failed: ${codeOf(cause)}`)
      }).pipe(Effect.timeoutOrElse({ duration: timeLimit, orElse: () => Effect.fail(notSent("it exceeds the time limit")) }))
    })
  })
}

const notSent = (reason: string): WebhookNotSent => new WebhookNotSent({ reason })

const parse = (text: string, allowPrivate: boolean): Effect.Effect<URL, InvalidWebhookUrl> => {
  const invalid = (reason: string) => Effect.fail(new InvalidWebhookUrl({ reason }))
  const url = URL.parse(text)
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) return invalid("is no https address")
  if (url.protocol === "http:" && !allowPrivate) return invalid("is not https, and http is not allowed by the settings")
  return url.username === "" && url.password === "" ? Effect.succeed(url) : invalid("bears credentials")
}

/** A short code such as `ECONNREFUSED`: a message of the network may quote the address. */
const codeOf = (cause: unknown): string => {
  if (cause instanceof AggregateError) return cause.errors.map(codeOf).join(", ")
  if (!(cause instanceof Error)) return "unknown"
  return "code" in cause && typeof cause.code === "string" ? cause.code : cause.name
}

/** Posts over a connection of its own, which is closed with the headers of the answer: its body is not read. */
const post = async (
  url: URL,
  addresses: ReadonlyArray<PinnedHost.Address>,
  message: WebhookMessage,
  signal: AbortSignal
): Promise<WebhookAnswer> => {
  const { agentTo, request } = await import("../shared/PinnedAgent.ts")
  const agent = agentTo(addresses)
  try {
    const { body, headers, statusCode } = await request(url, {
      method: "POST",
      dispatcher: agent,
      signal,
      headers: { ...signed(message), "content-type": "application/json", "user-agent": "millrace" },
      body: message.body
    })
    // An unread body emits an error when the agent is destroyed: ignore it
    body.on("error", () => undefined)
    return { status: statusCode, retryAfter: RetryAfter.millisOf(headers["retry-after"], message.at) }
  } finally {
    await agent.destroy()
  }
}

/** One signature for each secret. */
const signed = ({ at, body, id, secrets }: WebhookMessage): Readonly<Record<string, string>> => ({
  "webhook-id": id,
  "webhook-timestamp": String(Math.floor(at / 1000)),
  "webhook-signature": secrets.map((secret) => new Webhook(Redacted.value(secret)).sign(id, new Date(at), body)).join(" ")
})
