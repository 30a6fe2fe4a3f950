/**
 * The final phase of proxy sessions: faults have ended, so every host lists the nodes that serve, opens sessions, and admits those of others
 * until their end. The end of each is in the log soon.
 */
import { ProxyNodes } from "@millrace/core"
import { Effect, Exit } from "effect"
import type { SeededRandom } from "../../SeededRandom.ts"
import { call, requestOf } from "../Callers.ts"
import type { Host } from "../Host.ts"
import { dataOf, tagOf } from "../Records.ts"
import { nonEmpty, type Simulation } from "../Simulation.ts"
import { admit, count, doorsOf, type KnownSession, knownSessions, OPEN, send } from "./Actor.ts"

/** The longest time from an expiry until it is in the log, where nothing hinders the hosts: milliseconds. */
const WRITTEN_WITHIN = 150_000

/** An earlier check may have skipped time, so that all entries of nodes have ended. Each node renews its entry within this time: milliseconds. */
const ANNOUNCED_WITHIN = 15_000

export const settle = (simulation: Simulation, random: SeededRandom): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (simulation.proxies === 0) return
    const { accounts, hosts, records } = simulation
    yield* Effect.sleep(ANNOUNCED_WITHIN)
    for (const host of hosts) yield* checkNodes(simulation, host)
    for (const session of knownSessions(records).slice(-5)) yield* tryEverywhere(simulation, [session])
    for (const accountId of accounts) yield* live(simulation, accountId, random.fork(accountId))
  })

/** A host lists the nodes of the hosts that are up, and no other. */
const checkNodes = ({ hosts, records, report }: Simulation, host: Host) =>
  Effect.gen(function* () {
    const exit = yield* Effect.exit(host.request(Effect.flatMap(ProxyNodes, ({ list }) => list)))
    if (Exit.isFailure(exit)) return report(`${host.name} cannot list the proxy nodes: ${tagOf(exit)}`)
    const listed = new Set(exit.value.map((node) => node.host))
    for (const { process } of hosts) {
      const name = [...records.nodes].find(([, known]) => known.process === process)?.[0]
      if (name === undefined || !listed.delete(name)) report(`${host.name} does not list the node of ${process?.name}`)
    }
    for (const name of listed) report(`${host.name} lists ${name}, which does not serve`)
  })

/** Asks every host. Each must answer; the checkers judge what. */
const tryEverywhere = (simulation: Simulation, doors: ReadonlyArray<KnownSession>) =>
  Effect.gen(function* () {
    for (const host of simulation.hosts)
      for (const credentials of doors) {
        const told = (yield* admit(simulation, host, credentials))?.answer?.told
        if (told !== "admitted" && told !== "refused") simulation.report(`${host.name} cannot say whether it admits a client: ${told}`)
      }
  })

/** Opens a session at any host. An account that may not spend has none. */
const open = (simulation: Simulation, accountId: string, random: SeededRandom) =>
  Effect.gen(function* () {
    const request = requestOf(OPEN, {})
    const intent = { accountId, operation: OPEN, input: {}, request }
    const opened = yield* call(simulation, random.pick(nonEmpty(simulation.hosts)), intent, random)
    return opened && dataOf(opened)
  })

/** A whole life of a session that is used up, and of one that expires. */
const live = (simulation: Simulation, accountId: string, random: SeededRandom) =>
  Effect.gen(function* () {
    const used = yield* open(simulation, accountId, random)
    if (used === undefined) return
    const known: KnownSession = { sessionId: used.session_id, password: used.password }
    yield* tryEverywhere(simulation, doorsOf(simulation, known, random))
    yield* useUp(simulation, known, random)
    const expiring = yield* open(simulation, accountId, random)
    if (expiring === undefined) return
    yield* expire(simulation, { sessionId: expiring.session_id, password: expiring.password }, Date.parse(expiring.expires_at))
  })

/** All but one of its bytes leave it open, the last one ends it, at whatever nodes they are carried. */
const useUp = (simulation: Simulation, known: KnownSession, random: SeededRandom) =>
  Effect.gen(function* () {
    const { hosts, report, sessionTerms } = simulation
    const carry = (bytes: number) =>
      Effect.gen(function* () {
        const host = random.pick(nonEmpty(hosts))
        const sent = random.below(bytes)
        const traffic = yield* send(simulation, host, known.sessionId, { sent, received: bytes - sent, connections: 1 })
        const counting = traffic && (yield* count(simulation, host, known.sessionId, traffic))
        return counting?.answer?.told
      })
    const half = Math.floor(sessionTerms.byteLimit / 2)
    yield* carry(half)
    const before = yield* carry(sessionTerms.byteLimit - half - 1)
    if (before !== "open") report(`${known.sessionId} is ${before} before its bytes are used up`)
    yield* tryEverywhere(simulation, [known])
    const after = yield* carry(1)
    if (after !== "ended") report(`${known.sessionId} is ${after} although its bytes are used up`)
    yield* tryEverywhere(simulation, [known])
    // What was on its way is counted as well
    yield* carry(10)
  })

/** It is admitted until its expiry, and not from then on. */
const expire = (simulation: Simulation, known: KnownSession, expiresAt: number) =>
  Effect.gen(function* () {
    const { records, report, world } = simulation
    for (const at of [expiresAt - 3_000, expiresAt - 1, expiresAt, expiresAt + 1]) {
      yield* Effect.sleep(Math.max(0, at - world.now))
      yield* tryEverywhere(simulation, [known])
    }
    yield* Effect.sleep(WRITTEN_WITHIN)
    if (records.recorder.sessions.stateOf(known.sessionId).status !== "expired")
      report(`the expiry of ${known.sessionId} is not in the log after ${WRITTEN_WITHIN} ms`)
  })

/** Once all are past their time, each has its end in the log. */
export const checkEnded = ({ records, report }: Simulation) =>
  Effect.sync(() => {
    const { sessions } = records.recorder
    for (const sessionId of sessions.byId.keys())
      if (sessions.stateOf(sessionId).status === "open") report(`the end of ${sessionId} is not in the log`)
  })
