/** Signing up, signing in and sessions over real HTTP, as a browser does it, and as an attacker does. */
import { EventStore, MemoryEventStore, MemoryStateStore, StateStore, type EventStore as Store } from "@millrace/event-sourcing"
import { Effect, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { type Call, host, PUBLIC_URL, testing } from "./Host.ts"
import { ADA, BROWSER, type Browser, browserAt, codeOf, type Json, SESSION, signedIn, tokenIn } from "./Person.ts"

/** Facts of an answer that differ between any two requests. */
const VARYING = ["date", "x-request-id", "set-cookie", "ratelimit", "content-length"]

describe("a person", () => {
  testing(
    "signs up, is signed in unverified, follows the link, has a trial and then 200 credits, spends them, and signs out",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const browser = browserAt(at)
      const asked = yield* browser.signUp(" Ada@Example.com")
      expect(asked).toMatchObject({
        status: 202,
        json: { status: "pending", data: { expires_in: 900 }, request: { input: { address: "***" } } }
      })
      const cookies = asked.headers["set-cookie"] ?? []
      expect(cookies.map((cookie) => cookie.split("=")[0])).toEqual([SESSION, BROWSER])
      for (const cookie of cookies) expect(cookie).toMatch(/^[^;]+; Max-Age=\d+; Path=\/; HttpOnly; Secure; SameSite=Lax$/u)
      expect((yield* browser.current).json.data).toMatchObject({ verified: false, address: ADA, proof: "signUp" })
      const tried = yield* browser.ask("/api/v1/bin/457173")
      expect([tried.status, tried.headers["x-trial-remaining"]]).toEqual([200, "9"])

      expect(at.mails).toHaveLength(1)
      expect(at.mails[0]?.text).toContain(`${PUBLIC_URL}/sign-in#link_`)
      const followed = yield* browser.follow(tokenIn(at))
      expect(followed).toMatchObject({ status: 201, json: { data: { verified: true, address: ADA, proof: "mailLink" } } })
      const spent = yield* browser.ask("/api/v1/bin/457173")
      expect([spent.status, spent.headers["x-credits-balance"]]).toEqual([200, "199.5"])
      const written = yield* browser.change("/api/v1/grammar/check", "POST", { text: "Some Text", language: "en" })
      expect(written.status).toBe(200)

      const out = yield* browser.change("/api/v1/sessions/current", "DELETE")
      expect([out.status, out.json.data]).toEqual([200, { ended: 1 }])
      expect(browser.jar.has(SESSION)).toBe(false)
      expect(codeOf(yield* browser.current)).toEqual([401, "unauthorized"])
    })
  )

  testing(
    "sees the browsers that are signed in, ends one, then all, and no other account's",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true, signInLimits: { address: { limit: 100, window: 60 } } })
      const [phone, desk] = [yield* signedIn(at, ADA, "Phone"), yield* signedIn(at, ADA, "Desk")]
      const stranger = yield* signedIn(at, "bob@example.com")
      const { sessions } = (yield* desk.ask("/api/v1/sessions")).json.data
      expect(sessions.map(({ current, ip, user_agent }: Json) => [user_agent, ip, current])).toEqual([
        ["Phone", "127.0.0.1", false],
        ["Desk", "127.0.0.1", true]
      ])
      const path = `/api/v1/sessions/${sessions[0].session_id}`
      expect(codeOf(yield* stranger.change(path, "DELETE"))).toEqual([404, "not_found"])
      expect((yield* phone.current).status).toBe(200)
      expect((yield* desk.change(path, "DELETE")).status).toBe(200)
      expect((yield* phone.current).status).toBe(401)
      expect(codeOf(yield* desk.change(path, "DELETE"))).toEqual([404, "not_found"])
      const third = yield* signedIn(at, ADA)
      expect((yield* third.change("/api/v1/sessions", "DELETE")).json.data).toEqual({ ended: 2 })
      expect([(yield* desk.current).status, (yield* third.current).status, (yield* stranger.current).status]).toEqual([401, 401, 200])
    })
  )
})

