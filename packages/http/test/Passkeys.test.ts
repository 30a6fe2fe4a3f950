/** Passkeys over real HTTP: added, used, removed; and whatever an attacker or a broken authenticator sends instead. */
import { Decisions, Ledger } from "@millrace/core"
import { EventStore, MemoryEventStore, MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import * as Authenticator from "./Authenticator.ts"
import { type Host, host, PUBLIC_URL, testing } from "./Host.ts"
import { ADA, type Browser, browserAt, codeOf, type Json, SESSION, signedIn } from "./Person.ts"

const PAGE = { origin: PUBLIC_URL, rpId: new URL(PUBLIC_URL).hostname }
const PASSKEYS = "/api/v1/passkeys"
const SIGN_IN = "/api/v1/sessions/passkey"

const optionsOf = ({ json, status }: { readonly json: Json; readonly status: number }) => {
  expect(status).toBe(200)
  return json.data.options
}

const askToAdd = (browser: Browser) => Effect.map(browser.change(`${PASSKEYS}/options`, "POST"), optionsOf)
const askToSignIn = (browser: Browser) => Effect.map(browser.ask(`${SIGN_IN}/options`, { method: "POST" }), optionsOf)
const signIn = (browser: Browser, credential: object) => browser.ask(SIGN_IN, { method: "POST", body: { credential } })

const add = Effect.fnUntraced(function* (browser: Browser, device: Authenticator.Authenticator, name = "phone") {
  const credential = device.create(yield* askToAdd(browser))
  return yield* browser.change(PASSKEYS, "POST", { credential, name })
})

/** A person with a passkey, and a browser that is not signed in. */
const withPasskey = Effect.fnUntraced(function* (at: Host, device = Authenticator.make(PAGE)) {
  const owner = yield* signedIn(at)
  const added = yield* add(owner, device)
  expect(added.status).toBe(201)
  return { owner, device, passkeyId: String(added.json.data.passkey_id), stranger: browserAt(at, "Desk") }
})

describe("a passkey", () => {
  testing(
    "is added in a session, signs in without a mail, is listed with its last use, and signs in no more once it is removed",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const { device, owner, passkeyId, stranger } = yield* withPasskey(at)
      const options = yield* askToSignIn(stranger)
      expect(options).toMatchObject({ rpId: PAGE.rpId, userVerification: "required" })
      const mails = at.mails.length
      const opened = yield* signIn(stranger, device.get(options))
      expect(opened).toMatchObject({ status: 201, json: { data: { proof: "passkey", address: ADA, verified: true } } })
      expect(opened.json.request.input).toEqual({ credential: "***" })
      expect(at.mails).toHaveLength(mails)
      expect((yield* stranger.ask("/api/v1/bin/457173")).status).toBe(200)
      expect((yield* owner.ask(PASSKEYS)).json.data.passkeys).toEqual([
        { passkey_id: passkeyId, name: "phone", transports: ["internal"], added_at: expect.any(String), used_at: expect.any(String) }
      ])
      expect((yield* owner.change(`${PASSKEYS}/${passkeyId}`, "DELETE")).json.data).toEqual({ passkey_id: passkeyId, removed: true })
      const other = browserAt(at)
      expect(codeOf(yield* signIn(other, device.get(yield* askToSignIn(other))))).toEqual([403, "sign_in_refused"])
      // Its sessions stay, until their owner ends them
      expect((yield* stranger.current).status).toBe(200)
      expect(codeOf(yield* owner.change(`${PASSKEYS}/${passkeyId}`, "DELETE"))).toEqual([404, "not_found"])
    })
  )

  testing(
    "is asked for with what the account has already, and cannot be added twice, by whomever",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const { device, owner } = yield* withPasskey(at)
      const [kept] = device.kept
      const options = yield* askToAdd(owner)
      expect(options).toMatchObject({
        rp: { id: PAGE.rpId, name: "Millrace" },
        user: { name: ADA },
        excludeCredentials: [{ id: kept?.id }],
        authenticatorSelection: { residentKey: "required", userVerification: "required" }
      })
      const bob = yield* signedIn(at, "bob@example.com")
      for (const browser of [owner, bob]) {
        const challenge = yield* askToAdd(browser)
        const copy = Authenticator.make(PAGE)
        // A device that gives the credential id of another one
        const made = copy.create(challenge)
        const credential = withCredentialId(made, kept?.id ?? "")
        const answer = yield* browser.change(PASSKEYS, "POST", { credential })
        expect(codeOf(answer)).toEqual([422, "invalid_request"])
        expect(answer.json.error.message).toMatch(/credential: This passkey was added before/u)
      }
    })
  )

  testing(
    "of an account that has twenty is one too many",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const { device, owner } = yield* withPasskey(at)
      for (let i = 1; i < 20; i++) expect((yield* add(owner, device, `device ${i}`)).status).toBe(201)
      const more = yield* add(owner, device)
      expect([more.status, more.json.error.message]).toEqual([422, "credential: An account may have 20 passkeys. Remove one first"])
      expect((yield* owner.ask(PASSKEYS)).json.data.passkeys).toHaveLength(20)
    })
  )

  testing(
    "of another account is neither shown nor removed",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const { owner, passkeyId } = yield* withPasskey(at)
      const bob = yield* signedIn(at, "bob@example.com")
      expect((yield* bob.ask(PASSKEYS)).json.data.passkeys).toEqual([])
      expect(codeOf(yield* bob.change(`${PASSKEYS}/${passkeyId}`, "DELETE"))).toEqual([404, "not_found"])
      expect(codeOf(yield* bob.change(`${PASSKEYS}/nonsense`, "DELETE"))).toEqual([404, "not_found"])
      expect((yield* owner.ask(PASSKEYS)).json.data.passkeys).toHaveLength(1)
    })
  )

  testing(
    "needs a session and its token to be added, and a page of this host",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const { owner, stranger } = yield* withPasskey(at)
      expect(codeOf(yield* stranger.ask(PASSKEYS))).toEqual([401, "unauthorized"])
      for (const path of [`${PASSKEYS}/options`, PASSKEYS]) {
        const body =
          path === PASSKEYS ? { body: { credential: Authenticator.make(PAGE).create({ challenge: "x", user: { id: "x" } }) } } : {}
        expect(codeOf(yield* owner.ask(path, { method: "POST", ...body }))).toEqual([403, "cross_site_request"])
      }
      for (const path of [SIGN_IN, `${SIGN_IN}/options`])
        expect(codeOf(yield* elsewhere(stranger, path))).toEqual([403, "cross_site_request"])
    })
  )
})

