/**
 * Random histories of people who sign up, open links twice, late and in another browser, sign out everywhere, and use sessions, at two
 * processes whose store fails now and then. And mistakes in such histories, which the checker finds.
 */
import { EventStore } from "@millrace/event-sourcing"
import { Clock, Effect, Exit, Fiber, Redacted, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import * as FaultyEventStore from "../../../testing/src/FaultyEventStore.ts"
import { invariants, type Recorded } from "../../../testing/src/Invariants.ts"
import * as SeededRandom from "../../../testing/src/SeededRandom.ts"
import { type Act, type Called, type Followed, mistakesIn, type SignedOut, type SignedUp } from "../../../testing/src/SignInHistory.ts"
import { Session } from "../../src/accounts/Session.ts"
import { SignInLink } from "../../src/accounts/SignInLink.ts"
import { Account } from "../../src/ledger/Account.ts"
import { host, type Stores, stores, testing } from "./Hosts.ts"

const ADDRESSES = ["ada@example.com", "bob@example.com", "eve@example.com"] as const
const RATES = { before: 0.02, after: 0.02, lost: 0.02 }
const LIFETIME = 15 * 60_000
const client = { userAgent: "Firefox", address: "192.0.2.7" }

/** Runs an act while time goes on, since a store that fails is asked again after a pause. */
const settle = Effect.fnUntraced(function* <A, E>(act: Effect.Effect<A, E>) {
  const fiber = yield* Effect.forkChild(Effect.exit(act))
  while (fiber.pollUnsafe() === undefined) {
    yield* TestClock.adjust("50 millis")
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  }
  const exit = yield* Fiber.join(fiber)
  // A fault of the store is an error that a caller can act on, never a defect
  return Exit.hasDies(exit) ? yield* Effect.die(new Error(`A defect: ${exit}`)) : exit
})

const tagOf = (exit: Exit.Exit<unknown, unknown>): string | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  const error = Exit.findErrorOption(exit)
  return error._tag === "Some" ? (error.value as { readonly _tag: string })._tag : "defect"
}

interface Link {
  readonly token: string
  readonly address: string
  readonly browser: string
  readonly askedAt: number
}

/** The history of one seed, and what the log then says. */
const live = Effect.fnUntraced(function* (seed: number, shared: Stores, acts: number) {
  const random = SeededRandom.make(seed)
  const processOf = (name: string) =>
    host({ ...shared, events: FaultyEventStore.make(shared.events, { rates: RATES, random: random.fork(name) }) })
  const processes = [yield* processOf("here"), yield* processOf("there")] as const
  const links: Array<Link> = []
  const sessions = new Map<string, { readonly token: string; readonly account: string }>()
  const history: Array<Act> = []

  const ask = Effect.fnUntraced(function* () {
    const at = random.pick(processes)
    const address = random.pick(ADDRESSES)
    const asked = {
      email: random.chance(0.3) ? ` ${address.toUpperCase()}` : address,
      service: "Sim",
      linkOf: (token: string) => `#${token}`
    }
    const exit = yield* settle(
      random.chance(0.5)
        ? Effect.map(at.signIn.signUp({ ...asked, current: undefined, client }), ({ browser }) => browser)
        : Effect.map(at.signIn.ask(asked), ({ browser }) => browser)
    )
    const token = /#(?<token>\S+)/u.exec(at.mails.at(-1)?.text ?? "")?.groups?.["token"]
    if (Exit.isSuccess(exit) && token !== undefined)
      links.push({ token, address, browser: Redacted.value(exit.value), askedAt: yield* Clock.currentTimeMillis })
  })

  const follow = Effect.fnUntraced(function* () {
    // Mostly one of the newest, so that links are followed again before they expire
    const link = links.at(-1 - random.below(random.chance(0.8) ? 3 : Math.max(1, links.length)))
    if (link === undefined) return
    const other = links[random.below(links.length)]
    const browser = random.chance(0.2) ? (other?.browser ?? "") : link.browser
    const startedAt = yield* Clock.currentTimeMillis
    const given = { token: link.token, browser, current: undefined, client }
    const exit = yield* settle(random.pick(processes).signIn.follow(given))
    const endedAt = yield* Clock.currentTimeMillis
    const act = {
      ...({ _tag: "Followed", link: link.token, address: link.address, isRightBrowser: browser === link.browser } as const),
      isInTime: endedAt < link.askedAt + LIFETIME - 60_000 ? true : startedAt >= link.askedAt + LIFETIME ? false : "unclear"
    } as const
    if (Exit.isSuccess(exit)) {
      const { accountId: account, sessionId: session, token } = exit.value
      sessions.set(session, { token: Redacted.value(token), account })
      history.push({ ...act, answer: "admitted", account, session })
    } else history.push({ ...act, answer: tagOf(exit) === "SignInRefused" ? "refused" : "unknown" })
  })

  const signOut = Effect.fnUntraced(function* () {
    const accounts = [...new Set([...sessions.values()].map(({ account }) => account))]
    const account = accounts[random.below(Math.max(1, accounts.length))]
    if (account === undefined) return
    const exit = yield* settle(random.pick(processes).sessions.endAll(account))
    history.push({ _tag: "SignedOut", account, isSure: Exit.isSuccess(exit) })
  })

  const call = Effect.fnUntraced(function* () {
    const [session, given] = [...sessions][random.below(Math.max(1, sessions.size))] ?? []
    if (session === undefined || given === undefined) return
    const exit = yield* settle(random.pick(processes).sessions.authenticate(given.token))
    const answer = Exit.isSuccess(exit) ? "in" : tagOf(exit) === "Unauthorized" ? "out" : "unknown"
    history.push({ _tag: "Called", session, account: given.account, answer })
  })

  for (let i = 0; i < acts; i++) {
    const drawn = random.below(100)
    yield* drawn < 25 ? ask() : drawn < 60 ? follow() : drawn < 90 ? call() : drawn < 97 ? signOut() : TestClock.adjust("16 minutes")
  }
  return history
})

