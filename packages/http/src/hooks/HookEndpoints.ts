/** The hooks in the OpenAPI document, where they are served. The signature of a provider stands for a key. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { hookErrorSchemas } from "../ErrorCode.ts"
import type { Name } from "./Providers.ts"

export const PATH = "/hooks/sms"

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

const DESCRIBED: Readonly<Record<Name, Described>> = {
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

const schemeOf = (name: Name): string => `${name}Signature`

/** The schemes of these providers, by name. */
export const securitySchemes = (names: ReadonlyArray<Name>): Readonly<Record<string, Json>> =>
  Object.fromEntries(names.map((name) => [schemeOf(name), DESCRIBED[name].scheme]))

const endpointOf = (name: Name) => {
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

/** The hooks of these providers. */
export const group = (names: ReadonlyArray<Name>) =>
  HttpApiGroup.make("hooks")
    .add(...(names.map(endpointOf) as [ReturnType<typeof endpointOf>]))
    .annotateMerge(OpenApi.annotations({ description: "Where providers of phone numbers bring text messages. They are not for callers." }))
