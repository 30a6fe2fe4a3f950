/** A store on a stand-in, and events to append to it. */
import assert from "node:assert/strict"
import { randomUUID } from "node:crypto"
import { EventStore, type StreamName } from "@millrace/event-sourcing"
import { KurrentDb, KurrentDbEventStore } from "@millrace/event-store-kurrentdb"
import { Effect, Exit, Schedule, type Scope, Stream } from "effect"
import { it } from "vitest"
import { type AppendCall, KurrentDbStandIn } from "./standin/index.ts"

export type Store = EventStore.EventStore["Service"]
export type Node = KurrentDbStandIn.KurrentDbStandIn
export type Events = readonly [EventStore.EventData, ...Array<EventStore.EventData>]

export const freshEvents = (count: number): Events => {
  const one = (): EventStore.EventData => ({ id: randomUUID(), type: "Happened", data: "{}", metadata: "{}" })
  return [one(), ...Array.from({ length: count - 1 }, one)]
}

export const freshStream = (): StreamName.StreamName => `facts-${randomUUID()}`

/** False for the store's own streams, such as the one that tells the server's time. */
export const isOfFacts = ({ stream }: { readonly stream: string }): boolean => stream.startsWith("facts-")

/** The appends to `facts-` streams that a node receives from now on. */
export const sentTo = (node: Node): ReadonlyArray<AppendCall> => {
  const sent: Array<AppendCall> = []
  node.faults.append = (call) => {
    if (isOfFacts(call)) sent.push(call)
    return undefined
  }
  return sent
}

export interface Opened {
  readonly node: Node
  readonly db: KurrentDb.KurrentDb["Service"]
  readonly store: Store
}

export const openOn = (
  connection: string,
  options: Partial<KurrentDb.KurrentDbOptions> = {}
): Effect.Effect<Omit<Opened, "node">, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const db = yield* KurrentDb.make({ connection, ...options })
    return { db, store: yield* Effect.provideService(KurrentDbEventStore.make, KurrentDb.KurrentDb, db) }
  })

export const open = (
  options: KurrentDbStandIn.Options & Partial<KurrentDb.KurrentDbOptions> = {}
): Effect.Effect<Opened, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const node = yield* KurrentDbStandIn.serve(options)
    return { node, ...(yield* openOn(node.url, options)) }
  })

/** A short deadline, for tests in which calls get no answer. */
export const IMPATIENT = { deadline: 750 }

/** A test with a node and a store of its own. */
export const fact = (
  title: string,
  body: (opened: Opened) => Effect.Effect<unknown, unknown, Scope.Scope>,
  options: Parameters<typeof open>[0] = {}
) => it(title, () => Effect.runPromise(Effect.asVoid(Effect.scoped(Effect.flatMap(open(options), body)))))

/** Fails when `effect` takes longer than 25 seconds. */
export const failsafe = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  // Made now, so that its stack tells who waited
  const hanging = new Error("Left hanging")
  return Effect.timeoutOrElse(effect, { duration: "25 seconds", orElse: () => Effect.die(hanging) })
}

/** Repeats what had no answer in time, as all readers of the product do: a busy machine may need longer than a short deadline. */
export const patiently = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.retry(effect, { while: (error) => error instanceof EventStore.StoreUnavailable, schedule: Schedule.spaced(20) })

/** Sends the identical batch again until the store knows its outcome, as an aggregate does. */
export const settle = (
  store: Store,
  stream: StreamName.StreamName,
  expected: EventStore.ExpectedRevision,
  events: Events
): Effect.Effect<EventStore.Appended, EventStore.WrongRevision | EventStore.AppendTooLarge> =>
  Effect.catchTag(store.append(stream, expected, events), ["AppendInDoubt", "StoreUnavailable"], () =>
    Effect.delay(settle(store, stream, expected, events), 20)
  )

export const errorOf = <E>(exit: Exit.Exit<unknown, E>): E => {
  assert(Exit.isFailure(exit), "it succeeded")
  const [reason] = exit.cause.reasons
  assert(reason?._tag === "Fail", `no failure: ${String(exit.cause)}`)
  return reason.error
}

export const tagOf = (exit: Exit.Exit<unknown, { readonly _tag: string }>): string => (Exit.isSuccess(exit) ? "ok" : errorOf(exit)._tag)

export const ids = (events: ReadonlyArray<EventStore.EventData>) => events.map(({ id }) => id)

export const readIds = (store: Store, stream: StreamName.StreamName) => Effect.map(Stream.runCollect(store.readStream(stream)), ids)

/** The ids of the next `count` events after a position. */
export const followed = (store: Store, after: EventStore.Position, count: number) =>
  store.subscribe(after).pipe(
    Stream.flatMap(({ events }) => Stream.fromIterable(events)),
    Stream.take(count),
    Stream.runCollect,
    Effect.map(ids)
  )
