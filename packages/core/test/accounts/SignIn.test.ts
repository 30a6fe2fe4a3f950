/** Signing up and in by mailed links, over several processes. */
import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import * as FaultyEventStore from "../../../testing/src/FaultyEventStore.ts"
import type { SignInLink } from "../../src/accounts/SignInLink.ts"
import * as Credits from "../../src/Credits.ts"
import * as Decisions from "../../src/ledger/Decisions.ts"
import { outcome } from "../vault/Vaults.ts"
import { host, logText, type Stores, stores, testing, typesIn } from "./Hosts.ts"

const ADA = "ada@example.com"
const all = { concurrency: "unbounded" } as const
const client = { userAgent: "Firefox on a canary", address: "192.0.2.7" }
const ask = (email: string) => ({ email, service: "Millrace", linkOf: (token: string) => `https://api.example.com/sign-in#${token}` })

type Process = Effect.Success<ReturnType<typeof host>>

/** The token of the last mail that a process sent. */
const tokenIn = ({ mails }: Process): string => /#(?<token>\S+)/u.exec(mails.at(-1)?.text ?? "")?.groups?.["token"] ?? ""

/** Asks for a link at one process, and returns what following it takes. */
const mailed = (at: Process, email: string = ADA) =>
  Effect.map(at.signIn.ask(ask(email)), ({ browser }) => ({
    token: tokenIn(at),
    browser: Redacted.value(browser),
    current: undefined,
    client
  }))

const reason = (effect: Effect.Effect<unknown, unknown>) =>
  Effect.map(Effect.flip(effect), (error) => (error as { reason?: SignInLink }).reason)

/** What a process does that lives for a moment, so that time can pass without it. With `upkeep`, what is due is done before. */
const during = <A, E>(shared: Stores, act: (here: Process) => Effect.Effect<A, E>, upkeep = false) =>
  Effect.scoped(
    Effect.gen(function* () {
      const here = yield* host(shared, { upkeep })
      if (upkeep) yield* TestClock.adjust("10 seconds")
      return yield* act(here)
    })
  )

const signedUp = (at: Process, email: string = ADA, current?: string) =>
  Effect.map(at.signIn.signUp({ ...ask(email), current, client }), ({ browser, sessionId, token: session }) => ({
    sessionId,
    session: Redacted.value(session),
    follow: { token: tokenIn(at), browser: Redacted.value(browser), current: Redacted.value(session), client }
  }))

