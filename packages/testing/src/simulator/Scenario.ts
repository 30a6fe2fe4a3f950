/** The course of one simulation: hosts start, the steps run under faults, faults end, and in the final phase everything is checked. */
import { Audit } from "@millrace/audit"
import { Credits, type Millrace, PricePlan, Registration } from "@millrace/core"
import { EventStore, MemoryEventStore, MemoryStateStore, type StateStore } from "@millrace/event-sourcing"
import { Deferred, Duration, Effect, Fiber, Stream } from "effect"
import * as FaultyEventStore from "../FaultyEventStore.ts"
import type { SeededRandom } from "../SeededRandom.ts"
import { isExpectedWarning } from "./checkers/HostLogs.ts"
import { check } from "./checkers/index.ts"
import * as Codes from "./codes/Endpoints.ts"
import * as FinalCodes from "./codes/FinalPhase.ts"
import { type Evidence, type FaultsEnded, indexEvidence, type Records, type Report } from "./Evidence.ts"
import { judgeEnd } from "./Expectations.ts"
import * as Faults from "./Faults.ts"
import * as FinalPhase from "./FinalPhase.ts"
import * as FinalWebhooks from "./FinalWebhooks.ts"
import { Host } from "./Host.ts"
import { type Deployment, RECOVERY } from "./HostProcess.ts"
import * as Inboxes from "./inboxes/Endpoints.ts"
import * as FinalInboxes from "./inboxes/FinalPhase.ts"
import * as JobEndpoints from "./JobEndpoints.ts"
import { ANSWERED_WITHIN } from "./Leaps.ts"
import { Links } from "./Links.ts"
import { LogRecorder } from "./LogRecorder.ts"
import * as OpenActor from "./OpenActor.ts"
import { type Outcome, outcomeOf } from "./Outcome.ts"
import * as Payments from "./payments/Endpoints.ts"
import * as FinalPayments from "./payments/FinalPhase.ts"
import { SimulatedGateway } from "./payments/Gateway.ts"
import * as People from "./people/Endpoints.ts"
import * as FinalPeople from "./people/FinalPhase.ts"
import { People as PeopleRecords } from "./people/People.ts"
import * as Proxies from "./proxies/Endpoints.ts"
import * as FinalProxies from "./proxies/FinalPhase.ts"
import { Receivers } from "./Receivers.ts"
import type { Intent } from "./Records.ts"
import type { Simulation, SimulationOptions } from "./Simulation.ts"
import * as Steps from "./Steps.ts"
import * as Subscriptions from "./subscriptions/Endpoints.ts"
import * as FinalSubscriptions from "./subscriptions/FinalPhase.ts"
import type { FaultInjector } from "./UpstreamFaults.ts"
import { waitingIn } from "./UserWork.ts"
import type { AnyOffer } from "./Workload.ts"
import type { World } from "./World.ts"

const MINUTE = 60_000

/**
 * Runs a simulation. Reports every violation; returns what happened. `hostCount` is drawn if undefined. Each generator is forked by a name:
 * another name draws other numbers, and changes what every seed does.
 */
