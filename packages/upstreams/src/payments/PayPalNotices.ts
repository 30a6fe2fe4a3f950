/** Webhooks of PayPal: who sent them, and which orders they are about. */
import { PaymentGateway } from "@millrace/core"
import { Effect, Schema } from "effect"
import { HttpClientRequest } from "effect/http"
import type { PayPalClient, Refusal } from "./PayPalClient.ts"
import { unavailable } from "./PayPalClient.ts"
import { CaptureOfOrder, Event, linkOf, Verification } from "./PayPalModel.ts"

const { NoticeForged } = PaymentGateway
type Notice = PaymentGateway.Notice

/** The headers of a webhook, by the fields of the request that verifies it. */
const HEADERS = {
  auth_algo: "paypal-auth-algo",
  cert_url: "paypal-cert-url",
  transmission_id: "paypal-transmission-id",
  transmission_sig: "paypal-transmission-sig",
  transmission_time: "paypal-transmission-time"
} as const

/** Values of these headers are short. */
const MAX_HEADER = 2_000

/** Bytes of a body that PayPal is asked about. Webhooks of orders take some kilobytes. */
const MAX_BODY = 256 * 1024

const decodeEvent = Schema.decodeUnknownEffect(Schema.fromJsonString(Event))

/**
 * Asks PayPal whether it sent a webhook, instead of fetching the certificate whose address the webhook itself names. What cannot be a webhook
 * is refused without asking.
 */
const verified = Effect.fnUntraced(function* ({ ask, at }: PayPalClient, webhookId: string, { body, headers }: Notice) {
  const fields = Object.entries(HEADERS).map(([field, header]) => [field, headers[header]] as const)
  if (fields.some(([, value]) => value === undefined || value.length > MAX_HEADER))
    return yield* new NoticeForged({ reason: "it lacks a header of PayPal's webhooks" })
  const text = new TextDecoder().decode(body)
  if (body.length > MAX_BODY || !isObject(text)) return yield* new NoticeForged({ reason: "its body is no event" })
  // The signature is of the bytes, so the event is sent as it came
  const proof = JSON.stringify({ ...Object.fromEntries(fields), webhook_id: webhookId })
  const request = HttpClientRequest.bodyText(
    HttpClientRequest.post(at("v1/notifications/verify-webhook-signature")),
    `${proof.slice(0, -1)},"webhook_event":${text}}`,
    "application/json"
  )
  const { verification_status } = yield* Effect.catchTag(ask(request, Verification), "Refusal", ({ issue, status }) =>
    // What PayPal does not take for a webhook is none
    status === 400 || status === 422 ? Effect.succeed({ verification_status: "FAILURE" as const }) : Effect.fail(unavailable(issue))
  )
  if (verification_status !== "SUCCESS") return yield* new NoticeForged({ reason: "PayPal did not sign it for this webhook" })
  return yield* decodeEvent(text).pipe(Effect.orElseSucceed(() => undefined))
})

const isObject = (text: string): boolean => {
  try {
    const json: unknown = JSON.parse(text)
    return typeof json === "object" && json !== null && !Array.isArray(json)
  } catch {
    return false
  }
}

export const ID = /^[A-Z0-9]{6,40}$/u

/** The last part of a link's path. */
const idIn = (href: string | undefined): string | undefined => href?.split("?", 1)[0]?.split("/").at(-1)

/** Refunds name their capture in a link, and disputes in a list. */
const capturesIn = ({ event_type, resource }: Event): ReadonlyArray<string> => {
  const ids = event_type.startsWith("CUSTOMER.DISPUTE.")
    ? (resource.disputed_transactions ?? []).map(({ seller_transaction_id }) => seller_transaction_id)
    : [idIn(linkOf(resource.links, "up"))]
  return ids.filter((id) => id !== undefined && ID.test(id)) as ReadonlyArray<string>
}

const orderIn = (resource: typeof CaptureOfOrder.Type): string | undefined => resource.supplementary_data?.related_ids?.order_id

/** The order of a capture; none of a capture that PayPal does not know. */
const orderOf = ({ ask, at }: PayPalClient, capture: string) =>
  ask(HttpClientRequest.get(at(`v2/payments/captures/${capture}`)), CaptureOfOrder).pipe(
    Effect.map((found) => orderIn(found)),
    Effect.catchTag("Refusal", ({ issue, status }: Refusal) => (status === 404 ? Effect.undefined : Effect.fail(unavailable(issue))))
  )

/** Returns the function that reads notices: the ids of the orders that they are about. */
export const make = (client: PayPalClient, webhookId: string) =>
  Effect.fn("PayPal.notice")(function* (notice: Notice) {
    const event = yield* verified(client, webhookId, notice)
    if (event === undefined) return []
    if (event.event_type.startsWith("CHECKOUT.ORDER.")) return event.resource.id === undefined ? [] : [event.resource.id]
    const named = orderIn(event.resource)
    if (named !== undefined) return [named]
    const orders = yield* Effect.forEach(capturesIn(event), (capture) => orderOf(client, capture))
    return [...new Set(orders.filter((order) => order !== undefined))]
  })