describe("a link", () => {
  testing(
    "signs in once, in the browser that asked, at any process, and verifies the account of a new address",
    Effect.gen(function* () {
      const shared = yield* stores
      const [here, there] = [yield* host(shared), yield* host(shared)]
      const follow = yield* mailed(here, " Ada@Example.com ")
      expect(here.mails[0]).toMatchObject({ to: ADA })
      expect(yield* reason(there.signIn.follow({ ...follow, browser: undefined }))).toBe("browser")
      expect(yield* reason(there.signIn.follow({ ...follow, browser: "another" }))).toBe("browser")
      const { accountId, token } = yield* there.signIn.follow(follow)
      expect(yield* here.ledger.balance(accountId)).toMatchObject({ status: "verified", available: 200_000 })
      expect(yield* here.registration.find(ADA)).toBe(accountId)
      expect(yield* here.registration.email(accountId)).toBe(ADA)
      expect(yield* here.sessions.authenticate(Redacted.value(token))).toMatchObject({ accountId, proof: "mailLink" })
      for (const at of [here, there]) expect(yield* reason(at.signIn.follow(follow))).toBe("used")
    })
  )

  testing(
    "is refused after 15 minutes, and where its text was changed",
    Effect.gen(function* () {
      const here = yield* host(yield* stores)
      const follow = yield* mailed(here)
      for (const token of [
        "",
        "x",
        follow.token.slice(1),
        `${follow.token}x`,
        follow.token.replace(/.$/u, (last) => (last === "A" ? "B" : "A"))
      ])
        expect(yield* reason(here.signIn.follow({ ...follow, token }))).toBe("unknown")
      yield* TestClock.adjust("15 minutes")
      expect(yield* reason(here.signIn.follow(follow))).toBe("expired")
    })
  )

  testing(
    "that 64 follow at once in two processes signs one in",
    Effect.gen(function* () {
      const shared = yield* stores
      const hosts = [yield* host(shared), yield* host(shared)] as const
      const follow = yield* mailed(hosts[0])
      const followed = yield* Effect.forEach(
        Array.from({ length: 64 }),
        (_, i) => outcome(hosts[i % 2 === 0 ? 0 : 1].signIn.follow(follow)),
        all
      )
      expect(followed.filter((each) => each === "SignInRefused")).toHaveLength(63)
      expect((yield* typesIn(shared)).filter((type) => type === "SessionOpened")).toHaveLength(1)
    })
  )

  testing(
    "grants the sign-up credits once for an address, however it is spelt, and however many links are followed",
    Effect.gen(function* () {
      const shared = yield* stores
      const here = yield* host(shared)
      const accounts = new Set<string>()
      for (const spelling of [ADA, "ADA@EXAMPLE.COM", " Ada@Example.Com"]) {
        accounts.add((yield* here.signIn.follow(yield* mailed(here, spelling))).accountId)
        accounts.add((yield* here.signIn.follow((yield* signedUp(here, spelling)).follow)).accountId)
      }
      expect(accounts.size).toBe(1)
      expect((yield* typesIn(shared)).filter((type) => type === "CreditsGranted")).toHaveLength(1)
    })
  )

  testing(
    "to the address of a closed account is refused, and changes nothing",
    Effect.gen(function* () {
      const here = yield* host(yield* stores)
      const accountId = yield* here.registration.open(ADA)
      yield* here.registration.erase(accountId)
      expect(yield* reason(here.signIn.follow(yield* mailed(here)))).toBe("closed")
      expect(yield* here.sessions.list(accountId)).toEqual([])
    })
  )

  testing(
    "is completed by another one where its process stopped at any append",
    Effect.gen(function* () {
      // Its appends: the link, the claim, the account, its verification, the session
      for (const failing of [1, 2, 3, 4, 5]) {
        const shared = yield* stores
        const here = yield* host(shared)
        const follow = yield* mailed(here)
        const faulty = FaultyEventStore.make(shared.events, { plan: { appends: { [failing]: "before" } } })
        const stopped = yield* host({ ...shared, events: faulty })
        expect(yield* outcome(stopped.signIn.follow(follow))).toBe("StoreUnavailable")
        const { accountId } = yield* here.signIn.follow(yield* mailed(here))
        expect(yield* here.ledger.balance(accountId)).toMatchObject({ status: "verified", available: 200_000 })
        expect((yield* typesIn(shared)).filter((type) => type === "CreditsGranted")).toHaveLength(1)
      }
    })
  )
})