export const simulate = (options: SimulationOptions, hostCount: number | undefined): Effect.Effect<Outcome> =>
  Effect.gen(function* () {
    const { random, report, world } = options
    const simulation = yield* build(options, hostCount)
    const { fresh, hosts, records } = simulation
    const intents: Array<Intent> = []
    yield* Effect.forEach(hosts, (host) => host.start, { concurrency: "unbounded", discard: true })
    const actors = yield* Steps.run(simulation, intents)

    world.note("world", "faults end")
    const faultsEnded = simulation.endFaults()
    if (!(yield* endInTime(actors, world))) report(["a caller was never answered", ...waitingIn(world)].join("; "))
    yield* Effect.forEach(hosts, (host) => host.start, { discard: true })
    yield* FinalPhase.untilRecovered(simulation, random.fork("rest").chance(0.3))
    yield* FinalPhase.retryEveryKey(simulation, intents, random.fork("retries"))
    yield* Effect.sleep(MINUTE)
    yield* FinalPhase.runEveryJob(simulation, random.fork("jobs in the calm"))
    yield* OpenActor.openAgain(simulation, random.fork("opened again"))
    yield* FinalPayments.settle(simulation, random.fork("payments in the calm"))
    yield* FinalSubscriptions.settle(simulation, random.fork("subscriptions in the calm"))
    yield* FinalWebhooks.settle(simulation, random.fork("webhooks in the calm"))
    yield* FinalInboxes.settle(simulation, random.fork("inboxes in the calm"))
    yield* FinalCodes.settle(simulation, random.fork("codes in the calm"))
    yield* FinalPeople.settle(simulation, random.fork("people in the calm"))
    yield* FinalProxies.settle(simulation, random.fork("proxies in the calm"))
    fresh.calm()
    yield* fresh.start
    const all = [...hosts, fresh]
    for (const host of all) {
      yield* FinalPhase.checkAccounts(simulation, host, faultsEnded.at)
      yield* OpenActor.check(simulation, host)
      yield* FinalPhase.checkJobs(simulation, host, random.fork(`readable ${host.name}`))
    }
    yield* FinalPhase.checkFilesAreSwept(simulation)
    yield* FinalInboxes.checkEnded(simulation)
    yield* FinalCodes.checkForgotten(simulation)
    yield* FinalProxies.checkEnded(simulation)
    yield* FinalSubscriptions.checkRenewed(simulation, random.fork("renewals"))
    yield* FinalPayments.checkLearned(simulation)
    const survivors = new Set(hosts.flatMap(({ process }) => process ?? []))
    for (const host of all) if (!(yield* host.stop)) report(`${host.name} does not stop`)
    const evidence = yield* gather(simulation, faultsEnded, survivors)
    check(evidence, report)
    yield* judgeEnd(options.workload.expect, simulation, report)
    yield* audit(records.recorder.store, world.now, report)
    return outcomeOf(evidence, world)
  })

/** Whether all actors end. If time skips meanwhile, as when an actor of the last step begins, nobody has waited for it: they get as long again. */
const endInTime = (actors: ReadonlyArray<Fiber.Fiber<unknown>>, world: World): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    const since = world.now
    return Effect.flatMap(Effect.timeoutOption(Fiber.awaitAll(actors), ANSWERED_WITHIN), (ended) =>
      ended._tag === "None" && world.skippedTo > since ? endInTime(actors, world) : Effect.succeed(ended._tag === "Some")
    )
  })

/** Nothing is recorded yet. */
const newRecords = (recorder: LogRecorder, paid: Records["paid"]): Records => ({
  recorder,
  paid,
  ...{ calls: [], grants: [], recurring: [], openings: [], deliveries: [], attempts: [], observations: [] },
  ...{ posts: [], secrets: { told: new Map(), opened: new Map() }, promised: new Set(), ignoring: new Set() },
  ...{ mailings: [], addressHashes: new Map(), textings: [], textIds: new Map() },
  ...{ nodes: new Map(), admissions: [], carried: new Map(), countings: [], people: new PeopleRecords() }
})

