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
import { Audit } from "@millrace/audit"
import { Credits, Job, Ledger, type Operation, PricePlan, Registration } from "@millrace/core"
import { EventStore, MemoryEventStore, MemoryStateStore, type StateStore } from "@millrace/event-sourcing"
import { Cause, Context, Effect, Exit, Fiber, Schema, Stream } from "effect"
import * as FaultyEventStore from "./FaultyEventStore.ts"
import { invariants } from "./Invariants.ts"
import * as SeededRandom from "./SeededRandom.ts"
import { type Grant, look, type Office } from "./simulator/Administrators.ts"
import * as Awaited from "./simulator/Awaited.ts"
import { brief, type Call, type Intent, place, tagOf } from "./simulator/Callers.ts"
import * as Desk from "./simulator/Desk.ts"
import * as Faults from "./simulator/Faults.ts"
import { disturbed, happening, nonEmpty } from "./simulator/Happenings.ts"
import { type Files, Host, type Site } from "./simulator/Host.ts"
import { act, fetch, jobOf, known, type Told as Tidings, wait } from "./simulator/JobCallers.ts"
import { isExpected } from "./simulator/JobJudge.ts"
import type { Attempted } from "./simulator/JobUpstream.ts"
import { type Evidence, Ledgers, verdict } from "./simulator/Judge.ts"
import type { Delivery } from "./simulator/Weather.ts"
import { type SeenJob, Witness } from "./simulator/Witness.ts"
import { standard, type Workload } from "./simulator/Workload.ts"
import { World } from "./simulator/World.ts"

export type { Faults } from "./simulator/Faults.ts"
export { none } from "./simulator/Faults.ts"
export { type Offer, standard, type Workload } from "./simulator/Workload.ts"

