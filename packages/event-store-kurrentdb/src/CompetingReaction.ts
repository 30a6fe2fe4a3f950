/**
 * A reaction that may park: its events are dealt out by the server to as many hosts as there are, each to one at a time, in no promised
 * order. What fails again and again is set aside, parked, where an operator finds it and has it delivered again. Nothing that moves money
 * is such a reaction: that reads in order and never gives up (`Reaction` of the kernel).
 */
import { type EventStore, Following, StreamName } from "@millrace/event-sourcing"
import { Cause, Effect, FiberSet, Schema, type Scope } from "effect"
import { type Delivery, type Driver, Fault, type GroupInfo, type Recorded } from "./Driver.ts"
import { KurrentDb, unavailable } from "./KurrentDb.ts"
import { decode, PAGE, textsOf } from "./KurrentLog.ts"
import { placeOf } from "./Position.ts"
import { filterOf } from "./Selecting.ts"

export interface Definition<E = never, R = never> extends Following.Selection {
  /** Names its group on the server. Never changes. */
  readonly name: string
  /** Its events may be parked, and come in any order: only what says so may compete. */
  readonly mayPark: true
  /** Must be idempotent: an event comes again after a crash, after a connection that broke, and when it took too long. */
  readonly react: (event: EventStore.RecordedEvent) => Effect.Effect<void, E, R>
  /** Where the group begins when it is not there yet. */
  readonly start: "beginning" | "now" | EventStore.Position
}

export interface Options {
  /** Events that this host reacts to at a time: 10. */
  readonly atOnce?: number
  /** Attempts after the first, before the server parks an event: 10. */
  readonly maxRetries?: number
  /** What takes longer than so many milliseconds goes to another host, too: 30 seconds. */
  readonly messageTimeout?: number
}

export interface Status {
  /** Whether this host is one of those who compete. */
  readonly connected: boolean
  /** Events that were done here since the start. */
  readonly done: number
  /** The last event that failed here, until one is done. */
  readonly failing: (Following.Retrying & { readonly stream: string; readonly revision: number; readonly type: string }) | undefined
  /** What keeps this host from competing, and how often it was tried. */
  readonly trouble: Following.Retrying | undefined
}

export interface CompetingReaction {
  readonly status: Effect.Effect<Status>
}

/** No host has competed for events under this name yet. */
export class NoSuchReaction extends Schema.TaggedError<NoSuchReaction>()("NoSuchReaction", { name: Schema.String }) {}

/** An event that was set aside. */
export type Parked = Omit<EventStore.RecordedEvent, "position">

const groupOf = (name: string) => `millrace-${name}`

/** Waiting to compete again doubles so many times: to about a second and a half. */
const DOUBLINGS = 5

