/**
 * Wakes followers when the log has grown: at once for appends of this process, and by notifications for those of other processes. A
 * notification is only a hint and may be lost. So the store also polls the end of the log: often while it gets no notifications, rarely
 * otherwise.
 *
 * Notifications are sent after the commit, not in its transaction, because a transaction that notifies holds a server-wide lock during its
 * sync.
 */
import { Socket } from "node:net"
import { EventStore, type Head, parsePosition, WatchedHead } from "@millrace/event-sourcing"
import { type Context, Effect, Latch, type Scope } from "effect"
import pg from "pg"
import type { Connections, Settings } from "./Connections.ts"
import type { Fault } from "./Fault.ts"

/** Milliseconds between two polls without notifications. A poll costs the server some microseconds. */
const POLL = 50
/** Polls that are skipped while notifications arrive. */
const TRUSTED = 20
/** Milliseconds between two notifications of this process. Appends in between share the next one. */
const NOTIFY = 25
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
  const notify = Effect.suspend(() => {
    moved.closeUnsafe()
    return Effect.ignore(connections.read("SELECT pg_notify($1, $2)", channel, head.position))
  })
  yield* Effect.forkScoped(Effect.forever(moved.await.pipe(Effect.andThen(notify), Effect.andThen(Effect.sleep(NOTIFY)))))
  let newest = EventStore.start
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
    if (position !== undefined) return this.advance(position)
    // The first notification on this connection. The log may have grown before, so the next poll is not skipped
    this.#skipped = TRUSTED
  }

  lost(): void {
    this.#isHeard = false
  }
}

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
