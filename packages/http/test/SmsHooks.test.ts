/** Messages that providers of numbers bring. The official SDK of each provider says which signatures are right. */
import { createHmac, createSecretKey, hash } from "node:crypto"
import { createRequire } from "node:module"
import { SmsReceiver } from "@millrace/core"
import { Context, Effect, Layer, Logger, Redacted, type Scope } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import twilio from "twilio"
import { describe, expect, test } from "vitest"
import * as Jwt from "../src/hooks/Jwt.ts"
import { type Name, providers } from "../src/hooks/Providers.ts"
import type { SignedRequest } from "../src/hooks/Signature.ts"
import { Http, SmsHooks, WebHandler } from "../src/index.ts"
import { api, PUBLIC_NUMBER, services, testing as within } from "./Host.ts"

// Their types describe other shapes than what they export
const require = createRequire(import.meta.url)
const plivo: { validateV3Signature: (...given: ReadonlyArray<unknown>) => boolean } = require("plivo")
const messagebird: {
  verify: (url: string, body: Buffer, jwt: string, key: unknown, options: unknown) => Promise<unknown>
  VerifyOptions: new (...given: ReadonlyArray<unknown>) => unknown
} = require("messagebird/lib/webhook-signature-jwt")
const vonage: { verifySignature: (token: string, secret: string) => boolean } = require("@vonage/jwt")

const SECRET = "a secret of the provider"
const NOW = Date.UTC(2026, 10, 22, 18, 30)
const SECONDS = NOW / 1_000
const BASE = "https://api.example.com"

const secrets = Object.fromEntries(Object.keys(providers).map((name) => [name, Redacted.make(SECRET)]))