/** Begins to compete, in the background, for as long as the scope is open. */
export const make = <E, R>(
  definition: Definition<E, R>,
  { atOnce = 10, maxRetries = 10, messageTimeout = 30_000 }: Options = {}
): Effect.Effect<CompetingReaction, never, KurrentDb | Scope.Scope | R> =>
  Effect.gen(function* () {
    const { name, react, start } = definition
    const { clients, log } = yield* KurrentDb
    const run = yield* FiberSet.makeRuntime<R>()
    const concerns = Following.selects(definition)
    const group = groupOf(name)

    let connected = false
    let attempts = 0
    let done = 0
    let failing: Status["failing"]
    let trouble: Following.Retrying | undefined

    const created = Effect.suspend(() => {
      const from = start === "beginning" ? "start" : start === "now" ? "end" : (placeOf(start) ?? "start")
      const settings = { start: from, filter: filterOf(definition), maxRetries, messageTimeout } as const
      return clients
        .call((driver) => driver.createGroup(group, settings))
        .pipe(
          Effect.catchIf(
            ({ kind }) => kind === "groupExists",
            () => Effect.void
          )
        )
    })

    const deal = (delivery: Delivery): Effect.Effect<void, never, R> =>
      Effect.gen(function* () {
        if (!log.isOurs(delivery.event)) return delivery.settle("ack")
        const event = yield* Effect.exit(Effect.try({ try: () => decode(delivery.event), catch: (error) => error }))
        // Nobody will ever be able to read it
        if (event._tag === "Failure") return delivery.settle("park", Following.reasonOf(event.cause))
        if (!concerns(event.value)) return delivery.settle("ack")
        const cause = yield* Effect.as(react(event.value), undefined).pipe(Effect.catchCause((cause) => Effect.succeed(cause)))
        if (cause === undefined) {
          done++
          failing = undefined
          return delivery.settle("ack")
        }
        if (Cause.hasInterruptsOnly(cause)) return
        const { stream, revision, type } = event.value
        const reason = Following.reasonOf(cause)
        failing = { stream, revision, type, reason, attempts: delivery.retries + 1 }
        // Later and later, but before the server believes that this host is gone
        yield* Effect.timeoutOption(Following.backOff(delivery.retries + 1), Math.ceil(messageTimeout / 2))
        delivery.settle("retry", reason)
      })

    const unconfirmed = Effect.delay(
      Effect.suspend(() =>
        connected ? Effect.never : Effect.fail(new Fault({ kind: "noAnswer", message: `No group within ${clients.deadline} ms` }))
      ),
      clients.deadline
    )

    const compete = Effect.gen(function* () {
      for (;;) {
        const consumed = clients.hold("consumer", (driver) =>
          Effect.raceFirst(
            driver.consume(group, atOnce, (message) => {
              if (message._tag === "delivery") return void run(deal(message))
              connected = true
              attempts = 0
              trouble = undefined
            }),
            unconfirmed
          )
        )
        const { message } = yield* Effect.flip(Effect.andThen(created, consumed))
        connected = false
        attempts++
        trouble = { reason: message, attempts }
        yield* Following.backOff(Math.min(attempts, DOUBLINGS))
      }
    })

    yield* Effect.forkScoped(compete)
    return { status: Effect.sync(() => ({ connected, done, failing, trouble })) }
  })

/** How many events a reaction has parked, and how many are being reacted to. */
export const info = (name: string): Effect.Effect<GroupInfo, NoSuchReaction | EventStore.StoreUnavailable, KurrentDb> =>
  ofGroup(name, (driver, group) => driver.groupInfo(group))

/**
 * The events that a reaction has parked, oldest first, at most `limit`. The server keeps them where only administrators may look: where it
 * asks who calls, that takes the credentials of one.
 */
export const parked = (name: string, limit = 1_000): Effect.Effect<ReadonlyArray<Parked>, EventStore.StoreUnavailable, KurrentDb> =>
  KurrentDb.use(({ clients }) =>
    Effect.gen(function* () {
      const stream = `$persistentsubscription-$all::${groupOf(name)}-parked`
      const found = yield* clients.call((driver) => driver.readStream(stream, "forwards", undefined, Math.min(limit, PAGE * 2), true))
      return yield* Effect.try({
        try: () => found.flatMap(parkedOf),
        catch: () => new Fault({ kind: "refused", message: "A parked event is not UTF-8" })
      })
    }).pipe(Effect.mapError(unavailable))
  )

const parkedOf = (event: Recorded): ReadonlyArray<Parked> => {
  const { id, type, stream, revision } = event
  return StreamName.isStreamName(stream) ? [{ id, type, stream, revision, ...textsOf(event) }] : []
}

/** Has everything that a reaction parked delivered again. What fails again is parked again. */
export const replay = (name: string): Effect.Effect<void, NoSuchReaction | EventStore.StoreUnavailable, KurrentDb> =>
  ofGroup(name, (driver, group) => driver.replayParked(group))

const ofGroup = <A>(name: string, ask: (driver: Driver, group: string) => Effect.Effect<A, Fault>) =>
  KurrentDb.use(({ clients }) =>
    Effect.mapError(
      clients.call((driver) => ask(driver, groupOf(name))),
      (fault) => (fault.kind === "groupMissing" ? new NoSuchReaction({ name }) : unavailable(fault))
    )
  )
