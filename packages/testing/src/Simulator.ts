/**
 * A whole Millrace under one seed: several hosts on one store, callers, administrators, upstreams, crashes, and time, everything of
 * it decided by the seed. Whatever went wrong, in the end everybody must have been told the truth, and nobody have paid for less.
 *
 * ```ts
 * await Effect.runPromise(Simulator.run({ seed: 4711 }))
 * ```
 *
 * The same seed gives the same trace to the byte, on every machine: a failing seed is a test. Hosts run it over operations of their
 * own, given as a {@link Workload}; what those call must be fakes, for nothing real keeps to the simulated clock.
 */
import { createHash } from "node:crypto"
import { Credits, Ledger, type Operation, PricePlan, Registration } from "@millrace/core"
import { EventStore, MemoryEventStore, MemoryStateStore, type StateStore } from "@millrace/event-sourcing"
import { Cause, Context, Effect, Exit, Fiber, Schema, Stream } from "effect"
import * as FaultyEventStore from "./FaultyEventStore.ts"
import { invariants } from "./Invariants.ts"
import * as SeededRandom from "./SeededRandom.ts"
import { type Grant, look, type Office } from "./simulator/Administrators.ts"
import { brief, type Call, type Intent, place, tagOf } from "./simulator/Callers.ts"
import * as Faults from "./simulator/Faults.ts"
import { disturbed, happening, nonEmpty } from "./simulator/Happenings.ts"
import { Host, type Site } from "./simulator/Host.ts"
import { type Evidence, Ledgers, verdict } from "./simulator/Judge.ts"
import type { Delivery } from "./simulator/Upstream.ts"
import { Witness } from "./simulator/Witness.ts"
import { standard, type Workload } from "./simulator/Workload.ts"
import { World } from "./simulator/World.ts"

export type { Faults } from "./simulator/Faults.ts"
export { none } from "./simulator/Faults.ts"
export type { Offer, Workload } from "./simulator/Workload.ts"

export interface Options<Op extends Operation.Any> {
  readonly seed: number
  /** Things that happen before faults end and everything comes to rest: 40 unless given. */
  readonly steps?: number
  /** 1 to 3, by the seed, unless given. */
  readonly hosts?: number
  /** What is called: operations without a meaning unless given. */
  readonly workload?: Workload<Op>
  /** Drawn from the seed where not given; see `none` for a fine day. */
  readonly faults?: Partial<Faults.Faults>
}

/** What a caller was told, in a few words. */
export interface Told {
  readonly requestId: string
  readonly operation: string
  readonly key: string | undefined
  readonly answer: string
}

export interface Outcome {
  /** Milliseconds since the beginning, who, what: a line for everything that happened. */
  readonly trace: ReadonlyArray<string>
  /** The whole log. */
  readonly events: ReadonlyArray<EventStore.RecordedEvent>
  /** SHA-256 of trace and log, base64url. */
  readonly hash: string
  readonly told: ReadonlyArray<Told>
  /** How often what happened: answers, arrivals, faults. */
  readonly stats: Readonly<Record<string, number>>
}

/** Somebody was told what is not so, or credits went astray. The message says what, and how to see it again. */
export class SimulationFailed extends Schema.TaggedError<SimulationFailed>()("SimulationFailed", {
  seed: Schema.Int,
  violations: Schema.Array(Schema.String),
  trace: Schema.Array(Schema.String),
  message: Schema.String
}) {}

/** When the world begins: milliseconds since 1970. */
const START = Date.UTC(2030, 0, 1)
const STEPS = 40
/** Steps between two looks at all that is in the ledger. What is told of a single account is compared at once. */
const INSPECTED = 12
/** Lines of the trace that a failure shows. */
const TAIL = 60
/** Tasks between two looks at the world outside of the simulation. */
const BREATH = 5_000
/** No simulation takes as many tasks: something goes round in circles. */
const CIRCLES = 20_000_000

const MINUTE = 60_000
/** Whoever calls is answered by then, milliseconds of calm. */
const ANSWERED = 15 * MINUTE
/** By then recovery has tried again whatever failed: its longest pause, a lease, and sweeps. */
const RECOVERED = 25 * MINUTE

/**
 * Runs one simulation. What the seed decides is given back, or {@link SimulationFailed}. It takes some 50 milliseconds of real time and,
 * simulated, from half an hour to weeks; needs nothing, and leaves nothing behind.
 */