const build = (options: SimulationOptions, hostCount: number | undefined): Effect.Effect<Simulation> =>
  Effect.gen(function* () {
    const { faults, random, report, workload, world } = options
    const recorder = new LogRecorder(world, yield* MemoryEventStore.make)
    let faultsEnded: FaultsEnded | undefined
    const isOver = () => faultsEnded !== undefined
    const gateway = new SimulatedGateway({ world, random: random.fork("gateway"), rate: () => (isOver() ? 0 : faults.upstreams) })
    const records = newRecords(recorder, gateway.payments)
    const relay = new People.SimulatedRelay(world, random.fork("relay"), () => (isOver() ? 0 : faults.upstreams / 2))
    const states = withPromises(yield* MemoryStateStore.make, records.promised)
    const { lateBy, appends } = faults
    const plan = appends === undefined ? {} : { plan: { appends } }
    const events = FaultyEventStore.make(recorder.store, { random: random.fork("planned"), lateBy, ...plan })
    let serials = 0
    const deliveries = new Deliveries()
    const injector: FaultInjector = {
      ...{ world, records, report, random: random.fork("weather"), isUndisturbed: Faults.areHostsUndisturbed(faults) },
      ...{ rate: () => (isOver() ? 0 : faults.upstreams), isOver, jobDelivered: deliveries.delivered }
    }
    const receivers = new Receivers({
      world,
      posts: records.posts,
      random: random.fork("receivers"),
      rate: () => (isOver() ? 0 : faults.receivers)
    })
    const shape = random.fork("shape")
    const runners = random.fork("runners")
    const documents = random.fork("documents").pick(["state", "events"] as const)
    const sessionTerms = Proxies.termsOf(random.fork("proxy sessions"))
    const deployment: Deployment = {
      ...{ world, events, states, faults, workload, injector },
      random: random.fork("hosts"),
      accounts: {
        queueLimit: shape.pick([10_000, 10_000, 6]),
        batchLimit: shape.pick([500, 500, 2]),
        idleAfter: shape.pick([60_000, 3_000])
      },
      jobs: { lease: runners.pick([30_000, 12_000]), concurrency: runners.pick([16, 2]), drain: runners.pick([10_000, 0]), documents },
      blobs: new Map(),
      files: new Map(),
      webhooks: options.webhooks === 0 ? undefined : webhookOptions(random.fork("webhook options")),
      receivers,
      inboxes: options.inboxes === 0 ? undefined : { domain: Inboxes.DOMAIN, upkeep: RECOVERY },
      ...{
        subscriptions: options.subscriptions > 0,
        codes: options.codes > 0,
        proxies: options.proxies === 0 ? undefined : sessionTerms,
        nodes: records.nodes
      },
      ...{ gateway: options.payments + options.subscriptions === 0 ? undefined : gateway, writes: { crash: 0, outage: 0 } },
      links: options.leading ? new Links({ world, random: random.fork("links"), faults, isOver }) : undefined,
      relay: options.people === 0 ? undefined : relay,
      onWarning: (host, message) => {
        const { attempts } = records
        const { now, skippedTo } = world
        if (!isExpectedWarning(message, { faults, faultsEnded, attempts, now, skippedTo })) report(`${host} logs: ${message}`)
      }
    }
    const founder = new Host("founder", {
      ...deployment,
      events: recorder.store,
      faults: Faults.none,
      jobs: { runner: false },
      ...{ webhooks: undefined, proxies: undefined, relay: undefined, links: undefined }
    })
    const accounts = yield* found(founder, offersOf(options), { verified: 1 + shape.below(3), trials: options.trials }, report)
    const hosts = hostsOf(deployment, hostCount ?? 1 + shape.below(3), runners)
    return {
      ...{ ...options, hosts, fresh: new Host("fresh", deployment), accounts, records, states, isOver },
      ...{ blobs: deployment.blobs, files: deployment.files, receivers, sessionTerms, gateway, relay },
      serial: () => ++serials,
      operations: new Map(workload.offers.map(({ operation }) => [operation.key, operation])),
      awaitDelivery: deliveries.next,
      endFaults: () => {
        faultsEnded = { at: world.now, length: recorder.length }
        events.calm()
        for (const host of hosts) host.calm()
        return faultsEnded
      }
    }
  })

/** Attempts at jobs that deliver their work. */
class Deliveries {
  readonly #waiting = new Map<string, Deferred.Deferred<void>>()

  readonly delivered = (jobId: string): void => {
    const waiting = this.#waiting.get(jobId)
    if (this.#waiting.delete(jobId) && waiting !== undefined) Deferred.doneUnsafe(waiting, Effect.void)
  }

  /** Waits for the next delivery of a job. */
  readonly next = (jobId: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      const waiting = this.#waiting.get(jobId) ?? Deferred.makeUnsafe()
      this.#waiting.set(jobId, waiting)
      return Deferred.await(waiting)
    })
}

/** Leases that last long enough that simulated hours cost little, and pauses short enough that the final phase sees the last attempt. */
const webhookOptions = (random: SeededRandom): Millrace.WebhookOptions => ({
  ...{ ttl: "1 minute", poll: "10 seconds", pauses: ["5 seconds", "15 seconds", "40 seconds"] },
  ...{ concurrency: random.pick([4, 1]), waitingLimit: random.pick([10_000, 3]), drain: random.pick([5_000, 0]) }
})

