/** One life of a host: all of Millrace as one process, over stores with faults. */
import { createHash } from "node:crypto"
import type { Charge, Operation } from "@millrace/core"
import { BlobStore, MasterKey, Millrace, type ProxyNodes, type ProxySessions, SignIn, Vault, WebhookSender } from "@millrace/core"
import { type Aggregate, EventStore, StateStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Scope, Stream } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import * as Codes from "./codes/Endpoints.ts"
import type { Records } from "./Evidence.ts"
import type { Faults } from "./Faults.ts"
import * as FaultyOperation from "./FaultyOperation.ts"
import * as FaultyStores from "./FaultyStores.ts"
import * as Inboxes from "./inboxes/Endpoints.ts"
import * as JobEndpoints from "./JobEndpoints.ts"
import type { Links } from "./Links.ts"
import * as Network from "./Network.ts"
import * as Payments from "./payments/Endpoints.ts"
import type { SimulatedGateway } from "./payments/Gateway.ts"
import * as People from "./people/Endpoints.ts"
import * as Proxies from "./proxies/Endpoints.ts"
import type { Receivers } from "./Receivers.ts"
import { Disconnected } from "./Records.ts"
import * as Subscriptions from "./subscriptions/Endpoints.ts"
import type { FaultInjector } from "./UpstreamFaults.ts"
import * as UserWork from "./UserWork.ts"
import type { AnyWorkload, HostServices, SimulatedOperation } from "./Workload.ts"
import type { Process, World } from "./World.ts"

/** The services of a host that callers and administrators use. */
export type Services = HostServices | Charge.Charge | ProxySessions | ProxyNodes

/** The files that jobs stored: the SHA-256 of each in hex, by its id in the blob store. */
export type Files = Map<string, string>

/** What all hosts share. */
export interface Deployment {
  readonly world: World
  readonly events: EventStore.EventStore["Service"]
  readonly states: StateStore.StateStore["Service"]
  readonly faults: Faults
  readonly workload: AnyWorkload
  readonly injector: FaultInjector
  readonly random: SeededRandom
  readonly accounts: Pick<Aggregate.Options<never>, "queueLimit" | "batchLimit" | "idleAfter">
  readonly jobs: Millrace.JobOptions
  readonly blobs: FaultyStores.Blobs
  readonly files: Files
  /** How this host delivers webhooks; undefined if there are none. */
  readonly webhooks: Millrace.WebhookOptions | undefined
  readonly receivers: Receivers
  /** The inboxes of hosts; undefined if there are none. */
  readonly inboxes: Millrace.InboxOptions | undefined
  /** Whether hosts have public numbers. */
  readonly codes: boolean
  /** The terms of proxy sessions; undefined if there are none. */
  readonly proxies: Proxies.Terms | undefined
  /** The proxy nodes of all processes. */
  readonly nodes: Records["nodes"]
  /** What takes payments; undefined if hosts take none. */
  readonly gateway: SimulatedGateway | undefined
  /** Whether hosts have plans. */
  readonly subscriptions: boolean
  /** What brings people's mail; undefined if nobody can sign in. */
  readonly relay: People.SimulatedRelay | undefined
  /** The links between hosts, if one leads each account. */
  readonly links: Links | undefined
  /** Writes of all hosts so far: at the stage of the planned crash, and those sent if an outage is planned. */
  readonly writes: { crash: number; outage: number }
  /** Gets every warning and error that a host logs. */
  readonly onWarning: (host: string, message: string) => void
}

/** Recovery runs rarely enough that simulated hours cost little. */
export const RECOVERY = { ttl: "1 minute", poll: "10 seconds", sweepEvery: "30 seconds" } as const

/** Of the lots that administrators grant, those of ten minutes and of a day are announced. */
const EXPIRY_NOTICE = "5 minutes"

const MASTER_KEY = new Uint8Array(32).fill(7)

/** A host that has started. */
export interface Running {
  readonly process: Process
  readonly services: Context.Context<Services>
  readonly operations: ReadonlyArray<SimulatedOperation>
  readonly scope: Scope.Closeable
}

/** A host that has not started yet, and its stores. */
export interface Prepared {
  readonly events: FaultyStores.FaultyEvents
  readonly states: FaultyStores.FaultyStateStore
  /** Starts it. Fails with what kept it from starting, or with `Disconnected` if its process ends first. */
  readonly start: Effect.Effect<Running, unknown>
}