export interface Options<Op extends Operation.Any> {
  readonly seed: number
  /** Things that happen before faults end and everything comes to rest: 40 unless given. */
  readonly steps?: number
  /** 1 to 3, by the seed, unless given. */
  readonly hosts?: number
  /** What is called: `standard()`, operations and jobs without a meaning, unless given. */
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
const CIRCLES = 2_000_000

const MINUTE = 60_000
/** Whoever calls is answered by then, milliseconds of calm. */
const ANSWERED = 15 * MINUTE
/** By then recovery has tried again whatever failed: its longest pause, a lease, and sweeps. */
const RECOVERED = 25 * MINUTE
/** Before that nothing is at rest: hosts stand still, stores are slow, and appends are on their way. */
const SETTLED = 6 * MINUTE
/** A job that is made in the calm has ended by then: an attempt, and the others of its account before it. */
const ENDED = 15 * MINUTE
/** By then whoever waits for a job hears of its end, milliseconds of calm. */
const PROMPT = 3_000

/**
 * Runs one simulation. What the seed decides is given back, or {@link SimulationFailed}. It takes some 200 milliseconds of real time and,
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
    const attempts: Array<Attempted> = []
    const tidings: Array<Tidings> = []
    const files: Files = new Map()
    let calm: Evidence["calm"]
    const violated = (what: string) => {
      violations.push(what)
      world.say("judge", what)
    }
    const weather = {
      world,
      random: random.fork("weather"),
      place: () => witness.length,
      rate: () => (calm ? 0 : faults.upstreams),
      delivered: (delivery: Delivery) => void deliveries.push(delivery),
      attempted: (attempt: Attempted) => void attempts.push(attempt),
      done: (jobId: string) => awaited.tell(jobId)
    }
    const awaited = Awaited.make()
    const shape = random.fork("shape")
    const runners = random.fork("runners")
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
      jobs: { lease: runners.pick([30_000, 12_000]), concurrency: runners.pick([16, 2]), drain: runners.pick([10_000, 0]) },
      blobs: new Map(),
      files,
      writes: { before: 0, sent: 0, arrived: 0 },
      // Whatever the weather: a host copes with it, or says so to those who called
      complained: (host, message) => {
        if (!isExpected(message, { faults, calm, attempts, now: world.now })) violated(`${host} logs: ${message}`)
      }
    }
    const quiet = { ...site, faults: Faults.none, jobs: { runner: false } }
    const accounts = yield* founded(new Host("founder", { ...quiet, events: witness.store }), workload, 1 + shape.below(3), violated)
    const count = options.hosts ?? 1 + shape.below(3)
    // Some only accept jobs; the last runs them in any case
    const runs = Array.from({ length: count }, (_, i) => runners.chance(0.7) || i === count - 1)
    const hosts = runs.map((runner, i) => new Host(`h${i}`, { ...site, jobs: { ...site.jobs, runner } }))
    yield* Effect.forEach(hosts, (host) => host.start, { concurrency: "unbounded", discard: true })

    const office: Office<Op> = {
      world,
      hosts,
      calls,
      witness,
      accounts,
      grants,
      attempts,
      violated,
      operations: workload.offers.map(({ operation }) => operation.key),
      tidings,
      files,
      familyOf: (key) => familyOf(workload.offers.find(({ operation }) => operation.key === key)?.operation),
      delivered: awaited.wait,
      place: () => witness.length,
      hangUps: () => (calm ? 0 : faults.hangUps),
      over: () => calm !== undefined
    }
    const actors: Array<Fiber.Fiber<void>> = []
    const intents: Array<Intent> = []
    for (let step = 0; step < (options.steps ?? STEPS) && violations.length === 0; step++) {
      const own = random.fork(`step ${step}`)
      yield* Effect.sleep(own.below(own.pick([1, 30, 400, 5_000, 40_000])))
      actors.push(yield* Effect.forkChild(happening(office, workload, intents, own)))
      if (own.chance(faults.hosts)) actors.push(yield* Effect.forkChild(disturbed(office, own.pick(nonEmpty(hosts)), own)))
      const clocks = own.fork("clocks")
      if (clocks.chance(faults.clocks)) clocks.pick(nonEmpty(hosts)).setClock(clocks)
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
        for (const { stream, revision, rule, detail } of invariants(witness.all)) violated(`${stream} ${revision}: ${rule}: ${detail}`)
    }

    // Faults end, and everything comes to rest
    world.say("world", "is calm from now on")
    calm = { at: world.now, place: witness.length }
    planned.calm()
    for (const host of hosts) host.calm()
    const waited = yield* Effect.timeoutOption(Fiber.awaitAll(actors), ANSWERED)
    if (waited._tag === "None") violated("somebody waits for an answer that does not come")
    yield* Effect.forEach(hosts, (host) => host.start, { discard: true })
    yield* rested(witness, states, random.fork("rest").chance(0.3))
    yield* retried(office, intents, random.fork("retries"))
    yield* Effect.sleep(MINUTE)
    yield* worked(office, workload, random.fork("jobs in the calm"))
    const fresh = new Host("fresh", site)
    fresh.calm()
    yield* fresh.start
    for (const host of [...hosts, fresh]) {
      yield* agreed(office, host, calm.at)
      yield* readable(office, host, random.fork(`readable ${host.name}`))
    }
    const survived = new Set(hosts.flatMap(({ process }) => process ?? []))
    for (const host of [...hosts, fresh]) if (!(yield* host.stop)) violated(`${host.name} does not stop`)
    const events = yield* Effect.orDie(Stream.runCollect(witness.store.readAll(EventStore.start)))
    const keys = yield* Effect.orDie(states.list("vaultKeys", { limit: 100_000 }))
    const evidence: Evidence = {
      ...{ witness, calls, grants, deliveries, faults, survived, promised, attempts, tidings, calm },
      end: world.now,
      log: events,
      keys: new Set(keys.map(({ key }) => key))
    }
    for (const violation of verdict(evidence)) violated(violation)
    const { problems } = yield* Effect.orDie(Effect.provideService(Audit.run({ at: world.now }), EventStore.EventStore, witness.store))
    for (const { detail, position, rule, stream } of problems) violated(`audit: ${stream} at ${position}: ${rule}: ${detail}`)
    return outcome(evidence, world)
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

/** Waits until no hold, no job and no promise is left open; or, `long`, for as long as that may ever take: what must not happen then does not. */
const rested = (witness: Witness, states: StateStore.StateStore["Service"], long: boolean) =>
  Effect.gen(function* () {
    for (let waited = 0; waited < RECOVERED; waited += MINUTE) {
      yield* Effect.sleep(MINUTE)
      if (long || waited < SETTLED || witness.openHolds.size > 0 || witness.openJobs().length > 0) continue
      if ((yield* Effect.orDie(states.list("unanswered", { limit: 1 }))).length === 0) return
    }
  })

const familyOf = (operation: Operation.Any | undefined): string | undefined =>
  operation?._tag === "Job" ? operation.family.name : undefined

/** Jobs that are made when nothing fails are waited for, succeed, and are charged; and whatever was accepted before has ended. */
const worked = <Op extends Operation.Any>(office: Office<Op>, { offers }: Workload<Op>, random: SeededRandom.SeededRandom) =>
  Effect.gen(function* () {
    const { accounts, familyOf, hosts, violated, witness } = office
    for (const { operation, input } of offers) {
      if (operation._tag !== "Job") continue
      const own = random.fork(operation.key)
      const accountId = own.pick(nonEmpty(accounts))
      const asked = input(
        own,
        known(office).map(({ jobId }) => jobId)
      )
      const intent: Intent = { accountId, operation: operation.key, input: asked, request: `${operation.key} ${JSON.stringify(asked)}` }
      const call = yield* place(office, own.pick(nonEmpty(hosts)), intent, own)
      const job = call && jobOf(call, familyOf)
      if (job === undefined) continue
      const waited = yield* wait(office, own.pick(nonEmpty(hosts)), job, ENDED)
      if (Exit.isFailure(waited) || !waited.value.ended) violated(`${job.jobId} does not end in the calm`)
      const late = office.world.now - (witness.job(job.jobId).arrivals.at(-1)?.at ?? 0)
      if (late > PROMPT) violated(`whoever waited for ${job.jobId} was told of its end ${late} ms later`)
    }
    for (let waited = 0; waited < ENDED && witness.openJobs().length > 0; waited += MINUTE) yield* Effect.sleep(MINUTE)
    for (const { jobId } of witness.openJobs()) violated(`${jobId} does not end`)
  })

/** In the calm a host shows each job as it is, and gives all its files. */
const readable = <Op extends Operation.Any>(office: Office<Op>, host: Host<Op>, random: SeededRandom.SeededRandom) =>
  Effect.gen(function* () {
    const { violated, witness } = office
    for (const job of known(office)) {
      const call = yield* act(office, host, "read", job, random)
      const answer = call?.told?.answer
      if (answer === undefined || (Exit.isFailure(answer) && tagOf(answer) !== "NotFound"))
        violated(`${job.jobId} cannot be read at ${host.name}: ${answer && brief(answer)}`)
      const state = witness.job(job.jobId).states.at(-1)
      if (state?.status !== "succeeded" || state.artifacts.length === 0 || answer === undefined || Exit.isFailure(answer)) continue
      const file = yield* fetch(office, host, job)
      if (Exit.isFailure(file)) violated(`the file of ${job.jobId} cannot be had at ${host.name}: ${tagOf(file)}`)
    }
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
    const desk = Desk.make(offers.map(({ operation }) => operation)).map(({ key }) => [key, Credits.zero] as const)
    const prices = Object.fromEntries([...offers.map(({ operation, price }) => [operation.key, Credits.of(price)] as const), ...desk])
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
          .filter(({ at, end, hold: { jobId }, success }) =>
            // A job has its key as soon as it began, however it ends
            jobId === undefined
              ? success !== undefined && world.now - (end?.at ?? 0) < REMEMBERED
              : "accepted" in (witness.job(jobId).states.at(-1) ?? Job.Job.initial) && world.now - at < REMEMBERED
          )
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
  ...["AccountSuspended", "AccountInDebt", "InsufficientCredits", "CostExceedsLimit", "KeyReused", "ReplyUnavailable"],
  ...["InvalidInput", "NotFound", "UpstreamNotConfigured", "TooManyJobs"]
])

/** A host sees every account as the log tells it, now and as it was. */
const agreed = <Op extends Operation.Any>(office: Office<Op>, host: Host<Op>, past: number) =>
  Effect.gen(function* () {
    const { accounts, violated, witness } = office
    for (const accountId of accounts) {
      yield* look(office, accountId, host)
      const exit = yield* Effect.exit(host.request(Effect.flatMap(Ledger, ({ balance }) => balance(accountId, past))))
      const known = witness.balanceAt(accountId, past)
      if (Exit.isFailure(exit)) violated(`${host.name} does not know the balance of ${accountId}: ${tagOf(exit)}`)
      else if (exit.value.available !== known.available || exit.value.held !== known.held || exit.value.debt !== known.debt)
        violated(`${host.name} says ${exit.value.available} of ${accountId}, where there are ${known.available}`)
    }
  })

const outcome = ({ attempts, calls, log, promised, tidings, witness }: Evidence, world: World): Outcome => {
  const stats: Record<string, number> = {}
  const count = (what: string) => {
    stats[what] = (stats[what] ?? 0) + 1
  }
  const told = calls.map(({ requestId, intent, told, hungUp }) => {
    const answer = told === undefined ? (hungUp ? "hung up" : "nothing") : brief(told.answer)
    count(`told ${answer.split(/[ ,:]/u, 1)[0]}`)
    return { requestId, operation: intent.operation, key: intent.key, answer }
  })
  for (const { type, data } of log) {
    count(type)
    if (data.includes(`"lateOf"`)) count("charged late")
  }
  for (const { answer, what } of tidings) count(`${what}: ${answer.split(" ", 1)[0]}`)
  for (const job of witness.jobs.values())
    for (const what of turnsOf(
      job,
      attempts.filter(({ jobId }) => jobId === job.jobId)
    ))
      count(`job ${what}`)
  const sha = createHash("sha256")
  for (const line of world.trace) sha.update(`${line}\n`)
  for (const { stream, revision, id, type, data, metadata } of log) sha.update(`${stream} ${revision} ${id} ${type} ${data} ${metadata}\n`)
  stats["turns"] = world.turns
  stats["promises"] = promised.size
  return { trace: world.trace, events: log, hash: sha.digest("base64url"), told, stats }
}

/** What befell a job, beyond its events. */
const turnsOf = ({ arrivals, states }: SeenJob, attempts: ReadonlyArray<Attempted>): ReadonlyArray<string> => {
  const delivered = attempts.filter((attempt) => attempt.delivered !== undefined).length
  const turns = arrivals.flatMap(({ event }, i) => {
    if (event._tag === "JobFailed") return [`failed: ${event.failure}`]
    if (event._tag === "JobStarted" && states[i - 1]?.status === "running") return ["taken over"]
    if (event._tag === "JobReleased" && event.failure === undefined) return ["handed back"]
    return event._tag === "JobCancelled" && delivered > 0 ? ["delivered, and cancelled"] : []
  })
  return delivered > 1 ? [...turns, "delivered twice"] : turns
}