/** Adds every reservation that a host promises to make free to `promised`. */
const withPromises = (states: StateStore.StateStore["Service"], promised: Set<string>): StateStore.StateStore["Service"] => ({
  ...states,
  write: (changes) =>
    Effect.tap(states.write(changes), () =>
      Effect.sync(() => {
        for (const change of changes) if (change._tag === "put" && change.space === "unanswered") promised.add(change.key)
      })
    )
})

/** Some hosts only accept jobs; the last one always runs them, too. */
const hostsOf = (deployment: Deployment, count: number, random: SeededRandom): ReadonlyArray<Host> => {
  const isRunner = Array.from({ length: count }, (_, i) => random.chance(0.7) || i === count - 1)
  return isRunner.map((runner, i) => new Host(`h${i}`, { ...deployment, jobs: { ...deployment.jobs, runner } }))
}

/** The operations that callers call, with their first prices. */
const offersOf = ({
  codes,
  inboxes,
  payments,
  people,
  proxies,
  subscriptions,
  workload
}: SimulationOptions): ReadonlyArray<Pick<AnyOffer, "operation" | "price">> => [
  ...workload.offers,
  ...(inboxes === 0 ? [] : Inboxes.OFFERS),
  ...(codes === 0 ? [] : Codes.OFFERS),
  ...(proxies === 0 ? [] : Proxies.OFFERS),
  // Subscriptions are paid by payments
  ...(payments === 0 && subscriptions === 0 ? [] : Payments.OFFERS),
  ...(subscriptions === 0 ? [] : Subscriptions.OFFERS),
  ...(people === 0 ? [] : People.OFFERS)
]

/** Publishes the first prices, and opens verified accounts and others that begin with a trial. Returns their ids. */
const found = (
  founder: Host,
  offers: ReadonlyArray<Pick<AnyOffer, "operation" | "price">>,
  { trials, verified }: { readonly verified: number; readonly trials: number },
  report: Report
): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    yield* founder.start
    const endpoints = JobEndpoints.make(offers.map(({ operation }) => operation)).map((operation) => ({ operation, price: 0 }))
    const prices = Object.fromEntries([...offers, ...endpoints].map(({ operation, price }) => [operation.key, Credits.of(price)] as const))
    const open = Effect.gen(function* () {
      const registration = yield* Registration
      yield* (yield* PricePlan.PriceBook).publish(prices)
      const accounts: Array<string> = []
      for (let i = 0; i < verified + trials; i++) {
        const accountId = yield* registration.open(`caller${i}@example.com`)
        if (i < verified) yield* registration.verify(accountId)
        accounts.push(accountId)
      }
      return accounts
    })
    const accounts = yield* Effect.orDie(founder.request(open))
    if (!(yield* founder.stop)) report("the founder does not stop")
    return accounts
  })

const gather = (simulation: Simulation, faultsEnded: FaultsEnded, survivors: Evidence["survivors"]) =>
  Effect.gen(function* () {
    const { faults, leading, records, sessionTerms, states, world } = simulation
    const log = yield* Effect.orDie(Stream.runCollect(records.recorder.store.readAll(EventStore.start)))
    const keys = yield* Effect.orDie(states.list("vaultKeys", { limit: 100_000 }))
    const longestTimeout = Math.max(...offersOf(simulation).map(({ operation }) => Duration.toMillis(operation.timeout)))
    const vaultKeys = new Set(keys.map(({ key }) => key))
    return indexEvidence(records, { faults, faultsEnded, leading, sessionTerms, longestTimeout, end: world.now, log, survivors, vaultKeys })
  })

/** The audit must find nothing in the log. */
const audit = (store: EventStore.EventStore["Service"], at: number, report: Report) =>
  Effect.gen(function* () {
    const { problems } = yield* Effect.orDie(Effect.provideService(Audit.run({ at }), EventStore.EventStore, store))
    for (const { detail, position, rule, stream } of problems) report(`audit: ${stream} at ${position}: ${rule}: ${detail}`)
  })