/** The events of accounts, sessions and links. */
const recordedIn = ({ events }: Stores) =>
  Effect.map(Stream.runCollect(events.readAll(EventStore.start)), (log) =>
    log.flatMap(({ data, metadata, revision, stream, type }): ReadonlyArray<Recorded> => {
      const decider = [Account, Session, SignInLink].find(({ category }) => stream.startsWith(`${category}-`))
      if (decider === undefined) return []
      const { at } = JSON.parse(metadata) as { readonly at: string }
      return [{ stream, revision, event: decider.codec.decode(type, data) as Recorded["event"], at: Date.parse(at) }]
    })
  )

describe("histories of people who sign in", () => {
  const met = new Set<string>()

  for (let seed = 1; seed <= 12; seed++)
    testing(
      `have no mistake, with seed ${seed}`,
      Effect.gen(function* () {
        const shared = yield* stores
        const history = yield* live(seed, shared, 120)
        expect(mistakesIn(history)).toEqual([])
        for (const act of history)
          met.add("answer" in act ? `${act._tag} ${act.answer}` : "isSure" in act ? `${act._tag} ${act.isSure}` : act._tag)
        const log = yield* recordedIn(shared)
        expect(invariants(log)).toEqual([])
        // An address gets its sign-up credits once, whatever failed in between
        const granted = log.flatMap(({ event, stream }) => (event._tag === "CreditsGranted" ? [stream] : []))
        const admitted = new Set(
          history.flatMap((act) => (act._tag === "Followed" && act.answer === "admitted" ? [`account-${act.account}`] : []))
        )
        expect(new Set(granted).size).toBe(granted.length)
        expect(granted.length).toBeLessThanOrEqual(ADDRESSES.length)
        for (const account of admitted) expect(granted).toContain(account)
      })
    )

  test("meet everything that can happen", () => {
    for (const what of ["Called in", "Called out", "Followed admitted", "Followed refused", "Followed unknown", "SignedOut true"])
      expect([...met]).toContain(what)
  })
})

describe("the checker of histories", () => {
  const admitted: Followed = {
    ...{ _tag: "Followed", link: "l1", address: "ada", isRightBrowser: true, isInTime: true },
    ...{ answer: "admitted", account: "acc_1", session: "s1" }
  }
  const refused: Followed = { _tag: "Followed", link: "l1", address: "ada", isRightBrowser: true, isInTime: true, answer: "refused" }
  const unknown: Followed = { ...refused, answer: "unknown" }
  const out: SignedOut = { _tag: "SignedOut", account: "acc_1", isSure: true }
  const called = (answer: Called["answer"]): Called => ({ _tag: "Called", session: "s1", account: "acc_1", answer })

  test("says nothing of what is right", () => {
    expect(mistakesIn([admitted, called("in"), refused, out, called("out")])).toEqual([])
    // After a fault, a link may be used up or not, and sessions may have ended or not
    expect(mistakesIn([unknown, refused])).toEqual([])
    expect(mistakesIn([unknown, admitted, { ...out, isSure: false }, called("in"), called("out")])).toEqual([])
    expect(mistakesIn([{ ...refused, isRightBrowser: false }, { ...refused, isInTime: "unclear" }, admitted])).toEqual([])
  })

  test("says nothing of what goes on at once", () => {
    const at = (began: number, ended: number) => ({ began, ended })
    // Two follow the link at once, and one of them is admitted
    expect(
      mistakesIn([
        { ...admitted, ...at(0, 4) },
        { ...refused, ...at(1, 2) }
      ])
    ).toEqual([])
    expect(
      mistakesIn([
        { ...admitted, ...at(0, 1) },
        { ...out, ...at(2, 5) },
        { ...called("in"), ...at(3, 4) },
        { ...called("out"), ...at(3, 6) }
      ])
    ).toEqual([])
  })

  const session: SignedUp = { _tag: "SignedUp", link: "l1", account: "acc_1", session: "s1" }

  test("lets the account of a sign-up end for that which its address has", () => {
    expect(mistakesIn([session, called("in"), { ...admitted, account: "acc_2", session: "s2" }, called("out")])).toEqual([])
    expect(mistakesIn([session, { ...admitted, session: "s2" }, called("out")])).toEqual(["s1 was refused, and had not ended"])
  })

  test.each<[string, ReadonlyArray<Act>, string]>([
    ["a session that its owner ended", [admitted, { ...out, session: "s1" }, called("in")], "s1 was used after its end"],
    ["another session that ends with it", [admitted, { ...out, session: "s2" }, called("out")], "s1 was refused, and had not ended"],
    ["a session after its time", [admitted, { ...called("in"), isInTime: false }], "s1 was used after its time"],
    ["a link that admits twice", [admitted, { ...admitted, session: "s2" }], "l1 admitted twice"],
    ["a link that admits another browser", [{ ...admitted, isRightBrowser: false }], "l1 admitted another browser"],
    ["a link that admits late", [{ ...admitted, isInTime: false }], "l1 admitted after its time"],
    ["a good link that is refused", [refused], "l1 was refused, and was good"],
    ["a second account", [admitted, { ...admitted, link: "l2", account: "acc_2" }], "ada has two accounts"],
    ["a session after signing out everywhere", [admitted, out, called("in")], "s1 was used after its end"],
    ["a session that ends by itself", [admitted, called("out")], "s1 was refused, and had not ended"]
  ])("finds %s", (_, acts, mistake) => expect(mistakesIn(acts)).toEqual([mistake]))
})