/** A sign-in that a page of another site causes. */
const elsewhere = (browser: Browser, path: string) => {
  const credential = Authenticator.make(PAGE)
  credential.create({ challenge: "x", user: { id: "x" } })
  const body = path === SIGN_IN ? { body: { credential: credential.get({ challenge: "x" }) } } : {}
  return browser.ask(path, { method: "POST", headers: { "sec-fetch-site": "cross-site" }, ...body })
}

/** The answer of an authenticator, with another credential id in all its places. */
const withCredentialId = (made: ReturnType<Authenticator.Authenticator["create"]>, id: string) => {
  const replaced = (text: string) => {
    const bytes = Buffer.from(text, "base64url")
    const place = bytes.indexOf(Buffer.from(made.id, "base64url"))
    bytes.set(Buffer.from(id, "base64url"), place)
    return bytes.toString("base64url")
  }
  const { attestationObject, authenticatorData } = made.response
  const response = { ...made.response, attestationObject: replaced(attestationObject), authenticatorData: replaced(authenticatorData) }
  return { ...made, id, rawId: id, response }
}

describe("a sign-in with a passkey is refused", () => {
  type Way = (
    at: Host,
    given: Effect.Success<ReturnType<typeof withPasskey>>
  ) => Effect.Effect<{ readonly status: number; readonly json: Json }>

  /** An answer that says something wrong. */
  const saying =
    (says: Authenticator.Says): Way =>
    (_, { device, stranger }) =>
      Effect.flatMap(askToSignIn(stranger), (options) => signIn(stranger, device.get(options, says)))

  const WAYS: ReadonlyArray<readonly [why: string, message: RegExp, way: Way]> = [
    ["from a page of another site", /not valid/u, saying({ origin: "https://api.example.com.evil.test" })],
    ["for another site", /not valid/u, saying({ rpId: "evil.test" })],
    ["that was meant to add one", /not valid/u, saying({ type: "webauthn.create" })],
    ["whose user was not verified", /not valid/u, saying({ isVerified: false })],
    ["for another account's passkey", /not valid/u, saying({ userHandle: "bm9ib2R5" })],
    ["for a challenge that nobody gave out", /too long ago, or in another browser/u, saying({ challenge: "A".repeat(75) })],
    ["with a challenge of one character", /too long ago/u, saying({ challenge: "A" })],
    [
      "whose signature is of other data",
      /not valid/u,
      (_, { device, stranger }) =>
        Effect.flatMap(askToSignIn(stranger), (options) => {
          const credential = device.get(options)
          const { signature } = device.get(options).response
          return signIn(stranger, { ...credential, response: { ...credential.response, signature } })
        })
    ],
    [
      "by a device that was never added",
      /not known here/u,
      (_, { stranger }) => {
        const unknown = Authenticator.make(PAGE)
        unknown.create({ challenge: "x", user: { id: "x" } })
        return Effect.flatMap(askToSignIn(stranger), (options) => signIn(stranger, unknown.get(options)))
      }
    ],
    [
      "with the challenge of another browser",
      /in another browser/u,
      (at, { device, stranger }) => {
        const other = browserAt(at)
        return Effect.gen(function* () {
          const options = yield* askToSignIn(other)
          yield* askToSignIn(stranger)
          return yield* signIn(stranger, device.get(options))
        })
      }
    ],
    [
      "with a challenge to add a passkey",
      /in another browser/u,
      (_, { device, owner }) =>
        Effect.gen(function* () {
          const options = yield* askToAdd(owner)
          yield* askToSignIn(owner)
          return yield* signIn(owner, device.get(options))
        })
    ],
    [
      "without the cookie of the browser that asked",
      /in another browser/u,
      (_, { device, stranger }) =>
        Effect.gen(function* () {
          const options = yield* askToSignIn(stranger)
          stranger.jar.delete("__Host-millrace-passkey")
          return yield* signIn(stranger, device.get(options))
        })
    ],
    [
      "five minutes after it was asked for",
      /too long ago/u,
      (_, { device, stranger }) =>
        Effect.gen(function* () {
          const options = yield* askToSignIn(stranger)
          yield* TestClock.adjust("5 minutes")
          return yield* signIn(stranger, device.get(options))
        })
    ],
    [
      "a second time with the same answer",
      /used already/u,
      (_, { device, stranger }) =>
        Effect.gen(function* () {
          const options = yield* askToSignIn(stranger)
          const cookie = stranger.jar.get("__Host-millrace-passkey") ?? ""
          const credential = device.get(options)
          expect((yield* signIn(stranger, credential)).status).toBe(201)
          stranger.jar.set("__Host-millrace-passkey", cookie)
          return yield* signIn(stranger, credential)
        })
    ],
    [
      "by a copy that counts less",
      /may have been copied/u,
      (_, { device, stranger }) =>
        Effect.gen(function* () {
          expect((yield* signIn(stranger, device.get(yield* askToSignIn(stranger), { counter: 7 }))).status).toBe(201)
          return yield* signIn(stranger, device.get(yield* askToSignIn(stranger), { counter: 7 }))
        })
    ]
  ]

  for (const [why, message, way] of WAYS)
    testing(
      why,
      Effect.gen(function* () {
        const at = yield* host({ sessions: true })
        const given = yield* withPasskey(at)
        const refused = yield* way(at, given)
        expect([refused.status, refused.json.error.code]).toEqual([403, "sign_in_refused"])
        expect(refused.json.error.message).toMatch(message)
      })
    )

  testing(
    "once its account was closed",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const { device, owner, stranger } = yield* withPasskey(at)
      const accountId = (yield* owner.current).json.data.account_id
      yield* at.run(Effect.flatMap(Ledger, (ledger) => ledger.execute(accountId, Decisions.close)))
      expect(codeOf(yield* signIn(stranger, device.get(yield* askToSignIn(stranger))))).toEqual([403, "sign_in_refused"])
      expect(stranger.jar.has(SESSION)).toBe(false)
    })
  )
})

