/** Callers who open proxy sessions, and their clients: they log in to nodes, and send bytes through them until a session has ended. */
import { ProxySession, ProxySessions } from "@millrace/core"
import { Clock, Effect, Exit } from "effect"
import type { SeededRandom } from "../../SeededRandom.ts"
import { callWithRetries, requestOf } from "../Callers.ts"
import type { Records } from "../Evidence.ts"
import type { Host } from "../Host.ts"
import { type Admission, type Counting, dataOf, type Intent, tagOf } from "../Records.ts"
import { nonEmpty, pickAny, pickHost, type Simulation } from "../Simulation.ts"
import { draw } from "./Endpoints.ts"

export const OPEN = "proxy.createSession"

/** A session as its caller was told of it. */
export interface KnownSession {
  readonly sessionId: string
  readonly password: string
}

/** The sessions that callers were told of, the oldest first. */
export const knownSessions = ({ calls }: Pick<Records, "calls">): ReadonlyArray<KnownSession> => {
  const known = new Map<string, KnownSession>()
  for (const call of calls) {
    const data = call.intent.operation === OPEN ? dataOf(call) : undefined
    if (data !== undefined) known.set(data.session_id, { sessionId: data.username, password: data.password })
  }
  return [...known.values()]
}

/** Does one thing. Adds what callers want under a key to `intents`. */
export const act = (simulation: Simulation, intents: Array<Intent>, random: SeededRandom): Effect.Effect<unknown> =>
  Effect.suspend((): Effect.Effect<unknown> => {
    const known = knownSessions(simulation.records)
    // Sessions are short, so the newest are used most
    const session = random.chance(0.7) ? known.at(-1) : pickAny(random, known)
    const choice = random.below(20)
    if (session === undefined || choice < 6) return open(simulation, intents, random)
    if (choice < 10) return tryDoors(simulation, session, random)
    return use(simulation, session, random)
  })

/** A call under a key, perhaps, and with retries; sometimes several callers use the key at once. Now and then callers look for a place first. */
const open = (simulation: Simulation, intents: Array<Intent>, random: SeededRandom) => {
  const input = draw(random)
  const operation = random.chance(0.1) ? "proxy.locations" : OPEN
  const asked = operation === OPEN ? input : {}
  const key = random.chance(simulation.keys) ? { key: `k${intents.length}` } : {}
  const accountId = random.pick(nonEmpty(simulation.accounts))
  const intent: Intent = { accountId, operation, input: asked, request: requestOf(operation, asked), ...key }
  intents.push(intent)
  const callers = random.chance(0.2) ? [0, 1] : [0]
  return Effect.forEach(callers, (i) => callWithRetries(simulation, intent, random.fork(`caller ${i}`)), {
    concurrency: "unbounded",
    discard: true
  })
}

const NOBODY = "proxy_00000000000000000000000000"

/** Logs in with what is right and with what is not. */
const tryDoors = (simulation: Simulation, session: KnownSession, random: SeededRandom) =>
  Effect.forEach(
    doorsOf(simulation, session, random),
    (credentials) => {
      const host = pickHost(simulation, random)
      return host === undefined ? Effect.void : admit(simulation, host, credentials)
    },
    { discard: true }
  )

/** The credentials of a session, and some that look like them and are not. */
export const doorsOf = ({ records }: Simulation, session: KnownSession, random: SeededRandom): ReadonlyArray<KnownSession> => {
  const { password, sessionId } = session
  const other = pickAny(
    random,
    knownSessions(records).filter((known) => known.sessionId !== sessionId)
  )
  return [
    session,
    { sessionId, password: other?.password ?? "another" },
    { sessionId, password: `${password.slice(0, -1)}${password.endsWith("A") ? "B" : "A"}` },
    { sessionId, password: "" },
    { sessionId: NOBODY, password },
    { sessionId: `${sessionId}0`, password }
  ]
}

