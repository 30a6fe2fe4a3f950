/** What people do with links and sessions, each recorded as an act with its beginning and end. */
import { Sessions, SignIn } from "@millrace/core"
import { Effect, Exit, Option, Redacted } from "effect"
import type { SeededRandom } from "../../SeededRandom.ts"
import type { Host } from "../Host.ts"
import type { Services } from "../HostProcess.ts"
import { tagOf } from "../Records.ts"
import { pickHost, type Simulation } from "../Simulation.ts"
import { linkOf, type Mail } from "./Endpoints.ts"
import type { Asked, KnownSession } from "./People.ts"

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
/** A link and a session that was never used last so long: milliseconds. */
const LINK = 15 * MINUTE
const SESSION = 30 * DAY

const CLIENT = { userAgent: "Simulated", address: "192.0.2.1" }

type Answer<A> = {
  readonly exit: Exit.Exit<A, { readonly _tag: string }>
  readonly order: readonly [number, number]
  readonly time: readonly [number, number]
}

/** Asks a host, and notes when that began and ended. Undefined if the host is down. */
export const asking = <A, E extends { readonly _tag: string }>(
  { records: { people }, world }: Simulation,
  host: Host | undefined,
  what: string,
  effect: Effect.Effect<A, E, Services>
): Effect.Effect<Answer<A> | undefined> =>
  Effect.gen(function* () {
    if (host?.process === undefined) return undefined
    const [began, from] = [people.next(), world.now]
    const exit = yield* Effect.exit(host.request(effect))
    world.note("people", `${what} at ${host.name}: ${Exit.isSuccess(exit) ? "ok" : tagOf(exit)}`)
    return { exit, order: [began, people.next()], time: [from, world.now] } as const
  })

/** A service of a host that not every host has. */
const signing = Effect.map(Effect.serviceOption(SignIn), Option.getOrThrow)
const sessionsOf = Effect.map(Effect.serviceOption(Sessions), Option.getOrThrow)

const open = ({ records: { people } }: Simulation, session: KnownSession) => void people.sessions.push(session)

const newAsk = ({ records: { people }, world }: Simulation, address: string) => {
  const name = `b${people.asks.size}`
  const asked: Asked = { address, at: world.now }
  people.asks.set(name, asked)
  return { name, asked }
}

/** Signs up, at `host` or any. Returns the session, if it was answered. */
export const signUp = (simulation: Simulation, address: string, email: string, random: SeededRandom, host = pickHost(simulation, random)) =>
  Effect.gen(function* () {
    const { asked, name } = newAsk(simulation, address)
    const ask = { email, service: "Sim", linkOf: linkOf(name), current: undefined, client: CLIENT }
    const signed = yield* asking(
      simulation,
      host,
      `${name} signs up as ${address}`,
      Effect.flatMap(signing, (people) => people.signUp(ask))
    )
    if (signed === undefined || Exit.isFailure(signed.exit)) return undefined
    const { browser, sessionId: session, token } = signed.exit.value
    asked.browser = Redacted.value(browser)
    const known = yield* accountOf(simulation, host, Redacted.value(token))
    if (known === undefined) return undefined
    const opened: KnownSession = { session, account: known, token: Redacted.value(token), openedAt: signed.time[0] }
    const [began, ended] = signed.order
    simulation.records.people.acts.push({ _tag: "SignedUp", link: name, account: known, session, began, ended })
    open(simulation, opened)
    return { ...opened, asked: name }
  })

/** The account of a session that was opened a moment ago. */
const accountOf = (simulation: Simulation, host: Host | undefined, token: string) =>
  Effect.map(
    asking(
      simulation,
      host,
      "looks whose session it is",
      Effect.flatMap(sessionsOf, (sessions) => sessions.authenticate(token))
    ),
    (answer) => (answer !== undefined && Exit.isSuccess(answer.exit) ? answer.exit.value.accountId : undefined)
  )

/** Asks for a link. */
export const signIn = (simulation: Simulation, address: string, email: string, random: SeededRandom) =>
  Effect.gen(function* () {
    const { asked, name } = newAsk(simulation, address)
    const ask = { email, service: "Sim", linkOf: linkOf(name) }
    const host = pickHost(simulation, random)
    const answer = yield* asking(
      simulation,
      host,
      `${name} asks for a link to ${address}`,
      Effect.flatMap(signing, (people) => people.ask(ask))
    )
    if (answer !== undefined && Exit.isSuccess(answer.exit)) asked.browser = Redacted.value(answer.exit.value.browser)
  })

