/**
 * Wakes followers when the log has grown: at once for appends of this process, and by notifications for those of other processes. A
 * notification is only a hint and may be lost. So the store also polls the end of the log: often while it gets no notifications, rarely
 * otherwise.
 *
 * Notifications are sent after the commit, not in its transaction, because a transaction that notifies holds a server-wide lock during its
 * sync. Each one wakes all hosts, and whoever is woken reads up to the end of the log. So while other hosts notify, a host holds its own
 * notification back: the next one of another host serves for both.
 */
import { Socket } from "node:net"
import { EventStore, type Head, parsePosition, WatchedHead } from "@millrace/event-sourcing"
import { type Context, Effect, Latch, Random, type Scope } from "effect"
import pg from "pg"
import type { Connections, Settings } from "./Connections.ts"
import type { Fault } from "./Fault.ts"

/** Milliseconds between two polls without notifications. A poll costs the server some microseconds. */
const POLL = 50
/** Polls that are skipped while notifications arrive. */
const TRUSTED = 20
/** Milliseconds between two notifications of this process. Appends in between share the next one. */
const NOTIFY = 25
/** The most milliseconds that a notification is held back while others notify. */
const HELD_BACK = 100
/** Milliseconds between two checks of the listening connection. */
const PULSE = 10_000
/** Milliseconds before listening again. */
const AGAIN = 2_000

export interface Wake {
  readonly head: Head
  /** Reports that this process has appended up to a position. */
  readonly appended: (position: EventStore.Position) => void
}

/** `last`: reads the newest position of the log. Without `listening`, no notifications are sent or received. */
export const make = Effect.fnUntraced(function* (
  last: Effect.Effect<EventStore.Position, Fault>,
  connections: Connections,
  schema: string,
  listening: Settings | undefined
): Effect.fn.Return<Wake, Fault, Scope.Scope> {
  const channel = `${schema}_events`
  const head = new NotifiedHead(yield* last, last, yield* Effect.context<Scope.Scope>())
  if (listening === undefined) return { head, appended: (position) => head.advance(position) }

  // Sends a notification to find out whether it arrives
  const test = Effect.ignore(connections.read("SELECT pg_notify($1, '')", channel))
  yield* Effect.forkScoped(listen(listening, channel, head, test))
  const moved = Latch.makeUnsafe(false)
  let newest = EventStore.start
  const notify = Effect.suspend(() => {
    moved.closeUnsafe()
    if (head.told >= newest) return Effect.void
    const { position } = head
    head.says(position)
    return Effect.andThen(Effect.ignore(connections.read("SELECT pg_notify($1, $2)", channel, position)), Effect.sleep(NOTIFY))
  })
  yield* Effect.forkScoped(Effect.forever(moved.await.pipe(Effect.andThen(head.quiet), Effect.andThen(notify))))
  return {
    head,
    appended: (position) => {
      // A transaction whose appends were all refused has written nothing to tell of
      if (position <= newest) return
      newest = position
      head.advance(position)
      moved.openUnsafe()
    }
  }
})

/** Reads the end of the log: rarely while notifications arrive, often otherwise. */
class NotifiedHead extends WatchedHead {
  #skipped = 0
  /** Whether a notification arrived on the current connection. */
  #isHeard = false
  /** The newest position of which a notification told. */
  told = EventStore.start
  /** The position of which this process has notified last. */
  #said = EventStore.start
  /** When another process was heard last, in milliseconds of the process's monotonic clock. */
  #heardAt = Number.NEGATIVE_INFINITY

  constructor(end: EventStore.Position, last: Effect.Effect<EventStore.Position, Fault>, store: Context.Context<Scope.Scope>) {
    const look = Effect.suspend(() => {
      if (this.#isHeard && ++this.#skipped < TRUSTED) return Effect.succeed(this.position)
      this.#skipped = 0
      return last
    })
    super(end, look, POLL, store)
  }

  heard(payload: string): void {
    this.#isHeard = true
    const position = parsePosition(payload)
    if (position !== undefined) {
      if (position > this.told) this.told = position
      if (position !== this.#said) this.#heardAt = performance.now()
      return this.advance(position)
    }
    // The first notification on this connection. The log may have grown before, so the next poll is not skipped
    this.#skipped = TRUSTED
  }

  lost(): void {
    this.#isHeard = false
  }

  /** This process notifies of a position. */
  says(position: EventStore.Position): void {
    this.#said = position
  }

  /** Waits until no other process was heard for a moment, or for too long. */
  readonly quiet: Effect.Effect<void> = Effect.suspend(() => {
    const since = performance.now()
    const wait: Effect.Effect<void> = Effect.flatMap(Random.next, (random) => {
      const left = heldBack({ since, heardAt: this.#heardAt, now: performance.now(), random })
      return left > 0 ? Effect.andThen(Effect.sleep(Math.ceil(left)), wait) : Effect.void
    })
    return wait
  })
}

/**
 * How many milliseconds a notification still waits that was due `since`, if another process was heard at `heardAt`. The time is random,
 * from 0 to 1, so that one of many speaks first, and the others hear it.
 */
export const heldBack = (at: { readonly since: number; readonly heardAt: number; readonly now: number; readonly random: number }): number =>
  Math.max(0, Math.min(at.heardAt + NOTIFY * (1 + at.random), at.since + HELD_BACK) - at.now)

/** Listens for ever, and reconnects after each failure. Runs `test` after each connect. */
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
