/**
 * How those who wait for the end of the log hear that it moved. What this process appends they hear at once. Of other processes a
 * notification tells, where it gets through; behind it somebody looks, often while no notification was ever heard, seldom otherwise.
 * So a notification is only ever a hint, and none has to arrive.
 *
 * Notifications are sent after the commit, not within it: a transaction that notifies holds a lock of the whole server over its sync.
 */
import { Socket } from "node:net"
import { type EventStore, Head } from "@millrace/event-sourcing"
import { Effect, type Scope } from "effect"
import pg from "pg"
import type { Connections, Settings } from "./Connections.ts"
import type { Fault } from "./Fault.ts"
import { type Place, type PostgresLog, positionOf } from "./PostgresLog.ts"

/** Between two looks while notifications are not heard, in milliseconds; each costs the server some microseconds. */
const POLL = 50
/** Looks that are left out while they are heard. */
const TRUSTED = 20
/** Between two notifications of this process, in milliseconds: what is appended meanwhile shares the next. */
const NOTIFY = 25
/** Between two questions whether the listening connection still lives, in milliseconds. */
const PULSE = 10_000
/** Before listening again, in milliseconds: meanwhile somebody looks. */
const AGAIN = 2_000

export interface Wake {
  readonly head: Head
  /** Tells that this process appended up to a place. */
  readonly appended: (place: EventStore.Position) => void
}

class WatchedHead extends Head {
  waiting = 0
  /** Told when somebody begins to wait. */
  onWait: () => void = () => {}

  override past(position: EventStore.Position): Effect.Effect<void> {
    return Effect.acquireUseRelease(
      Effect.sync(() => {
        this.waiting++
        this.onWait()
      }),
      () => super.past(position),
      () => Effect.sync(() => this.waiting--)
    )
  }
}

/** Without `listening`, nothing is notified and nothing listened for. */
export const make = Effect.fnUntraced(function* (
  log: PostgresLog,
  connections: Connections,
  schema: string,
  listening: Settings | undefined
): Effect.fn.Return<Wake, Fault, Scope.Scope> {
  const channel = `${schema}_events`
  const head = new WatchedHead(positionOf(yield* log.last))
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const scope = yield* Effect.scope
  const background = <A, E>(effect: Effect.Effect<A, E>) => fork(Effect.forkIn(Effect.ignore(effect), scope))
  /** Whether a notification was heard on the connection that listens now. */
  let isHeard = false

  // A fault is not told here: whoever waits goes on waiting, whoever reads meets it
  const look = Effect.map(log.last, (place) => head.advance(positionOf(place)))

  let isWatched = false
  let skipped = 0
  const watch: Effect.Effect<void> = Effect.andThen(
    Effect.sleep(POLL),
    Effect.suspend(() => {
      isWatched = head.waiting > 0
      if (!isWatched) return Effect.void
      if (isHeard && ++skipped < TRUSTED) return watch
      skipped = 0
      return Effect.andThen(Effect.ignore(look), watch)
    })
  )
  head.onWait = () => {
    if (isWatched) return
    isWatched = true
    background(watch)
  }

  let isNotifying = false
  let isToNotify = false
  const notify: Effect.Effect<void> = Effect.suspend(() => {
    isToNotify = false
    return Effect.ignore(connections.read("SELECT pg_notify($1, $2)", channel, head.position))
  }).pipe(
    Effect.andThen(Effect.sleep(NOTIFY)),
    Effect.andThen(
      Effect.suspend(() => {
        isNotifying = isToNotify
        return isToNotify ? notify : Effect.void
      })
    )
  )

  if (listening !== undefined) {
    yield* Effect.forkScoped(
      listen(listening, channel, {
        // Whether a notification comes through is found out by sending one
        connected: Effect.ignore(connections.read("SELECT pg_notify($1, '')", channel)),
        heard: (payload) => {
          isHeard = true
          if (/^\d{16}$/.test(payload)) head.advance(positionOf(Number(payload) satisfies Place))
          // The first on this connection: what was notified before it listened
          else background(look)
        },
        lost: () => {
          isHeard = false
        }
      })
    )
  }

  return {
    head,
    appended: (place) => {
      head.advance(place)
      if (listening === undefined) return
      isToNotify = true
      if (isNotifying) return
      isNotifying = true
      background(notify)
    }
  }
})

interface Ear {
  readonly connected: Effect.Effect<void>
  readonly heard: (payload: string) => void
  readonly lost: () => void
}

/** Listens for ever, on one connection after another. */
const listen = ({ config }: Settings, channel: string, { connected, heard, lost }: Ear): Effect.Effect<never> => {
  const tell = (effect: Promise<unknown>) => Effect.tryPromise({ try: () => effect, catch: () => "lost" as const })
  const once = Effect.gen(function* () {
    const socket = yield* Effect.acquireRelease(
      Effect.sync(() => new Socket()),
      (opened) => Effect.sync(() => opened.destroy())
    )
    const client = new pg.Client({ ...config, stream: () => socket })
    client.on("error", () => {})
    client.on("notification", ({ payload }) => heard(payload ?? ""))
    const ended = Effect.callback<void>((resume) => {
      client.once("end", () => resume(Effect.void))
    })
    const alive = Effect.gen(function* () {
      yield* tell(client.connect())
      yield* tell(client.query(`LISTEN ${channel}`))
      yield* connected
      for (;;) {
        yield* Effect.sleep(PULSE)
        yield* Effect.timeout(tell(client.query("SELECT 1")), PULSE)
      }
    })
    yield* Effect.raceFirst(alive, ended)
  }).pipe(Effect.scoped, Effect.ignore, Effect.ensuring(Effect.sync(lost)))
  return Effect.forever(Effect.andThen(once, Effect.sleep(AGAIN)))
}