describe("devices that do not count", () => {
  testing(
    "sign in again and again",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const { device, stranger } = yield* withPasskey(at, Authenticator.make(PAGE, { counts: false }))
      for (let i = 0; i < 3; i++) expect((yield* signIn(stranger, device.get(yield* askToSignIn(stranger)))).status).toBe(201)
    })
  )
})

describe("of sixteen answers to one challenge at once", () => {
  testing(
    "one signs in",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const { device, stranger } = yield* withPasskey(at, Authenticator.make(PAGE, { counts: false }))
      const credential = device.get(yield* askToSignIn(stranger))
      const cookie = stranger.jar.get("__Host-millrace-passkey") ?? ""
      const answers = yield* Effect.forEach(
        Array.from({ length: 16 }, () => browserAt(at)),
        (browser) => {
          browser.jar.set("__Host-millrace-passkey", cookie)
          return signIn(browser, credential)
        },
        { concurrency: "unbounded" }
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array.from({ length: 15 }, () => 403)])
    })
  )
})

describe("two hosts", () => {
  testing(
    "know each other's challenges, passkeys and removals at once, and let one answer in once",
    Effect.gen(function* () {
      const shared = {
        sessions: true,
        events: Layer.succeed(EventStore.EventStore, yield* MemoryEventStore.make),
        states: Layer.succeed(StateStore.StateStore, yield* MemoryStateStore.make)
      }
      const [here, there] = [yield* host(shared), yield* host(shared)]
      const { device, owner, passkeyId, stranger } = yield* withPasskey(here)
      /** The same browser, led to the other host. */
      const elsewhere = browserAt(there)
      const options = yield* askToSignIn(stranger)
      const credential = device.get(options)
      for (const [name, value] of stranger.jar) elsewhere.jar.set(name, value)
      expect((yield* signIn(elsewhere, credential)).status).toBe(201)
      expect(codeOf(yield* signIn(stranger, credential))).toEqual([403, "sign_in_refused"])
      expect((yield* elsewhere.ask(PASSKEYS)).json.data.passkeys).toMatchObject([{ passkey_id: passkeyId }])
      expect((yield* owner.change(`${PASSKEYS}/${passkeyId}`, "DELETE")).status).toBe(200)
      const late = browserAt(there)
      expect(codeOf(yield* signIn(late, device.get(yield* askToSignIn(late))))).toEqual([403, "sign_in_refused"])
    })
  )
})
