/** The hooks in the OpenAPI document, where they are served. The signature of a provider stands for a key. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { hookErrorSchemas } from "../ErrorCode.ts"
import { PATH as PAYMENTS } from "./PaymentHooks.ts"
import type { Name as Provider } from "./Providers.ts"

export const PATH = "/hooks/sms"

/** Gateways of payments that tell what happened by a hook. */
export type Gateway = "stripe" | "paypal"

/** What can be served: the hooks of providers of numbers, and of gateways of payments. */
export type Name = Provider | Gateway

// biome-ignore lint/suspicious/noExplicitAny: parts of a document
type Json = any

interface Described {
  readonly title: string
  /** How the provider signs, as a security scheme of OpenAPI. */
  readonly scheme: Json
  /** The fields of a message that are read. Others are ignored. */
  readonly fields: ReadonlyArray<string>
  readonly isForm: boolean
}

const header = (name: string, description: string): Json => ({ type: "apiKey", in: "header", name, description })

const DESCRIBED: Readonly<Record<Provider, Described>> = {
  twilio: {
    title: "Twilio",
    scheme: header("X-Twilio-Signature", "HMAC-SHA-1 over address and form, with the auth token."),
    fields: ["MessageSid", "From", "To", "Body"],
    isForm: true
  },
  plivo: {
    title: "Plivo",
    scheme: header("X-Plivo-Signature-V3", "HMAC-SHA-256 over address, form and X-Plivo-Signature-V3-Nonce, with the auth token."),
    fields: ["MessageUUID", "From", "To", "Text"],
    isForm: true
  },
  vonage: {
    title: "Vonage",
    scheme: {
      type: "http",
      scheme: "bearer",
      bearerFormat: "JWT",
      description: "A token with the hash of the body, signed with the signature secret."
    },
    fields: ["message_uuid", "from", "to", "text"],
    isForm: false
  },
  messagebird: {
    title: "MessageBird",
    scheme: header("MessageBird-Signature-JWT", "A token with the hashes of address and body, signed with the signing key."),
    fields: ["id", "originator", "recipient", "body"],
    isForm: false
  }
}

const GATEWAYS: Readonly<Record<Gateway, Pick<Described, "title" | "scheme" | "fields">>> = {
  stripe: {
    title: "Stripe",
    scheme: header("Stripe-Signature", "HMAC-SHA-256 over time and body, with the signing secret of the webhook."),
    fields: ["id", "type", "data"]
  },
  paypal: {
    title: "PayPal",
    scheme: header("PAYPAL-TRANSMISSION-SIG", "A signature by PayPal, which PayPal is asked to verify."),
    fields: ["id", "event_type", "resource"]
  }
}

const isGateway = (name: Name): name is Gateway => name in GATEWAYS

const describedOf = (name: Name): Pick<Described, "scheme"> => (isGateway(name) ? GATEWAYS[name] : DESCRIBED[name])

const schemeOf = (name: Name): string => `${name}Signature`

/** The schemes of these providers, by name. */
export const securitySchemes = (names: ReadonlyArray<Name>): Readonly<Record<string, Json>> =>
  Object.fromEntries(names.map((name) => [schemeOf(name), describedOf(name).scheme]))

const gatewayEndpointOf = (name: Gateway) => {
  const { fields, title } = GATEWAYS[name]
  return HttpApiEndpoint.post(name, `${PAYMENTS}/${name}`, {
    payload: Schema.Struct(Object.fromEntries(fields.map((field) => [field, Schema.Unknown]))),
    success: HttpApiSchema.NoContent,
    error: hookErrorSchemas
  }).annotateMerge(
    OpenApi.annotations({
      identifier: `hooks.${name}`,
      summary: `What ${title} tells of a payment`,
      description: `${title} posts here that something happened to a payment. Its signature stands for an API key. The notice is only a hint: ${title} is asked how the payment stands, so a notice may come twice, late, or never. While ${title} or a store does not answer, the answer is 503, and the notice is to be sent again.`,
      override: { security: [{ [schemeOf(name)]: [] }] }
    })
  )
}

const endpointOf = (name: Provider) => {
  const { fields, isForm, title } = DESCRIBED[name]
  const payload = Schema.Struct(Object.fromEntries(fields.map((field) => [field, Schema.String])))
  const answer = Schema.String.pipe(HttpApiSchema.asText({ contentType: name === "twilio" ? "text/xml" : "text/plain" }))
  return HttpApiEndpoint.post(name, `${PATH}/${name}`, {
    payload: isForm ? payload.pipe(HttpApiSchema.asFormUrlEncoded()) : payload,
    success: answer,
    error: hookErrorSchemas
  }).annotateMerge(
    OpenApi.annotations({
      identifier: `hooks.${name}`,
      summary: `A text message that ${title} brings`,
      description: `${title} posts here what arrives at a public number. Its signature stands for an API key, and nothing is billed. A message that comes again is answered as before, and is not kept twice.`,
      override: { security: [{ [schemeOf(name)]: [] }] }
    })
  )
}

/** The hooks of these providers and gateways. */
export const group = (names: ReadonlyArray<Name>) =>
  HttpApiGroup.make("hooks")
    .add(...(names.map((name) => (isGateway(name) ? gatewayEndpointOf(name) : endpointOf(name))) as [ReturnType<typeof endpointOf>]))
    .annotateMerge(
      OpenApi.annotations({
        description: "Where providers of phone numbers bring text messages, and gateways tell of payments. They are not for callers."
      })
    )