/** Asks a node to admit a client. Undefined if the host is down. */
export const admit = (simulation: Simulation, host: Host, credentials: KnownSession): Effect.Effect<Admission | undefined> =>
  Effect.suspend((): Effect.Effect<Admission | undefined> => {
    const { records, world } = simulation
    const { process } = host
    if (process === undefined) return Effect.undefined
    const admission: Admission = { ...credentials, process, startedAt: world.now, lengthBefore: records.recorder.length }
    records.admissions.push(admission)
    const ask = Effect.gen(function* () {
      const before = yield* Clock.currentTimeMillis
      const session = yield* (yield* ProxySessions).admit(credentials.sessionId, credentials.password)
      return { session, clock: [before, yield* Clock.currentTimeMillis] as const }
    })
    return Effect.map(Effect.exit(host.request(ask)), (exit) => {
      const told = Exit.isSuccess(exit) ? (exit.value.session === undefined ? "refused" : "admitted") : (tagOf(exit) ?? "died")
      const clock = Exit.isSuccess(exit) ? { clock: exit.value.clock } : {}
      admission.answer = { told, ...clock, at: world.now, lengthAfter: records.recorder.length }
      world.note("proxies", `${credentials.sessionId} at ${process.name}: ${told}`)
      return admission
    })
  })

/** A client logs in at a node and sends bytes through it for a while. The node counts them, later, and again if it has no answer. */
const use = (simulation: Simulation, session: KnownSession, random: SeededRandom): Effect.Effect<void> =>
  Effect.gen(function* () {
    const turns = 1 + random.below(4)
    for (let turn = 0; turn < turns && !simulation.isOver(); turn++) {
      const own = random.fork(`turn ${turn}`)
      const host = pickHost(simulation, own)
      const admission = host && (yield* admit(simulation, host, session))
      if (host !== undefined && admission?.answer?.told === "admitted") yield* carry(simulation, host, session.sessionId, own)
      yield* Effect.sleep(own.below(own.pick([20, 1_000, 20_000])))
    }
  })

const carry = (simulation: Simulation, host: Host, sessionId: string, random: SeededRandom): Effect.Effect<void> =>
  Effect.gen(function* () {
    const before = carriedOf(simulation.records, sessionId, host)
    const more = {
      sent: random.below(random.pick([2, 900])),
      received: random.below(random.pick([2, 900])),
      connections: 1 + random.below(2)
    }
    const total = yield* send(simulation, host, sessionId, more)
    if (total === undefined) return
    // Counts may come in any order, at once, or more than once
    const totals = random.chance(0.3) ? [total, before, total] : [total]
    const concurrency = random.chance(0.5) ? "unbounded" : 1
    yield* Effect.forEach(totals, (traffic) => count(simulation, host, sessionId, traffic), { concurrency, discard: true })
  })

const nameOf = (sessionId: string, node: string): string => `${sessionId} ${node}`

/** What the node of a host carried for a session so far. */
const carriedOf = ({ carried }: Records, sessionId: string, { process }: Host): ProxySession.Traffic =>
  carried.get(nameOf(sessionId, process?.name ?? ""))?.at(-1)?.traffic ?? ProxySession.NO_TRAFFIC

/** Sends more through the node of a host. Returns all that it has carried; undefined if it is down. */
export const send = (simulation: Simulation, host: Host, sessionId: string, more: ProxySession.Traffic) =>
  Effect.sync((): ProxySession.Traffic | undefined => {
    const { records } = simulation
    if (host.process === undefined) return undefined
    const before = carriedOf(records, sessionId, host)
    const traffic = {
      sent: before.sent + more.sent,
      received: before.received + more.received,
      connections: before.connections + more.connections
    }
    const name = nameOf(sessionId, host.process.name)
    records.carried.set(name, [...(records.carried.get(name) ?? []), { length: records.recorder.length, traffic }])
    return traffic
  })

/** The node of a host counts what it has carried for a session. Undefined if the host is down. */
export const count = (
  simulation: Simulation,
  host: Host,
  sessionId: string,
  traffic: ProxySession.Traffic
): Effect.Effect<Counting | undefined> =>
  Effect.suspend((): Effect.Effect<Counting | undefined> => {
    const { records, world } = simulation
    if (host.process === undefined) return Effect.undefined
    const node = host.process.name
    const counting: Counting = { sessionId, node, traffic, startedAt: world.now, lengthBefore: records.recorder.length }
    records.countings.push(counting)
    const ask = Effect.flatMap(ProxySessions, (sessions) => sessions.count(sessionId, node, traffic))
    return Effect.map(Effect.exit(host.request(ask)), (exit) => {
      const told = Exit.isSuccess(exit) ? exit.value.status : (tagOf(exit) ?? "died")
      counting.answer = { told, at: world.now, lengthAfter: records.recorder.length }
      world.note("proxies", `${sessionId} carried ${traffic.sent + traffic.received} bytes at ${node}: ${told}`)
      return counting
    })
  })