export const prepare = (deployment: Deployment, connection: Network.Connection, random: SeededRandom, isCalm: () => boolean): Prepared => {
  const { accounts, blobs, faults, files, injector, jobs, workload, world } = deployment
  const { process } = connection
  const events = FaultyStores.faultyEvents(deployment.events, faults, random.fork("events"))
  const states = FaultyStores.faultyStates(deployment.states, faults, random.fork("states"), (what) => world.note(process.name, what))
  const shelf = Network.shelf(connection, blobs, faults, random.fork("blobs"), isCalm)
  const mail = deployment.inboxes === undefined ? [] : Inboxes.OFFERS
  const codes = deployment.codes ? Codes.OFFERS : []
  const sessions = deployment.proxies === undefined ? {} : { proxies: deployment.proxies }
  const nodes = deployment.proxies === undefined ? [] : Proxies.OFFERS
  const payments = deployment.gateway === undefined ? [] : Payments.OFFERS
  const plans = deployment.subscriptions ? Subscriptions.OFFERS : []
  const keys = deployment.relay === undefined ? [] : People.OFFERS
  const all = [...workload.offers, ...mail, ...codes, ...nodes, ...payments, ...plans, ...keys]
  const offered: ReadonlyArray<Operation.Any> = all.map(({ operation }) => operation)
  const endpoints: ReadonlyArray<SimulatedOperation> = JobEndpoints.make(offered)
  const stores = Layer.mergeAll(
    Layer.succeed(EventStore.EventStore, Network.events(connection, events.store)),
    Layer.succeed(StateStore.StateStore, Network.states(connection, states)),
    Layer.orDie(MasterKey.layer(MASTER_KEY))
  )
  let operations: ReadonlyArray<SimulatedOperation> = []
  const layer = Layer.unwrap(
    Effect.map(servicesOf(deployment, process), (services) => {
      operations = [...offered.map((operation) => FaultyOperation.make(operation, { ...injector, services, process })), ...endpoints]
      const background = { recovery: RECOVERY, expiryNotice: EXPIRY_NOTICE } as const
      const host = Millrace.layer({
        operations,
        late: faults.late,
        ...background,
        accounts,
        jobs,
        payments: { ...Payments.terms, ...Subscriptions.terms },
        ...sessions
      })
      return deployment.links === undefined ? host : Layer.provideMerge(deployment.links.leading(process, operations), host)
    })
  ).pipe(
    withWebhooks(deployment, process),
    withNode(deployment, process),
    withPeople(deployment),
    Layer.provideMerge(inboxesOf(deployment)),
    Layer.provideMerge(deployment.gateway?.layer ?? Layer.empty),
    Layer.provideMerge(deployment.codes ? Layer.provide(Codes.receiver, Vault.Vault.layer) : Layer.empty),
    Layer.provideMerge(Layer.provideMerge(fileStore(shelf, files), stores))
  )
  const scope = Scope.makeUnsafe()
  const built = Layer.buildWithMemoMap(layer, Layer.makeMemoMapUnsafe(), scope)
  const start = process.ask(world.outside, built, Context.empty(), Effect.fail(new Disconnected()))
  return { events, states, start: Effect.map(start, (services) => ({ process, services, operations, scope })) }
}

/** The host with its webhooks, if there are any. */
const withWebhooks =
  ({ receivers, webhooks }: Deployment, process: Process) =>
  <A, E, R>(host: Layer.Layer<A, E, R>) =>
    webhooks === undefined
      ? host
      : Millrace.webhooks(webhooks).pipe(
          Layer.provideMerge(Layer.succeed(WebhookSender, receivers.senderOf(process))),
          Layer.provideMerge(host)
        )

/** The host with its proxy node, if there are any. */
const withNode =
  ({ nodes, proxies }: Deployment, process: Process) =>
  <A, E, R>(host: Layer.Layer<A | ProxyNodes, E, R>) =>
    proxies === undefined ? host : Layer.provideMerge(Proxies.announced(process, nodes), host)

/** The host with what people sign in by, if they can. */
const withPeople =
  ({ relay }: Deployment) =>
  <A, E, R>(host: Layer.Layer<A | Millrace.Administration, E, R>) =>
    relay === undefined
      ? host
      : SignIn.layer.pipe(Layer.provideMerge(Millrace.sessions(RECOVERY)), Layer.provide(relay.layer), Layer.provideMerge(host))

/** The inboxes of a host, if there are any. */
const inboxesOf = ({ inboxes }: Deployment) =>
  inboxes === undefined ? Layer.empty : Layer.provide(Millrace.inboxes(inboxes), [Inboxes.reader, Vault.Vault.layer])

/** Builds the services of the workload. */
const servicesOf = ({ injector, workload }: Deployment, process: Process) => {
  const site = { ...injector, process, services: Context.empty() }
  return Effect.flatMap(Effect.scope, (scope) => {
    const built = Layer.buildWithScope(workload.services, scope)
    const run = UserWork.run(site, "the layer `services` of the workload", Number.POSITIVE_INFINITY, built)
    // It is built before the host, so it needs nothing of it
    return run as Effect.Effect<Context.Context<never>>
  })
}

/** The blob store of a host. It notes the hash of every file in `files`. */
const fileStore = (shelf: BlobStore.Shelf, files: Files) =>
  Layer.effect(
    BlobStore.BlobStore,
    Effect.map(BlobStore.make(shelf), (store) =>
      BlobStore.BlobStore.of({
        ...store,
        put: (subject, content, named) =>
          Effect.tap(store.put(subject, content, named), ({ id }) =>
            Effect.sync(() => {
              if (!Stream.isStream(content)) files.set(id, createHash("sha256").update(content).digest("hex"))
            })
          )
      })
    )
  ).pipe(Layer.provide(Vault.Vault.layer))
