/** The connection of a host to one node or cluster: the clients, the log, and the subscription that all followers share. */
import { EventStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer } from "effect"
import * as Clients from "./Clients.ts"
import * as ConnectionString from "./ConnectionString.ts"
import type { Fault } from "./Driver.ts"
import * as Feed from "./Feed.ts"
import * as KurrentLog from "./KurrentLog.ts"
import { filterOf } from "./Selecting.ts"

export interface KurrentDbOptions {
  /** `kurrentdb://` or `esdb://`, with `+discover` for a DNS name whose addresses are the nodes. */
  readonly connection: string
  /** Milliseconds that a call may take. Default: the connection's `defaultDeadline`, else 10 seconds. */
  readonly deadline?: number
  /** All categories of the log. Needed if other programs keep streams on the same nodes: the server then excludes these. */
  readonly categories?: ReadonlyArray<string>
  /** Milliseconds between two comparisons of the subscription with the end of the log. Default: 5 seconds. */
  readonly look?: number
}

const DEADLINE = 10_000
const LOOK = 5_000

export interface Status extends Feed.Status {
  /** How often the client was replaced because a call had no answer. */
  readonly renewals: number
}

/** Connects at the first call, so an unreachable node causes an error only then. */
export const make = (options: KurrentDbOptions) =>
  Effect.gen(function* () {
    // The client of the nodes is large, and most hosts have another store
    const Driver = yield* Effect.promise(() => import("./eventstoredb/Driver.ts"))
    const connection = yield* ConnectionString.parse(options.connection)
    const deadline = options.deadline ?? connection.defaultDeadline ?? DEADLINE
    const clients = yield* Clients.make(() => Driver.connect(connection, deadline), deadline)
    const { categories, look = LOOK } = options
    const log = KurrentLog.make(clients, categories)
    const feed = yield* Feed.make(clients, log, filterOf(categories), look)
    /** How far behind the subscription is, and why: for `/ready`. */
    const status = Effect.map(feed.status, (fed): Status => ({ ...fed, renewals: clients.renewals() }))
    return { clients, log, feed, status }
  })

export class KurrentDb extends Context.Service<KurrentDb, Effect.Success<ReturnType<typeof make>>>()(
  "@millrace/event-store-kurrentdb/KurrentDb"
) {}

export const layer = (options: KurrentDbOptions): Layer.Layer<KurrentDb, ConnectionString.InvalidConnectionString> =>
  Layer.effect(KurrentDb, make(options))

/** The error of a read, or of a write that certainly wrote nothing. */
export const unavailable = (fault: Fault): EventStore.StoreUnavailable => new EventStore.StoreUnavailable({ reason: fault.message })