export const run = <Op extends Operation.Any>(options: Options<Op>): Effect.Effect<Outcome, SimulationFailed> =>
  options.workload === undefined ? simulate(options, standard()) : simulate(options, options.workload)

const simulate = <Op extends Operation.Any>(options: Omit<Options<Op>, "workload">, workload: Workload<Op>) =>
  Effect.suspend(() => {
    const random = SeededRandom.make(options.seed)
    const faults: Faults.Faults = { ...Faults.draw(random.fork("faults")), ...options.faults }
    const { disorder, yieldEvery } = faults
    const world = new World({ random: random.fork("order"), start: START, disorder, yieldEvery })
    world.say("world", JSON.stringify({ ...faults, appends: undefined }))
    const violations: Array<string> = []
    const fiber = world.outside.fork(live(world, options, workload, faults, random, violations), Context.empty())
    const failed = (violations: ReadonlyArray<string>) => failure(options, violations, world.trace)

    return Effect.gen(function* () {
      for (let exit = fiber.pollUnsafe(); ; exit = fiber.pollUnsafe()) {
        if (exit !== undefined) {
          if (Exit.isFailure(exit)) return yield* failed([...violations, `it broke: ${Cause.pretty(exit.cause)}`])
          if (violations.length > 0) return yield* failed(violations)
          return exit.value
        }
        if (world.turns > CIRCLES) return yield* failed([...violations, "something goes round in circles"])
        for (let i = 0; i < BREATH && fiber.pollUnsafe() === undefined; i++)
          if (!world.turn()) return yield* failed([...violations, "everybody waits, and nothing will happen"])
        yield* Effect.yieldNow
      }
    })
  })

const failure = <Op extends Operation.Any>(
  { seed, steps, hosts, faults }: Omit<Options<Op>, "workload">,
  violations: ReadonlyArray<string>,
  trace: ReadonlyArray<string>
): SimulationFailed => {
  const again = JSON.stringify({ seed, steps, hosts, faults })
  const shown = trace.slice(-TAIL)
  const message = [
    `Simulation of seed ${seed}: ${violations.length} violations`,
    ...violations.map((violation) => `  ${violation}`),
    `Again: Simulator.run(${again})`,
    `Trace, the last ${shown.length} of ${trace.length} lines:`,
    ...shown.map((line) => `  ${line}`)
  ].join("\n")
  return new SimulationFailed({ seed, violations: [...violations], trace: [...trace], message })
}