const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url")
const tokenOf = (claims: object, secret = SECRET, alg = "HS256"): string => {
  const signed = `${base64url({ alg, typ: "JWT" })}.${base64url(claims)}`
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`
}
const sha256 = (text: string): string => hash("sha256", text, "hex")

const urlOf = (name: string): string => `${BASE}/hooks/sms/${name}`

interface Call {
  readonly name: Name
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

const FORM = { "content-type": "application/x-www-form-urlencoded" }
const JSON_BODY = { "content-type": "application/json" }

/** A message as each provider brings and signs it. */
const call = (
  name: Name,
  id: string,
  { secret = SECRET, to = PUBLIC_NUMBER, at = SECONDS, text = "482913 is your Example code" } = {}
): Call => {
  const digits = to.slice(1)
  switch (name) {
    case "twilio": {
      const fields = { MessageSid: id, From: "+14155550100", To: to, Body: text, NumMedia: "0" }
      const signature = twilio.getExpectedTwilioSignature(secret, urlOf(name), fields)
      return { name, body: new URLSearchParams(fields).toString(), headers: { ...FORM, "x-twilio-signature": signature } }
    }
    case "plivo": {
      const fields = { MessageUUID: id, From: "14155550100", To: digits, Text: text, Type: "sms" }
      const parameters = Object.entries(fields)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, value]) => key + value)
      const signature = createHmac("sha256", secret)
        .update(`${urlOf(name)}?${parameters.join("")}.77`)
        .digest("base64")
      expect(plivo.validateV3Signature("POST", urlOf(name), "77", secret, signature, fields)).toBe(true)
      return {
        name,
        body: new URLSearchParams(fields).toString(),
        headers: { ...FORM, "x-plivo-signature-v3": signature, "x-plivo-signature-v3-nonce": "77" }
      }
    }
    case "vonage": {
      const body = JSON.stringify({ channel: "sms", message_type: "text", message_uuid: id, from: "14155550100", to: digits, text })
      const token = tokenOf({ iat: at, jti: id, iss: "Vonage", payload_hash: sha256(body) }, secret)
      expect(vonage.verifySignature(token, secret)).toBe(true)
      return { name, body, headers: { ...JSON_BODY, authorization: `Bearer ${token}` } }
    }
    case "messagebird": {
      const body = JSON.stringify({ id, recipient: digits, originator: "14155550100", body: text })
      const claims = { iss: "MessageBird", nbf: at, exp: at + 60, jti: id, url_hash: sha256(urlOf(name)), payload_hash: sha256(body) }
      return { name, body, headers: { ...JSON_BODY, "messagebird-signature-jwt": tokenOf(claims, secret) } }
    }
  }
}

const names = Object.keys(providers) as ReadonlyArray<Name>

interface Host {
  readonly post: (call: Call) => Effect.Effect<{ readonly status: number; readonly body: string }>
  readonly receiver: SmsReceiver["Service"]
}

const testing = (
  name: string,
  body: (host: Host) => Effect.Effect<void, unknown, Scope.Scope>,
  settings: Partial<SmsHooks.Settings> = {}
): void =>
  within(
    name,
    Effect.gen(function* () {
      yield* TestClock.setTime(NOW)
      const context = yield* Layer.build(Layer.fresh(Layer.provideMerge(services(), Logger.layer([]))))
      const run = Effect.provideContext(context)
      const hooks = SmsHooks.layer({ secrets, publicUrl: new URL(BASE), ...settings })
      const { handle } = yield* run(WebHandler.make(Layer.merge(Http.layer(api), hooks)))
      const post = ({ body, headers, name }: Call) =>
        Effect.promise(async () => {
          const answer = await handle(new Request(urlOf(name), { method: "POST", headers, body }))
          return { status: answer.status, body: await answer.text() }
        })
      yield* body({ post, receiver: Context.get(context, SmsReceiver) })
    })
  )

const codeOf = ({ receiver }: Host, identifier: string) =>
  Effect.map(
    receiver.wait(
      { number: PUBLIC_NUMBER, identifier, timeout: 0, since: NOW - 1 },
      { accountId: "acc_1", requestId: "req_1", reservationId: `res_${identifier}` }
    ),
    (found) => found && { code: found.code, sender: found.sender }
  )

describe.each(names)("a message that %s brings", (name) => {
  testing("is kept, once, with its sender", (host) =>
    Effect.gen(function* () {
      const answers = [yield* host.post(call(name, "id-1")), yield* host.post(call(name, "id-1"))]
      expect(answers.map(({ status }) => status)).toEqual([200, 200])
      expect(answers[0]?.body).toBe(name === "twilio" ? "<Response/>" : "")
      expect(yield* codeOf(host, "example")).toEqual({ code: "482913", sender: "+14155550100" })
      const { source, id, ...message } = { source: name, id: "id-1", from: "x", to: PUBLIC_NUMBER, text: "x" } as const
      expect(yield* host.receiver.receive({ source, id, ...message })).toBe("repeated")
    })
  )

  testing("under another's signature is refused, and not kept", (host) =>
    Effect.gen(function* () {
      const signed = call(name, "id-1")
      const changed = { ...signed, body: signed.body.replace("482913", "482914") }
      const unsigned = { ...signed, headers: name === "twilio" || name === "plivo" ? FORM : JSON_BODY }
      for (const forged of [call(name, "id-1", { secret: "another" }), changed, unsigned]) {
        const { body, status } = yield* host.post(forged)
        expect([status, JSON.parse(body).error.code]).toEqual([401, "unauthorized"])
      }
      expect(yield* codeOf(host, "example")).toBeUndefined()
    })
  )

  testing("to a number that is not the host's is not kept", (host) =>
    Effect.gen(function* () {
      expect((yield* host.post(call(name, "id-1", { to: "+15005550007" }))).status).toBe(404)
    })
  )

  testing(
    "is refused where the provider has no secret",
    (host) =>
      Effect.gen(function* () {
        const { body, status } = yield* host.post(call(name, "id-1"))
        expect([status, JSON.parse(body).error.code]).toEqual([503, "upstream_not_configured"])
      }),
    { secrets: {} }
  )

  testing("that is none, such as a receipt, is answered and not kept", (host) =>
    Effect.gen(function* () {
      expect((yield* host.post(call(name, ""))).status).toBe(200)
      expect(yield* codeOf(host, "example")).toBeUndefined()
    })
  )
})

describe("a token", () => {
  testing("that is too old is refused", (host) =>
    Effect.gen(function* () {
      const statuses = yield* Effect.forEach([SECONDS - 3_600, SECONDS + 3_600], (at) =>
        Effect.forEach(["vonage", "messagebird"] as const, (name) =>
          Effect.map(host.post(call(name, `${at}`, { at })), ({ status }) => status)
        )
      )
      expect(statuses.flat()).toEqual([401, 401, 401, 401])
    })
  )

  test("of no algorithm, or of another, is refused", () => {
    const claims = { iat: SECONDS }
    expect(Jwt.verified(tokenOf(claims), SECRET)).toEqual(claims)
    for (const alg of ["none", "RS256", "toString"]) expect(Jwt.verified(tokenOf(claims, SECRET, alg), SECRET)).toBeUndefined()
    expect(Jwt.verified(`${base64url({ alg: "none" })}.${base64url(claims)}.`, SECRET)).toBeUndefined()
    for (const text of ["", ".", "..", "a.b.c", `${tokenOf(claims)}.x`]) expect(Jwt.verified(text, SECRET)).toBeUndefined()
  })
})

// the SDKs as oracles

const word = fc.string({ unit: "grapheme", maxLength: 12 })
const fields = fc.dictionary(fc.string({ unit: fc.constantFrom("A", "a", "b", "Z", "1", "_"), minLength: 1, maxLength: 4 }), word, {
  minKeys: 1,
  maxKeys: 6
})
const url = fc.constantFrom(`${BASE}/hooks`, `${BASE}:8443/hooks`, "http://example.com/hooks?b=2&a=1", `${BASE}/hooks?a=1&a=0`)

const requestOf = (url: string, form: Readonly<Record<string, string>>, headers: SignedRequest["headers"]): SignedRequest => ({
  urls: [url],
  headers,
  body: new Uint8Array(),
  form: Object.entries(form),
  now: SECONDS
})

describe("a signature is right if the provider's SDK says so", () => {
  test("of Twilio", () => {
    fc.assert(
      fc.property(url, fields, fields, (url, form, other) => {
        const signature = twilio.getExpectedTwilioSignature(SECRET, url, form)
        const request = requestOf(url, other, { "x-twilio-signature": signature })
        expect(providers.twilio.isAuthentic(SECRET, requestOf(url, form, request.headers))).toBe(true)
        expect(providers.twilio.isAuthentic(SECRET, request)).toBe(twilio.validateRequest(SECRET, signature, url, other))
      })
    )
  })

  test("of Plivo, also with a query", () => {
    fc.assert(
      fc.property(url, fields, (url, form) => {
        const [address, search = ""] = url.split("?")
        const query = [...new URLSearchParams(search)]
          .map(([key, value]) => `${key}=${value}`)
          .sort()
          .join("&")
        const parameters = Object.keys(form)
          .sort()
          .map((key) => `${key}${form[key]}`)
        const base = `${address}?${query}${query === "" ? "" : "."}${parameters.join("")}.5`
        const signature = createHmac("sha256", SECRET).update(base).digest("base64")
        const headers = { "x-plivo-signature-v3": `no,${signature}`, "x-plivo-signature-v3-nonce": "5" }
        expect(providers.plivo.isAuthentic(SECRET, requestOf(url, form, headers))).toBe(true)
        expect(plivo.validateV3Signature("POST", url, "5", SECRET, signature, form)).toBe(true)
        expect(providers.plivo.isAuthentic("another", requestOf(url, form, headers))).toBe(false)
      })
    )
  })

  test("of MessageBird", async () => {
    const { body, headers, name } = call("messagebird", "id-1")
    const token = headers["messagebird-signature-jwt"] ?? ""
    const options = (at: Date) =>
      new messagebird.VerifyOptions(true, true, { issuer: "MessageBird", algorithms: ["HS256"], clockTolerance: 5, currentDate: at })
    const verdict = (at: number, text: string) =>
      messagebird.verify(urlOf(name), Buffer.from(text), token, createSecretKey(Buffer.from(SECRET)), options(new Date(at * 1_000))).then(
        () => true,
        () => false
      )
    for (const [at, text] of [
      [SECONDS, body],
      [SECONDS + 64, body],
      [SECONDS + 65, body],
      [SECONDS - 5, body],
      [SECONDS - 6, body],
      [SECONDS, `${body} `]
    ] as const) {
      const request = { urls: [urlOf(name)], headers, body: Buffer.from(text), form: [], now: at }
      expect(providers.messagebird.isAuthentic(SECRET, request), `${at - SECONDS}`).toBe(await verdict(at, text))
    }
  })
})