describe("an answer", () => {
  testing(
    "is the same for a known and an unknown address: body, status, headers, mail, and the steps that the log shows",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      yield* signedIn(at, ADA)
      for (const act of ["signUp", "askForLink"] as const) {
        const traces: Array<unknown> = []
        for (const address of [ADA, "nobody@example.com"]) {
          const before = (yield* at.log).length
          const { headers, json, status } = yield* browserAt(at)[act](address)
          const types = (yield* at.log).slice(before).map(({ type }) => type)
          const { id: _, ...request } = json.request
          const shown = Object.entries(headers).filter(([name]) => !VARYING.includes(name))
          const cookies = (headers["set-cookie"] ?? []).map((cookie) => cookie.replace(/=[^;]+/u, "=").length)
          const { subject, text } = at.mails.at(-1) ?? { subject: "", text: "" }
          traces.push({ status, json: { ...json, request }, shown, cookies, types, subject, text: text.replace(/#\S+/u, "") })
        }
        expect(traces[0]).toEqual(traces[1])
      }
    })
  )

  testing(
    "to too many questions is 429, for an address and for a client, whether or not the address is known",
    Effect.gen(function* () {
      const limits = { address: { limit: 2, window: 900 }, client: { limit: 7, window: 3_600 } }
      const at = yield* host({ sessions: true, signInLimits: limits })
      yield* signedIn(at, ADA)
      const statuses = (address: string, times: number) =>
        Effect.forEach(Array.from({ length: times }), () => Effect.map(browserAt(at).askForLink(address), ({ status }) => status))
      expect(yield* statuses(" ADA@example.com", 2)).toEqual([202, 429])
      expect(yield* statuses("nobody@example.com", 3)).toEqual([202, 202, 429])
      expect((yield* browserAt(at).signUp("new@example.com")).status).toBe(202)
      const limited = yield* browserAt(at).askForLink("another@example.com")
      expect(codeOf(limited)).toEqual([429, "rate_limited"])
      expect(Number(limited.headers["retry-after"])).toBeGreaterThan(0)
      yield* TestClock.adjust("2 hours")
      expect(yield* statuses(ADA, 1)).toEqual([202])
    })
  )

  testing(
    "without a mail relay says that it is not set up, and opens no account",
    Effect.gen(function* () {
      const { MailRelay } = yield* Effect.promise(() => import("@millrace/core"))
      const at = yield* host({ sessions: true, relay: MailRelay.unconfigured })
      expect(codeOf(yield* browserAt(at).signUp())).toEqual([503, "upstream_not_configured"])
      expect((yield* at.log).filter(({ type }) => type === "AccountOpened")).toEqual([])
    })
  )

  testing(
    "for an address that the relay refuses for good is answered like any other, and the log does not name the address",
    Effect.gen(function* () {
      const { MailNotSent, MailRelay } = yield* Effect.promise(() => import("@millrace/core"))
      const refused = new MailNotSent({ reason: "EENVELOPE 550", outcome: "refused", isAddressRefused: true })
      const relay = Layer.succeed(MailRelay, { configured: Effect.void, send: () => Effect.fail(refused) })
      const at = yield* host({ sessions: true, relay })
      expect((yield* browserAt(at).askForLink("nobody@example.com")).status).toBe(202)
      expect((yield* browserAt(at).signUp("nobody@example.com")).status).toBe(202)
      expect(at.lines.filter((line) => line.includes("refused an address for good"))).toHaveLength(2)
      expect(at.lines.join("")).not.toContain("nobody")
    })
  )
})

describe("an address", () => {
  testing(
    "that is none, or holds another header or recipient, is refused before anything is mailed",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const bad = [
        "",
        "ada",
        "ada@example",
        "ada@example.com\r\nBcc: eve@example.com",
        "ada@example.com\nSubject: x",
        "ada@example.com, eve@example.com",
        "ada@example.com;eve@example.com",
        "Ada <ada@example.com>",
        "ada@example.com\u0000",
        "ada\u2028@example.com",
        `"a b"@example.com`,
        `${"a".repeat(65)}@example.com`
      ]
      for (const address of bad) {
        expect(codeOf(yield* browserAt(at).signUp(address)), address).toEqual([422, "invalid_request"])
        expect(codeOf(yield* browserAt(at).askForLink(address)), address).toEqual([422, "invalid_request"])
      }
      for (const body of [{}, { address: 7 }, { address: ADA, redirect: "https://evil.example" }, []])
        expect((yield* browserAt(at).ask("/api/v1/signup", { method: "POST", body })).status).toBe(422)
      expect(at.mails).toEqual([])
    })
  )
})