const live = <Op extends Operation.Any>(
  world: World,
  options: Omit<Options<Op>, "workload">,
  workload: Workload<Op>,
  faults: Faults.Faults,
  random: SeededRandom.SeededRandom,
  violations: Array<string>
) =>
  Effect.gen(function* () {
    const witness = new Witness(world, yield* MemoryEventStore.make)
    const planned = FaultyEventStore.make(witness.store, {
      random: random.fork("planned"),
      lateBy: faults.lateBy,
      ...(faults.appends === undefined ? {} : { plan: { appends: faults.appends } })
    })
    const promised = new Set<string>()
    const states = watched(yield* MemoryStateStore.make, promised)
    const deliveries: Array<Delivery> = []
    const calls: Array<Call> = []
    const grants: Array<Grant> = []
    let calm = false
    const violated = (what: string) => {
      violations.push(what)
      world.say("judge", what)
    }
    const weather = {
      world,
      random: random.fork("weather"),
      rate: () => (calm ? 0 : faults.upstreams),
      delivered: (delivery: Delivery) => void deliveries.push(delivery)
    }
    const shape = random.fork("shape")
    const site: Site<Op> = {
      world,
      events: planned,
      states,
      faults,
      workload,
      weather,
      random: random.fork("hosts"),
      accounts: {
        queueLimit: shape.pick([10_000, 10_000, 6]),
        batchLimit: shape.pick([500, 500, 2]),
        idleAfter: shape.pick([60_000, 3_000])
      },
      // Whatever the weather: a host copes with it, or says so to those who called
      complained: (host, message) => violated(`${host} logs: ${message}`)
    }
    const accounts = yield* founded(
      new Host("founder", { ...site, events: witness.store, faults: Faults.none }),
      workload,
      1 + shape.below(3),
      violated
    )
    const hosts = Array.from({ length: options.hosts ?? 1 + shape.below(3) }, (_, i) => new Host(`h${i}`, site))
    yield* Effect.forEach(hosts, (host) => host.start, { concurrency: "unbounded", discard: true })

    const office: Office<Op> = {
      world,
      hosts,
      calls,
      witness,
      accounts,
      grants,
      violated,
      operations: workload.offers.map(({ operation }) => operation.key),
      place: () => witness.length,
      hangUps: () => (calm ? 0 : faults.hangUps),
      over: () => calm
    }
    const actors: Array<Fiber.Fiber<void>> = []
    const intents: Array<Intent> = []
    for (let step = 0; step < (options.steps ?? STEPS) && violations.length === 0; step++) {
      const own = random.fork(`step ${step}`)
      yield* Effect.sleep(own.below(own.pick([1, 30, 400, 5_000, 40_000])))
      actors.push(yield* Effect.forkChild(happening(office, workload, intents, own)))
      if (own.chance(faults.hosts)) actors.push(yield* Effect.forkChild(disturbed(own.pick(nonEmpty(hosts)), own, violated)))
      if (own.chance(faults.leaps)) {
        // A reply is kept for a day: whoever sleeps for longer in the middle of a call cannot know of it any more
        const isQuiet = calls.every(
          ({ process, told, startedAt }) => told !== undefined || !process.alive || world.now - startedAt > ANSWERED
        )
        const millis = own.pick([
          40_000,
          90_000,
          5 * MINUTE,
          ...(isQuiet ? [11 * MINUTE, 40 * MINUTE, 25 * 60 * MINUTE, 8 * 24 * 60 * MINUTE] : [])
        ])
        world.say("world", `sleeps for ${millis} ms`)
        world.leap(millis)
      }
      if (step % INSPECTED === 0)
        for (const { stream, revision, rule, detail } of invariants(witness.arrivals)) violated(`${stream} ${revision}: ${rule}: ${detail}`)
    }

    // Faults end, and everything comes to rest
    world.say("world", "is calm from now on")
    calm = true
    planned.calm()
    for (const host of hosts) host.calm()
    const waited = yield* Effect.timeoutOption(Fiber.awaitAll(actors), ANSWERED)
    if (waited._tag === "None") violated("somebody waits for an answer that does not come")
    yield* Effect.forEach(hosts, (host) => host.start, { discard: true })
    yield* Effect.sleep(RECOVERED)
    yield* retried(office, intents, random.fork("retries"))
    yield* Effect.sleep(MINUTE)
    const fresh = new Host("fresh", site)
    fresh.calm()
    yield* fresh.start
    for (const host of [...hosts, fresh]) yield* agreed(office, host)
    const survived = new Set(hosts.flatMap(({ process }) => process ?? []))
    for (const host of [...hosts, fresh]) if (!(yield* host.stop)) violated(`${host.name} does not stop`)
    const events = yield* Effect.orDie(Stream.runCollect(witness.store.readAll(EventStore.start)))
    const evidence: Evidence = { witness, calls, grants, deliveries, faults, survived, promised, log: events }
    for (const violation of verdict(evidence)) violated(violation)
    return outcome(world, calls, events, promised.size)
  })

/** Notes for which reservations it was written down that they shall cost nothing. */
const watched = (states: StateStore.StateStore["Service"], promised: Set<string>): StateStore.StateStore["Service"] => ({
  ...states,
  write: (changes) =>
    Effect.tap(states.write(changes), () =>
      Effect.sync(() => {
        for (const change of changes) if (change._tag === "put" && change.space === "unanswered") promised.add(change.key)
      })
    )
})

/** Accounts with credits, and prices for all that is offered. */
const founded = <Op extends Operation.Any>(
  founder: Host<Op>,
  { offers }: Workload<Op>,
  count: number,
  violated: (what: string) => void
): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    yield* founder.start
    const prices = Object.fromEntries(offers.map(({ operation, price }) => [operation.key, Credits.of(price)]))
    const open = Effect.gen(function* () {
      const registration = yield* Registration
      yield* (yield* PricePlan.PriceBook).publish(prices)
      const accounts: Array<string> = []
      for (let i = 0; i < count; i++) {
        const accountId = yield* registration.open(`caller${i}@example.com`)
        yield* registration.verify(accountId)
        accounts.push(accountId)
      }
      return accounts
    })
    const accounts = yield* Effect.orDie(founder.request(open))
    if (!(yield* founder.stop)) violated("the founder does not stop")
    return accounts
  })

