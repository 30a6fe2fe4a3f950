/**
 * People who sign up and sign in by links that are late, lost, used twice, or by another browser; who call, also on trial, sign out, and
 * issue, rotate and revoke their keys.
 */
import { Effect } from "effect"
import type { SeededRandom } from "../../SeededRandom.ts"
import { isAnyCallWaiting, skip } from "../Leaps.ts"
import { pickAny, type Simulation } from "../Simulation.ts"
import type { Mail } from "./Endpoints.ts"
import * as Keys from "./Keys.ts"
import type { KnownSession } from "./People.ts"
import * as Visits from "./Visits.ts"

const MINUTE = 60_000

/** How many people there are. */
const PEOPLE = 8

/** Does one thing. */
export const act = (simulation: Simulation, random: SeededRandom): Effect.Effect<unknown> =>
  Effect.suspend((): Effect.Effect<unknown> => {
    const choice = random.below(20)
    const { people } = simulation.records
    const session = pickAny(random, random.chance(0.7) ? people.sessions.slice(-4) : people.sessions)
    if (choice < 4) return ask(simulation, random)
    if (choice < 9) return follow(simulation, random)
    if (session === undefined) return ask(simulation, random)
    if (choice < 13) return visit(simulation, session, random)
    if (choice < 14) return Visits.signOut(simulation, session, random)
    if (choice < 15) return Visits.signOutEverywhere(simulation, session.account, random)
    if (choice < 19) return useKeys(simulation, session.account, random)
    return Effect.sync(() => {
      if (!isAnyCallWaiting(simulation)) skip(simulation, random.pick([14 * MINUTE, 16 * MINUTE, 26 * 60 * MINUTE]))
    })
  })

const ask = (simulation: Simulation, random: SeededRandom) => {
  const { people } = simulation.records
  const known = [...people.asks.values()].slice(-3)
  // Often one that asked a moment ago, and nobody has proved yet
  const address = (random.chance(0.6) ? pickAny(random, known)?.address : undefined) ?? `person${random.below(PEOPLE)}@people.example`
  const spelt = random.chance(0.3) ? ` ${address.toUpperCase()} ` : address
  return random.chance(0.6) ? Visits.signUp(simulation, address, spelt, random) : Visits.signIn(simulation, address, spelt, random)
}

/** Follows a mail, mostly one of the newest; sometimes twice at once, or in another browser. */
const follow = (simulation: Simulation, random: SeededRandom): Effect.Effect<unknown> => {
  const { mails } = simulation.relay
  const mail = pickAny(random, random.chance(0.8) ? mails.slice(-3) : mails)
  if (mail === undefined) return ask(simulation, random)
  const { asks } = simulation.records.people
  const other = pickAny(random, [...asks.keys()])
  const browser = random.chance(0.15) && other !== undefined ? other : mail.asked
  const current = random.chance(0.3) ? pickAny(random, simulation.records.people.sessions) : undefined
  // Twice at once, or two mails of one address
  const address = asks.get(mail.asked)?.address
  const second = mails.findLast(({ asked }) => asked !== mail.asked && asks.get(asked)?.address === address)
  const twin = random.chance(0.25) ? [mail] : second !== undefined && random.chance(0.3) ? [second] : []
  const once = (followed: Mail, i: number) =>
    Effect.gen(function* () {
      const own = random.fork(`${i}`)
      const session = yield* Visits.follow(simulation, followed, followed === mail ? browser : followed.asked, current, own)
      // At once, at another host perhaps, which may not have heard of the session
      if (session === undefined || !own.chance(0.3)) return
      yield* Visits.signOutEverywhere(simulation, session.account, own)
      yield* Visits.visit(simulation, session, own)
    })
  return Effect.forEach([mail, ...twin], once, { concurrency: "unbounded", discard: true })
}

/** Comes with a session and, where it is let in, calls an operation. */
const visit = (simulation: Simulation, session: KnownSession, random: SeededRandom) =>
  Effect.gen(function* () {
    if ((yield* Visits.visit(simulation, session, random)) !== "in") return
    const { input: draw, operation } = random.pick(simulation.workload.offers)
    yield* Keys.callAs(simulation, session.account, operation.key, draw(random, []), random)
  })

const SECONDS = [0, 30, 3_600] as const

/** Issues a key, comes with one, rotates one with an overlap, or revokes one. */
const useKeys = (simulation: Simulation, accountId: string, random: SeededRandom): Effect.Effect<unknown> => {
  const { keys } = simulation.records.people
  const own = [...keys.values()].filter((key) => key.account === accountId)
  const key = pickAny(random, random.chance(0.5) ? [...keys.values()].slice(-3) : own)
  const choice = random.below(10)
  if (key === undefined || choice < 3) {
    const lasts = random.pick([undefined, 40_000, 600_000])
    return Keys.issueKey(simulation, accountId, lasts, random)
  }
  if (choice < 8) return Keys.comeWithKey(simulation, key, random)
  if (choice < 9) return Keys.rotateKey(simulation, key, random.pick(SECONDS), random)
  return Keys.revokeKey(simulation, key, random, random.chance(0.7) ? key.account : accountId)
}