describe("a link", () => {
  testing(
    "works once, in the browser that asked, within 15 minutes",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const browser = browserAt(at)
      yield* browser.askForLink()
      const token = tokenIn(at)
      const other = browserAt(at)
      expect((yield* other.follow(token)).json.error.message).toMatch(/another browser/u)
      yield* other.askForLink("eve@example.com")
      expect(codeOf(yield* other.follow(token))).toEqual([403, "sign_in_refused"])
      expect(codeOf(yield* browser.follow(`${token}x`))).toEqual([403, "sign_in_refused"])
      expect(codeOf(yield* browser.follow("x".repeat(201)))).toEqual([422, "invalid_request"])
      expect((yield* browser.follow(token)).status).toBe(201)
      expect(browser.jar.has(BROWSER)).toBe(false)
      expect((yield* browser.follow(token)).json.error.message).toMatch(/used already/u)
      yield* browser.askForLink()
      const late = tokenIn(at)
      yield* TestClock.adjust("15 minutes")
      // A browser drops the cookie at the same time
      browser.jar.delete(BROWSER)
      expect((yield* browser.follow(late)).json.error.message).toMatch(/expired/u)
    })
  )

  testing(
    "leads to the host's own address, whatever a request says it is called; no parameter leads elsewhere",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const headers = {
        host: "evil.example",
        "x-forwarded-host": "evil.example",
        forwarded: "host=evil.example",
        referer: "https://evil.example"
      }
      const browser = browserAt(at)
      yield* browser.ask("/api/v1/sessions?next=https://evil.example&redirect=//evil.example", {
        method: "POST",
        body: { address: ADA },
        headers
      })
      expect(at.mails.at(-1)?.text).not.toContain("evil")
      expect(at.mails.at(-1)?.text).toContain(`${PUBLIC_URL}/sign-in#`)
      const followed = yield* browser.ask("/api/v1/sessions/link?next=https://evil.example", {
        method: "POST",
        body: { token: tokenIn(at) },
        headers: { host: "evil.example" }
      })
      expect([followed.status, followed.headers.location]).toEqual([201, undefined])
    })
  )

  testing(
    "is not used up by whoever fetches its address; the page has no inline code and leads nowhere else",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const browser = browserAt(at)
      yield* browser.askForLink()
      const token = tokenIn(at)
      for (const path of ["/sign-in", `/sign-in?token=${token}`, "/sign-in.js", "/sign-in.css", `/api/v1/sessions/link?token=${token}`])
        yield* browser.ask(path)
      const page = yield* browser.ask("/sign-in")
      expect(page.headers).toMatchObject({
        "content-type": "text/html; charset=utf-8",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store"
      })
      expect(page.headers["content-security-policy"]).toContain("default-src 'none'")
      expect(page.headers["content-security-policy"]).not.toContain("unsafe")
      expect(page.body).not.toMatch(/<script>|<style|\son\w+=|https?:/u)
      expect((yield* browser.ask("/sign-in.js")).body).not.toMatch(/https?:|location\.(?:href|assign)|searchParams/u)
      expect((yield* browser.follow(token)).status).toBe(201)
    })
  )
})

