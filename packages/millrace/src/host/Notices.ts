/** What a host is told while it runs: notices of accounts, credits and jobs, whichever host on the store they come from. */
import { Notices as Core, type Registration } from "@millrace/core"
import { EventStore, Following } from "@millrace/event-sourcing"
import { Effect, Fiber, Queue, Schedule, type Scope, Semaphore } from "effect"
import { assertListening } from "./Mistakes.ts"
import type { Run } from "./Run.ts"

export type NoticeName = Core.Name

/** The notices by name, each with its facts. Amounts in credits. */
export type Notices = { readonly [Name in NoticeName]: Core.Facts<Name> }

/** A notice, with the account that it is about. */
export type Notice<Name extends NoticeName> = Notices[Name] & {
  readonly name: Name
  /** Names the notice for ever, at every host and in webhooks. */
  readonly id: string
  readonly account: string
  /** The host's own id of the account, if it has one. */
  readonly reference?: string
  readonly at: Date
  /** The place of its event in the log. */
  readonly position: string
}

export interface Listening {
  /**
   * Calls `handler` for each notice of this name from now on, one after another, until the function that it resolves to is called or the host
   * closes. What happens while no host listens is in the log, and is not told later. What the handler throws is logged.
   */
  readonly on: <Name extends NoticeName>(
    name: Name,
    handler: (notice: Notice<Name>) => void | PromiseLike<void>
  ) => Promise<() => Promise<void>>
}

/** Notices that wait for one handler. When one has this many, all wait for it. */
const WAITING = 1_000

/** A store that does not answer is asked again until it does. */
const PAUSES = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("10 seconds")])

type Needs = Core.Sources | Registration | EventStore.EventStore

interface Listener {
  readonly name: NoticeName
  /** What happened up to this place was before it listened. */
  readonly after: EventStore.Position
  readonly waiting: Queue.Queue<Core.Notice>
}

/** `scope`: that of the host, whose end ends the listening. All handlers share one subscription to the log. */
export const listeningOf = (run: Run<Needs>, scope: Scope.Scope): Listening => {
  const listeners = new Set<Listener>()
  /** Lets handlers come and go one at a time. */
  const turns = Semaphore.makeUnsafe(1)
  let following: Fiber.Fiber<never> | undefined

  const join = Effect.fnUntraced(function* (name: NoticeName, handler: (notice: Core.Notice) => Effect.Effect<void, never, Needs>) {
    const events = yield* EventStore.EventStore
    const listener: Listener = { name, after: yield* events.head, waiting: yield* Queue.bounded<Core.Notice>(WAITING) }
    const hearing = yield* Effect.forkIn(Effect.forever(Effect.flatMap(Queue.take(listener.waiting), handler)), scope)
    listeners.add(listener)
    following ??= yield* Effect.forkIn(follow(listener.after, listeners), scope)
    return { listener, hearing }
  })

  const leave = Effect.fnUntraced(function* ({ hearing, listener }: Effect.Success<ReturnType<typeof join>>) {
    listeners.delete(listener)
    yield* Queue.shutdown(listener.waiting)
    yield* Fiber.interrupt(hearing)
    if (listeners.size > 0 || following === undefined) return
    yield* Fiber.interrupt(following)
    following = undefined
  })

  return {
    on: async (name, handler) => {
      assertListening(name, handler)
      const joined = await run(turns.withPermit(join(name, (notice) => tell(notice, (told) => handler(told as never)))))
      return () => run(turns.withPermit(leave(joined)))
    }
  }
}

/** Follows the log from a place on, and hands each notice to those who listen to its name. */
const follow = (start: EventStore.Position, listeners: ReadonlySet<Listener>) => {
  let position = start
  const hand = Effect.fnUntraced(function* (event: EventStore.RecordedEvent) {
    const hearers = [...listeners].filter(({ after }) => event.position > after)
    const notices = Core.of(event, (name) => hearers.some((hearer) => hearer.name === name))
    for (const notice of yield* Effect.retry(notices, { while: ({ _tag }) => _tag !== "StreamRefused", schedule: PAUSES }))
      for (const { name, waiting } of hearers) if (name === notice.name) yield* Queue.offer(waiting, notice)
  })
  const take = (event: EventStore.RecordedEvent) =>
    Effect.andThen(
      Effect.catchCause(hand(event), (cause) => Effect.logError("The notices of an event failed", cause)),
      Effect.sync(() => {
        position = event.position
      })
    )
  return Following.follow(
    () => position,
    ({ events }) => Effect.forEach(events, take, { discard: true }),
    () => {}
  )
}

const tell = Effect.fnUntraced(
  function* (notice: Core.Notice, handler: (told: object) => void | PromiseLike<void>) {
    const { account, at, facts, id, name, position } = notice
    const reference = yield* Effect.retry(Core.referenceOf(account), PAUSES)
    const told = { ...facts, name, id, account, ...(reference === undefined ? {} : { reference }), at: new Date(at), position }
    yield* Effect.promise(async () => handler(told))
  },
  (telling, { name }) => Effect.catchCause(telling, (cause) => Effect.logError(`A handler of ${name} failed`, cause))
)