describe("a sign-up", () => {
  testing(
    "signs in at once, unverified; its link verifies the same account, and gives the browser a new session",
    Effect.gen(function* () {
      const shared = yield* stores
      const here = yield* host(shared)
      const { follow, session, sessionId } = yield* signedUp(here)
      const { accountId } = yield* here.sessions.authenticate(session)
      expect(yield* here.ledger.balance(accountId)).toMatchObject({ status: "opened", available: 0 })
      expect(yield* here.registration.find(ADA)).toBeUndefined()
      const opened = yield* here.signIn.follow(follow)
      expect(opened.accountId).toBe(accountId)
      expect(opened.sessionId).not.toBe(sessionId)
      expect(yield* here.ledger.balance(accountId)).toMatchObject({ status: "verified", available: 200_000 })
      // The session from before the proof is over: nobody who knew it is signed in
      expect(yield* outcome(here.sessions.authenticate(session))).toBe("Unauthorized")
      expect((yield* here.sessions.list(accountId)).map(({ sessionId }) => sessionId)).toEqual([opened.sessionId])
    })
  )

  testing(
    "with a known address does the same, mails the same, and writes the same kinds of events; its link signs in to the account that was there",
    Effect.gen(function* () {
      const shared = yield* stores
      const here = yield* host(shared)
      const known = yield* here.registration.open(ADA)
      yield* here.registration.verify(known)
      const traces: Array<unknown> = []
      for (const email of [ADA, "new@example.com"]) {
        const before = (yield* typesIn(shared)).length
        yield* signedUp(here, email)
        const types = (yield* typesIn(shared)).slice(before)
        const { subject, text } = here.mails.at(-1) ?? { subject: "", text: "" }
        traces.push({ types, subject, text: text.replace(/#\S+/u, "#") })
      }
      expect(traces[0]).toEqual(traces[1])
      const { follow, session } = yield* signedUp(here)
      const { accountId: provisional } = yield* here.sessions.authenticate(session)
      expect(provisional).not.toBe(known)
      expect((yield* here.signIn.follow(follow)).accountId).toBe(known)
      // The provisional account is closed, and what it kept of the address is gone
      expect(yield* here.ledger.balance(provisional)).toMatchObject({ status: "closed" })
      expect(yield* outcome(here.registration.email(provisional))).toBe("SubjectDestroyed")
    })
  )

  testing(
    "whose account got credits meanwhile leaves it open",
    Effect.gen(function* () {
      const here = yield* host(yield* stores)
      yield* here.registration.open(ADA)
      const { follow, session } = yield* signedUp(here)
      const { accountId } = yield* here.sessions.authenticate(session)
      yield* here.ledger.execute(accountId, Decisions.grant({ lotId: "lot_1", amount: Credits.of(1_000), source: "promotion" }))
      expect((yield* here.signIn.follow(follow)).accountId).not.toBe(accountId)
      expect(yield* here.ledger.balance(accountId)).toMatchObject({ status: "opened", available: 1_000 })
    })
  )

  testing(
    "that two browsers confirm at once gives both the same account",
    Effect.gen(function* () {
      const shared = yield* stores
      const [here, there] = [yield* host(shared), yield* host(shared)]
      const [one, two] = [yield* signedUp(here), yield* signedUp(there)]
      const [first, second] = yield* Effect.all([here.signIn.follow(one.follow), there.signIn.follow(two.follow)], all)
      expect(first.accountId).toBe(second.accountId)
      expect((yield* typesIn(shared)).filter((type) => type === "CreditsGranted")).toHaveLength(1)
    })
  )

  testing(
    "that nobody confirms is erased when its session is over for good",
    Effect.gen(function* () {
      const shared = yield* stores
      const [left, kept] = yield* during(shared, (here) =>
        Effect.gen(function* () {
          const { session } = yield* signedUp(here)
          const { accountId } = yield* here.sessions.authenticate(session)
          return [accountId, (yield* here.signIn.follow((yield* signedUp(here, "kept@example.com")).follow)).accountId] as const
        })
      )
      yield* TestClock.adjust("89 days")
      yield* during(
        shared,
        (here) => Effect.map(here.ledger.balance(left), (balance) => expect(balance).toMatchObject({ status: "opened" })),
        true
      )
      yield* TestClock.adjust("1 day")
      yield* during(
        shared,
        Effect.fnUntraced(function* (here) {
          expect(yield* here.ledger.balance(left)).toMatchObject({ status: "closed" })
          expect(yield* outcome(here.registration.email(left))).toBe("SubjectDestroyed")
          expect(yield* here.ledger.balance(kept)).toMatchObject({ status: "verified" })
        }),
        true
      )
      // Of each sign-up's session, and of the one that followed
      expect((yield* typesIn(shared)).filter((type) => type === "SessionEnded")).toHaveLength(3)
    })
  )

  testing(
    "writes neither an address, nor a browser, nor a secret in clear",
    Effect.gen(function* () {
      const shared = yield* stores
      const here = yield* host(shared)
      const { follow, session } = yield* signedUp(here, "canary@secret.example")
      yield* here.signIn.follow(follow)
      const log = yield* logText(shared)
      for (const secret of [
        "canary",
        "secret.example",
        client.address,
        ...[session, follow.token].map((text) => text.split(".")[1] ?? ""),
        follow.browser
      ])
        expect(log).not.toContain(secret)
    })
  )
})

describe("sessions", () => {
  testing(
    "are listed with their browsers, end at every process at once, one or all, and never by another account",
    Effect.gen(function* () {
      const shared = yield* stores
      const [here, there] = [yield* host(shared), yield* host(shared)]
      const accountId = yield* here.registration.open(ADA)
      const other = yield* here.registration.open("bob@example.com")
      const open = (id: string) => here.sessions.open({ accountId: id, proof: "passkey", proofId: null, client, current: undefined })
      const [first, second, third, foreign] = [yield* open(accountId), yield* open(accountId), yield* open(accountId), yield* open(other)]
      const listed = yield* there.sessions.list(accountId)
      expect(listed.map(({ sessionId }) => sessionId)).toEqual([first, second, third].map(({ sessionId }) => sessionId))
      expect(listed[0]).toMatchObject({ client, proof: "passkey" })
      expect(yield* outcome(there.sessions.end(other, first.sessionId))).toBe("SessionNotFound")
      yield* there.sessions.end(accountId, first.sessionId)
      expect(yield* outcome(there.sessions.end(accountId, first.sessionId))).toBe("SessionNotFound")
      for (const { sessions } of [here, there])
        expect(yield* outcome(sessions.authenticate(Redacted.value(first.token)))).toBe("Unauthorized")
      expect(yield* there.sessions.endAll(accountId)).toBe(2)
      for (const { token } of [second, third])
        expect(yield* outcome(here.sessions.authenticate(Redacted.value(token)))).toBe("Unauthorized")
      expect(yield* here.sessions.authenticate(Redacted.value(foreign.token))).toMatchObject({ accountId: other })
    })
  )

  testing(
    "end with their account, and its browsers are unreadable after the erasure",
    Effect.gen(function* () {
      const here = yield* host(yield* stores)
      const accountId = yield* here.registration.open(ADA)
      const opening = { accountId, proof: "passkey", proofId: null, client, current: undefined } as const
      const { token } = yield* here.sessions.open(opening)
      yield* here.registration.erase(accountId)
      expect(yield* outcome(here.sessions.authenticate(Redacted.value(token)))).toBe("Unauthorized")
      expect(yield* here.sessions.list(accountId)).toMatchObject([{ client: { userAgent: null, address: null } }])
      expect(yield* outcome(here.sessions.open(opening))).toBe("AccountClosed")
    })
  )

  testing(
    "that are used live on to 90 days, and their ends are written when they are due",
    Effect.gen(function* () {
      const shared = yield* stores
      const { accountId, sessionId, token } = yield* during(
        shared,
        Effect.fnUntraced(function* ({ registration, sessions }) {
          const accountId = yield* registration.open(ADA)
          return { accountId, ...(yield* sessions.open({ accountId, proof: "mailLink", proofId: null, client, current: undefined })) }
        })
      )
      const use = (here: Process) => outcome(here.sessions.authenticate(Redacted.value(token)))
      for (const _ of [1, 2, 3]) {
        yield* TestClock.adjust("29 days")
        expect(yield* during(shared, use)).toMatchObject({ sessionId })
      }
      yield* TestClock.adjust("3 days")
      expect(yield* during(shared, use, true)).toBe("Unauthorized")
      expect(yield* typesIn(shared, `session-${sessionId}`)).toEqual([
        "SessionOpened",
        "SessionUsed",
        "SessionUsed",
        "SessionUsed",
        "SessionEnded"
      ])
      expect(yield* during(shared, ({ sessions }) => sessions.list(accountId))).toEqual([])
    })
  )
})