describe("session fixation", () => {
  testing(
    "is impossible: a sign-in has a new session, and the one that the browser had before is over",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const attacker = browserAt(at)
      yield* attacker.signUp("eve@example.com")
      const planted = attacker.jar.get(SESSION) ?? ""
      const victim = browserAt(at)
      victim.jar.set(SESSION, planted)
      yield* victim.askForLink()
      yield* victim.follow(tokenIn(at))
      expect(victim.jar.get(SESSION)).not.toBe(planted)
      expect((yield* victim.current).json.data.address).toBe(ADA)
      expect((yield* attacker.current).status).toBe(401)
      // A session of one's own choice is none
      for (const chosen of [planted, "ses_01JD7X2M9G4YQ0V5Z8K3T6W1RB.chosen", `ses_01JD7X2M9G4YQ0V5Z8K3T6W1RB.${"A".repeat(43)}`]) {
        attacker.jar.set(SESSION, chosen)
        expect((yield* attacker.current).status).toBe(401)
      }
    })
  )

  testing(
    "by a link of the attacker's own does not work: it is bound to the attacker's browser",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const attacker = browserAt(at)
      yield* attacker.askForLink("eve@example.com")
      const victim = yield* signedIn(at, ADA)
      const token = tokenIn({ mails: at.mails.slice(0, 1) })
      expect(codeOf(yield* victim.follow(token))).toEqual([403, "sign_in_refused"])
      expect((yield* victim.current).json.data.address).toBe(ADA)
    })
  )
})

describe("a request that another site caused", () => {
  const ELSEWHERE = [
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { "sec-fetch-site": undefined, origin: "https://evil.example" },
    { "sec-fetch-site": undefined, origin: "null" }
  ]

  testing(
    "is refused, with the session's token and without, whatever it does, and costs nothing",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const victim = yield* signedIn(at)
      const token = yield* victim.csrf
      for (const elsewhere of ELSEWHERE)
        for (const headers of [elsewhere, { ...elsewhere, ...token }]) {
          const sent = headers as NonNullable<Call["headers"]>
          const calls: ReadonlyArray<readonly [string, Call]> = [
            ["/api/v1/grammar/check", { method: "POST", body: { text: "Some Text", language: "en" } }],
            ["/api/v1/bin/457173", {}],
            ["/api/v1/sessions", { method: "DELETE" }],
            ["/api/v1/sessions/current", { method: "DELETE" }]
          ]
          for (const [path, call] of calls)
            expect(codeOf(yield* victim.ask(path, { ...call, headers: sent })), path).toEqual([403, "cross_site_request"])
          for (const path of ["/api/v1/signup", "/api/v1/sessions"])
            expect(codeOf(yield* victim.ask(path, { method: "POST", body: { address: ADA }, headers: sent }))).toEqual([
              403,
              "cross_site_request"
            ])
        }
      const { account_id } = (yield* victim.current).json.data
      expect(yield* at.balance(account_id)).toMatchObject({ available: 200_000 })
    })
  )

  testing(
    "is refused without the session's own token where it changes something, and where it says not where it comes from",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const victim = yield* signedIn(at)
      const stranger = yield* signedIn(at, "eve@example.com")
      const wrong = [{}, { "x-csrf-token": "" }, { "x-csrf-token": "x" }, yield* stranger.csrf]
      for (const headers of wrong) {
        const post = victim.ask("/api/v1/grammar/check", { method: "POST", body: { text: "Some Text", language: "en" }, headers })
        expect(codeOf(yield* post)).toEqual([403, "cross_site_request"])
        const silent = { "sec-fetch-site": undefined, ...headers } as NonNullable<Call["headers"]>
        expect(codeOf(yield* victim.ask("/api/v1/bin/457173", { headers: silent }))).toEqual([403, "cross_site_request"])
      }
      const own = { "sec-fetch-site": undefined, ...(yield* victim.csrf) } as NonNullable<Call["headers"]>
      expect((yield* victim.ask("/api/v1/bin/457173", { headers: own })).status).toBe(200)
      // An older browser says only the origin
      const older = { ...own, origin: at.url }
      expect(
        (yield* victim.ask("/api/v1/grammar/check", { method: "POST", body: { text: "A", language: "en" }, headers: older })).status
      ).toBe(200)
    })
  )

  testing(
    "does not concern a request with a key, which no browser sends by itself",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const victim = yield* signedIn(at)
      const { accountId, bearer } = yield* at.account(50)
      const headers = { ...bearer, "sec-fetch-site": "cross-site" }
      expect((yield* victim.ask("/api/v1/bin/457173", { headers })).headers["x-credits-balance"]).toBe("49.5")
      expect(yield* at.balance(accountId)).toMatchObject({ available: 49_500 })
      // A wrong key is not made good by a session
      expect(codeOf(yield* victim.ask("/api/v1/bin/457173", { headers: { authorization: "Bearer x" } }))).toEqual([401, "unauthorized"])
    })
  )
})