/** Follows a mail in a browser, which may have a session that the new one replaces. Returns the session, if it was admitted. */
export const follow = (
  simulation: Simulation,
  { asked, token }: Mail,
  browser: string,
  current: KnownSession | undefined,
  random: SeededRandom,
  host = pickHost(simulation, random)
) =>
  Effect.gen(function* () {
    const { faults, records } = simulation
    const { acts, asks } = records.people
    const { address = "", at = 0 } = asks.get(asked) ?? {}
    const given = { token, browser: asks.get(browser)?.browser, current: current?.token, client: CLIENT }
    const what = `${browser} follows the link of ${asked}`
    const answer = yield* asking(
      simulation,
      host,
      what,
      Effect.flatMap(signing, (people) => people.follow(given))
    )
    if (answer === undefined) return undefined
    const { exit, order, time } = answer
    const [began, ended] = order
    // The link was written some time after it was asked for
    const isInTime = time[1] + faults.skew < at + LINK ? true : "unclear"
    const { browser: right } = asks.get(asked) ?? {}
    const isRightBrowser = right !== undefined && given.browser === right
    const act = {
      ...({ _tag: "Followed", link: asked, address, isRightBrowser } as const),
      isInTime: lateOf(simulation, token, time[0]) ? false : isInTime,
      began,
      ended
    } as const
    const tag = Exit.isFailure(exit) ? tagOf(exit) : undefined
    if (Exit.isFailure(exit)) acts.push({ ...act, answer: tag === "SignInRefused" ? "refused" : "unknown" })
    const isUnclear = Exit.isFailure(exit) && tag !== "SignInRefused"
    if (current !== undefined && (Exit.isSuccess(exit) || isUnclear))
      acts.push({ _tag: "SignedOut", account: current.account, session: current.session, isSure: Exit.isSuccess(exit), began, ended })
    if (Exit.isFailure(exit)) return undefined
    const { accountId: account, sessionId: session, token: secret } = exit.value
    acts.push({ ...act, answer: "admitted", account, session })
    const opened: KnownSession = { session, account, token: Redacted.value(secret), openedAt: time[0] }
    open(simulation, opened)
    return opened
  })

/** Whether a link was surely past its time, by the log: 15 minutes after it was written. */
const lateOf = ({ records: { recorder } }: Simulation, token: string, from: number): boolean => {
  const written = recorder.links.of(token.split(".")[0] ?? "").events[0]
  return written !== undefined && from >= written.at + LINK
}

/** Comes with a session, at a host. Returns how it was answered. */
export const visit = (simulation: Simulation, known: KnownSession, random: SeededRandom, host = pickHost(simulation, random)) =>
  Effect.gen(function* () {
    const { account, openedAt, session, token } = known
    const answer = yield* asking(
      simulation,
      host,
      `${session} visits`,
      Effect.flatMap(sessionsOf, (sessions) => sessions.authenticate(token))
    )
    if (answer === undefined) return "unknown"
    const { exit, order, time } = answer
    const [began, ended] = order
    const told = Exit.isSuccess(exit) ? "in" : tagOf(exit) === "Unauthorized" ? "out" : "unknown"
    const isInTime =
      time[1] + simulation.faults.skew < openedAt + SESSION
        ? true
        : time[0] >= openedAt + 3 * SESSION + simulation.faults.skew + MINUTE
          ? false
          : "unclear"
    const shown = Exit.isSuccess(exit) ? exit.value.accountId : account
    simulation.records.people.acts.push({ _tag: "Called", session, account: shown, isInTime, answer: told, began, ended })
    return told
  })

/** Signs out of one session. */
export const signOut = (
  simulation: Simulation,
  { account, session }: KnownSession,
  random: SeededRandom,
  host = pickHost(simulation, random)
) =>
  ending(
    simulation,
    { account, session },
    host,
    Effect.flatMap(sessionsOf, (sessions) => sessions.end(account, session))
  )

/** Signs out of all sessions of an account. */
export const signOutEverywhere = (simulation: Simulation, account: string, random: SeededRandom, host = pickHost(simulation, random)) =>
  ending(
    simulation,
    { account },
    host,
    Effect.flatMap(sessionsOf, (sessions) => sessions.endAll(account))
  )

const ending = <A, E extends { readonly _tag: string }>(
  simulation: Simulation,
  what: { readonly account: string; readonly session?: string },
  host: Host | undefined,
  effect: Effect.Effect<A, E>
) =>
  Effect.gen(function* () {
    const answer = yield* asking(simulation, host, `${what.session ?? what.account} signs out`, effect)
    if (answer === undefined) return
    const [began, ended] = answer.order
    // One that is not found has ended already
    const isSure = Exit.isSuccess(answer.exit) || tagOf(answer.exit) === "SessionNotFound"
    simulation.records.people.acts.push({ _tag: "SignedOut", ...what, isSure, began, ended })
  })