/** Under each key one more call, in the calm: what succeeded is replayed, nothing is charged twice, what did not may now. */
const retried = <Op extends Operation.Any>(office: Office<Op>, intents: ReadonlyArray<Intent>, random: SeededRandom.SeededRandom) =>
  Effect.gen(function* () {
    const { calls, violated, witness, world, hosts } = office
    const REMEMBERED = 23 * 60 * MINUTE
    const ledgers = new Ledgers(witness.arrivals)
    for (const intent of new Set(intents.filter(({ key }) => key !== undefined))) {
      const host = random.pick(nonEmpty(hosts))
      const named = (call: Call) => call.intent.accountId === intent.accountId && call.intent.key === intent.key
      const [succeeded] = calls.filter(named).flatMap((call) =>
        ledgers
          .of(call.requestId)
          .filter(({ success, end }) => success !== undefined && world.now - (end?.at ?? 0) < REMEMBERED)
          .map((reservation) => ({ intent: call.intent, reservation }))
      )
      const call = yield* place(office, host, succeeded?.intent ?? intent, random)
      const answer = call?.told?.answer
      if (answer === undefined) violated(`${intent.key} is not answered in the calm`)
      else if (succeeded !== undefined && !(Exit.isSuccess(answer) && answer.value.replayed))
        violated(`${call?.requestId}: ${intent.key} succeeded with ${succeeded.reservation.hold.requestId}, and is told ${brief(answer)}`)
      else if (Exit.isFailure(answer) && !REFUSALS.has(tagOf(answer) ?? ""))
        violated(`${call?.requestId} fails in the calm: ${brief(answer)}`)
    }
  })

/** What even in the calm stands between a caller and a success; the operations of a host may have their own reasons. */
const REFUSALS = new Set([
  ...["AccountSuspended", "AccountInDebt", "InsufficientCredits", "CostExceedsLimit", "KeyReused"],
  ...["InvalidInput", "NotFound", "UpstreamNotConfigured"]
])

/** A host sees every account as the log tells it, now and as it was. */
const agreed = <Op extends Operation.Any>(office: Office<Op>, host: Host<Op>) =>
  Effect.gen(function* () {
    const { accounts, violated, witness, world } = office
    for (const accountId of accounts) {
      yield* look(office, accountId, host)
      const past = world.now - 20 * MINUTE
      const exit = yield* Effect.exit(host.request(Effect.flatMap(Ledger, ({ balance }) => balance(accountId, past))))
      const known = witness.balanceAt(accountId, past)
      if (Exit.isFailure(exit)) violated(`${host.name} does not know the balance of ${accountId}: ${tagOf(exit)}`)
      else if (exit.value.available !== known.available || exit.value.held !== known.held || exit.value.debt !== known.debt)
        violated(`${host.name} says ${exit.value.available} of ${accountId}, where there are ${known.available}`)
    }
  })

const outcome = (world: World, calls: ReadonlyArray<Call>, events: ReadonlyArray<EventStore.RecordedEvent>, promises: number): Outcome => {
  const stats: Record<string, number> = {}
  const count = (what: string) => {
    stats[what] = (stats[what] ?? 0) + 1
  }
  const told = calls.map(({ requestId, intent, told, hungUp }) => {
    const answer = told === undefined ? (hungUp ? "hung up" : "nothing") : brief(told.answer)
    count(`told ${answer.split(/[ ,:]/u, 1)[0]}`)
    return { requestId, operation: intent.operation, key: intent.key, answer }
  })
  for (const { type, data } of events) {
    count(type)
    if (data.includes(`"lateOf"`)) count("charged late")
  }
  const sha = createHash("sha256")
  for (const line of world.trace) sha.update(`${line}\n`)
  for (const { stream, revision, id, type, data, metadata } of events)
    sha.update(`${stream} ${revision} ${id} ${type} ${data} ${metadata}\n`)
  stats["turns"] = world.turns
  stats["promises"] = promises
  return { trace: world.trace, events, hash: sha.digest("base64url"), told, stats }
}