describe("a guess at a session", () => {
  testing(
    "counts as a failed authentication of its client; a browser without a session may ask as often as it likes, and a session works on",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true, authFailures: 3 })
      const person = yield* signedIn(at)
      const nobody = browserAt(at)
      for (let i = 0; i < 10; i++) expect(codeOf(yield* nobody.current)).toEqual([401, "unauthorized"])
      const codes: Array<unknown> = []
      for (let i = 0; i < 5; i++) {
        nobody.jar.set(SESSION, `ses_01JD7X2M9G4YQ0V5Z8K3T6W1RB.${String(i).repeat(43)}`)
        codes.push(codeOf(yield* nobody.current)[1])
      }
      expect(codes).toEqual(["unauthorized", "unauthorized", "unauthorized", "rate_limited", "rate_limited"])
      expect((yield* person.current).status).toBe(200)
    })
  )
})

describe("two hosts", () => {
  testing(
    "share links and sessions, and see an end at once",
    Effect.gen(function* () {
      const events: Store.EventStore["Service"] = yield* MemoryEventStore.make
      const states = yield* MemoryStateStore.make
      const shared = {
        sessions: true,
        events: Layer.succeed(EventStore.EventStore, events),
        states: Layer.succeed(StateStore.StateStore, states)
      }
      const [here, there] = [yield* host(shared), yield* host(shared)]
      const browser = browserAt(here)
      yield* browser.askForLink()
      const same: Browser = browserAt(there)
      for (const [name, value] of browser.jar) same.jar.set(name, value)
      expect((yield* same.follow(tokenIn(here))).status).toBe(201)
      for (const [name, value] of same.jar) browser.jar.set(name, value)
      expect((yield* browser.current).status).toBe(200)
      yield* same.change("/api/v1/sessions", "DELETE")
      expect((yield* browser.current).status).toBe(401)
      const written = yield* Stream.runCollect(events.readAll(EventStore.start))
      expect(written.filter(({ type }) => type === "SessionEnded")).toHaveLength(1)
    })
  )
})

describe("the routes", () => {
  testing(
    "say which methods they take, and what is not there",
    Effect.gen(function* () {
      const at = yield* host({ sessions: true })
      const wrong = yield* browserAt(at).ask("/api/v1/signup")
      expect([...codeOf(wrong), wrong.headers["allow"]]).toEqual([405, "method_not_allowed", "POST"])
      expect(codeOf(yield* browserAt(at).ask("/api/v1/sessions/other/things"))).toEqual([404, "route_not_found"])
      const large = { method: "POST", body: { address: "a".repeat(10_000) } }
      expect((yield* browserAt(at).ask("/api/v1/signup", large)).status).toBe(413)
      const without = yield* host()
      expect((yield* browserAt(without).signUp()).status).toBe(404)
    })
  )
})
