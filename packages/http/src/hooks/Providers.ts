/** How each provider of numbers signs its calls, and how it writes a message. The signatures are checked by our own code. */
import type { IncomingSms } from "@millrace/core"
import * as Jwt from "./Jwt.ts"
import { byName, hmac, isEqual, type SignedRequest, sha256 } from "./Signature.ts"

/** The fields of a call: of its form, or of its JSON object. Fields that are no text or number are left out. */
export type Fields = Readonly<Record<string, string>>

export interface Provider {
  /** Whether the provider, who alone has the secret, made this request. */
  readonly isAuthentic: (secret: string, request: SignedRequest) => boolean
  /** The message; undefined for a call that brings none, such as a receipt. */
  readonly messageOf: (fields: Fields) => Omit<IncomingSms, "source"> | undefined
  /** What the provider expects as an answer: its media type and text. */
  readonly answer: readonly [contentType: string, body: string]
}

/** A message, where the provider sent all its parts. An empty text is one. */
const message = (id: string | undefined, from: string | undefined, to: string | undefined, text: string | undefined) =>
  id === undefined || id === "" || from === undefined || to === undefined || text === undefined ? undefined : { id, from, to, text }

const NOTHING = ["text/plain", ""] as const

// Twilio

/** With the port of its scheme where it has none, and without its port: Twilio may sign either. */
const withPorts = (url: string): ReadonlyArray<string> => {
  const [, scheme = "", host = "", rest = ""] = /^(https?:\/\/)([^/?#:[\]]+|\[[^\]]*\])(?::\d+)?(.*)$/su.exec(url) ?? []
  return scheme === "" ? [url] : [url, `${scheme}${host}${rest}`, `${scheme}${host}:${scheme === "https://" ? 443 : 80}${rest}`]
}

/** HMAC-SHA-1 over address and form: https://www.twilio.com/docs/usage/webhooks/webhooks-security */
const twilio: Provider = {
  isAuthentic: (token, { form, headers, urls }) => {
    const signature = headers["x-twilio-signature"]
    const parameters = byName(form).flatMap(([name, values]) => [...new Set(values)].sort().map((value) => name + value))
    return (
      signature !== undefined && urls.flatMap(withPorts).some((url) => isEqual(hmac("sha1", token, url + parameters.join("")), signature))
    )
  },
  messageOf: ({ Body, From, MessageSid, To }) => message(MessageSid, From, To, Body),
  answer: ["text/xml", "<Response/>"]
}

// Plivo

const plivoBase = (url: string, form: SignedRequest["form"]): string | undefined => {
  if (!URL.canParse(url)) return undefined
  const [address = "", search = ""] = url.split("?", 2)
  const query = byName(new URLSearchParams(search)).flatMap(([name, values]) => [...values].sort().map((value) => `${name}=${value}`))
  const parameters = byName(form).flatMap(([name, values]) => [...values].sort().map((value) => name + value))
  if (parameters.length === 0) return query.length === 0 ? address : `${address}?${query.join("&")}`
  return `${address}?${query.join("&")}${query.length === 0 ? "" : "."}${parameters.join("")}`
}

/** HMAC-SHA-256 over address, form and nonce, version 3: https://www.plivo.com/docs/messaging/concepts/signature-validation */
const plivo: Provider = {
  isAuthentic: (token, { form, headers, urls }) => {
    const nonce = headers["x-plivo-signature-v3-nonce"]
    const signatures = (headers["x-plivo-signature-v3"] ?? "").split(",").map((signature) => signature.trim())
    const bases = urls.map((url) => plivoBase(url, form))
    return (
      nonce !== undefined &&
      bases.some(
        (base) => base !== undefined && signatures.some((signature) => isEqual(hmac("sha256", token, `${base}.${nonce}`), signature))
      )
    )
  },
  messageOf: ({ From, MessageUUID, Text, To }) => message(MessageUUID, From, To, Text),
  answer: NOTHING
}

// Vonage

/** Seconds that a token is good for, and that clocks may differ. */
const FRESH = 300

/** A token with the hash of the body: https://developer.vonage.com/en/getting-started/concepts/webhooks */
const vonage: Provider = {
  isAuthentic: (secret, { body, headers, now }) => {
    const token = /^Bearer +(\S+)$/iu.exec(headers["authorization"] ?? "")?.[1]
    const claims = token === undefined ? undefined : Jwt.verified(token, secret)
    const issuedAt = claims && Jwt.seconds(claims, "iat")
    return (
      claims !== undefined &&
      issuedAt !== undefined &&
      Math.abs(now - issuedAt) <= FRESH &&
      isEqual(Jwt.text(claims, "payload_hash") ?? "", sha256(body))
    )
  },
  // The Messages API, then the SMS API
  messageOf: (fields) =>
    message(fields["message_uuid"], fields["from"], fields["to"], fields["text"]) ??
    message(fields["messageId"], fields["msisdn"], fields["to"], fields["text"]),
  answer: NOTHING
}

// MessageBird

/** Seconds that clocks may differ. */
const LEEWAY = 5

/** A token with the hashes of address and body: https://developers.messagebird.com/api/#verifying-http-requests */
const messagebird: Provider = {
  isAuthentic: (key, { body, headers, now, urls }) => {
    const claims = Jwt.verified(headers["messagebird-signature-jwt"] ?? "", key)
    if (claims === undefined || Jwt.text(claims, "iss") !== "MessageBird" || Jwt.text(claims, "jti") === undefined) return false
    const [from, until] = [Jwt.seconds(claims, "nbf"), Jwt.seconds(claims, "exp")]
    if (until === undefined || now >= until + LEEWAY || (from !== undefined && now < from - LEEWAY)) return false
    const signedUrl = Jwt.text(claims, "url_hash") ?? ""
    const isOfBody = body.length === 0 || isEqual(Jwt.text(claims, "payload_hash") ?? "", sha256(body))
    return isOfBody && urls.some((url) => isEqual(sha256(url), signedUrl))
  },
  messageOf: ({ body, id, originator, recipient }) => message(id, originator, recipient, body),
  answer: NOTHING
}

export const providers = { twilio, plivo, vonage, messagebird } as const
export type Name = keyof typeof providers
