/**
 * How followers hear that the log has moved. They hear of appends of this process at once, and of other processes by notifications.
 * A notification is only a hint, and none has to arrive: the store also looks at the end of the log, often while it hears no
 * notifications, seldom otherwise.
 *
 * Notifications are sent after the commit, not within it: a transaction that notifies holds a lock of the whole server over its sync.
 */
import { Socket } from "node:net"
import { type EventStore, type Head, parsePosition, WatchedHead } from "@millrace/event-sourcing"
import { Effect, Latch, type Scope } from "effect"
import pg from "pg"
import type { Connections, Settings } from "./Connections.ts"
import type { Fault } from "./Fault.ts"

/** Between two looks while no notifications are heard, in milliseconds; each costs the server some microseconds. */
const POLL = 50
/** Looks that are left out while notifications are heard. */
const TRUSTED = 20
/** Between two notifications of this process, in milliseconds: appends in between share the next. */
const NOTIFY = 25
/** Between two questions whether the listening connection still lives, in milliseconds. */
const PULSE = 10_000
/** Before listening again, in milliseconds. */
const AGAIN = 2_000

export interface Wake {
  readonly head: Head
  /** Tells that this process appended up to a position. */
  readonly appended: (position: EventStore.Position) => void
}

/** `last`: the newest position of the log. Without `listening`, nothing is notified and nothing listened for. */
export const make = Effect.fnUntraced(function* (
  last: Effect.Effect<EventStore.Position, Fault>,
  connections: Connections,
  schema: string,
  listening: Settings | undefined
): Effect.fn.Return<Wake, Fault, Scope.Scope> {
  const channel = `${schema}_events`
  const head = new NotifiedHead(yield* last, last, yield* Effect.scope)
  if (listening === undefined) return { head, appended: (position) => head.advance(position) }

  // Whether a notification comes through is found out by sending one
  const test = Effect.ignore(connections.read("SELECT pg_notify($1, '')", channel))
  yield* Effect.forkScoped(listen(listening, channel, head, test))
  const moved = Latch.makeUnsafe(false)
  const notify = Effect.suspend(() => {
    moved.closeUnsafe()
    return Effect.ignore(connections.read("SELECT pg_notify($1, $2)", channel, head.position))
  })
  yield* Effect.forkScoped(Effect.forever(moved.await.pipe(Effect.andThen(notify), Effect.andThen(Effect.sleep(NOTIFY)))))
  return {
    head,
    appended: (position) => {
      head.advance(position)
      moved.openUnsafe()
    }
  }
})

/** The end of the log: it is looked for seldom while notifications are heard, often otherwise. */
class NotifiedHead extends WatchedHead {
  #skipped = 0
  /** Whether a notification was heard on the connection that listens now. */
  #isHeard = false

  constructor(end: EventStore.Position, last: Effect.Effect<EventStore.Position, Fault>, scope: Scope.Scope) {
    const look = Effect.suspend(() => {
      if (this.#isHeard && ++this.#skipped < TRUSTED) return Effect.succeed(this.position)
      this.#skipped = 0
      return last
    })
    super(end, look, POLL, scope)
  }

  heard(payload: string): void {
    this.#isHeard = true
    const position = parsePosition(payload)
    if (position !== undefined) return this.advance(position)
    // The first on this connection: the log may have moved before it listened, so the next look is not left out
    this.#skipped = TRUSTED
  }

  lost(): void {
    this.#isHeard = false
  }
}

/** Listens for ever, on one connection after another. Runs `test` whenever it has begun. */
const listen = ({ config }: Settings, channel: string, head: NotifiedHead, test: Effect.Effect<void>): Effect.Effect<never> => {
  const tell = (effect: Promise<unknown>) => Effect.tryPromise({ try: () => effect, catch: () => "lost" as const })
  const once = Effect.gen(function* () {
    const socket = yield* Effect.acquireRelease(
      Effect.sync(() => new Socket()),
      (opened) => Effect.sync(() => opened.destroy())
    )
    const client = new pg.Client({ ...config, stream: () => socket })
    client.on("error", () => {})
    client.on("notification", ({ payload }) => head.heard(payload ?? ""))
    const ended = Effect.callback<void>((resume) => {
      client.once("end", () => resume(Effect.void))
    })
    const alive = Effect.gen(function* () {
      yield* tell(client.connect())
      yield* tell(client.query(`LISTEN ${channel}`))
      yield* test
      for (;;) {
        yield* Effect.sleep(PULSE)
        yield* Effect.timeout(tell(client.query("SELECT 1")), PULSE)
      }
    })
    yield* Effect.raceFirst(alive, ended)
  }).pipe(Effect.scoped, Effect.ignore, Effect.ensuring(Effect.sync(() => head.lost())))
  return Effect.forever(Effect.andThen(once, Effect.sleep(AGAIN)))
}
