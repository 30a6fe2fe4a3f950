/** A host that leaves its cluster ends what it has begun, for at most its grace, and begins nothing more. */
import { Clock, Deferred, Duration, Effect, Exit, Fiber, Scope } from "effect"
import { describe, expect } from "vitest"
import { accountOf, balanceAt, type Host, hostOn, PRICE, sees, stores, testing, until, type Work } from "./Cluster.ts"

/** Shorter sleeps, such as those between two writes of a host's row, take the time that they take. */
const LONG = Duration.toMillis("5 seconds")

/** The real clock, but each sleep of five seconds or more ends when the test says so. */
const makeClock = Effect.map(Clock.Clock, (real) => {
  const sleeping = new Map<Deferred.Deferred<void>, number>()
  const clock: Clock.Clock = {
    currentTimeMillisUnsafe: () => real.currentTimeMillisUnsafe(),
    currentTimeMillis: real.currentTimeMillis,
    currentTimeNanosUnsafe: () => real.currentTimeNanosUnsafe(),
    currentTimeNanos: real.currentTimeNanos,
    monotonicTimeNanosUnsafe: () => real.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: real.monotonicTimeNanos,
    sleep: (duration) => {
      const millis = Duration.toMillis(duration)
      if (millis < LONG) return real.sleep(duration)
      const over = Deferred.makeUnsafe<void>()
      sleeping.set(over, millis)
      return Effect.ensuring(
        Deferred.await(over),
        Effect.sync(() => sleeping.delete(over))
      )
    }
  }
  const sleeps = (millis: number) => [...sleeping].find(([, lasts]) => lasts === millis)?.[0]
  return {
    clock,
    /** Waits until something sleeps for so long, then ends that sleep. */
    end: (lasts: Duration.Input) =>
      Effect.gen(function* () {
        const millis = Duration.toMillis(lasts)
        yield* until(() => sleeps(millis) !== undefined)
        const over = sleeps(millis)
        if (over !== undefined) yield* Deferred.succeed(over, undefined)
      })
  }
})

/** Two hosts, of which `other` leads an account and leaves while a call of it is under way there, which came from `one`. */
const leaving = Effect.gen(function* () {
  const shared = yield* stores
  const work: Work = { ran: new Map(), answer: (text) => Effect.succeed(text) }
  const time = yield* makeClock
  const one = yield* hostOn(shared, "one", work)
  const scope = yield* Scope.make()
  const other = yield* Effect.provideService(hostOn(shared, "other", work, { clock: time.clock }), Scope.Scope, scope)
  yield* Effect.all([sees(one, 1), sees(other, 1)])
  const away = yield* accountOf(one, false)

  /** Begins a call at `one` whose work at `other` is this, then lets `other` leave. Later calls are answered at once. */
  const leaveDuring = (does: Effect.Effect<string>) =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      work.answer = () => Effect.andThen(Deferred.succeed(started, undefined), does)
      const calling = yield* Effect.forkChild(Effect.exit(one.call(away, "begun")))
      yield* Deferred.await(started)
      work.answer = (text) => Effect.succeed(text)
      const left = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      return { calling, left }
    })
  return { away, leaveDuring, one, other, time, work }
})

const unknown = expect.objectContaining({ _tag: "OutcomeUnknown" })

/** What became of a call that was told to be free: recovery frees it, if it is not yet. */
const isFree = (host: Host, accountId: string, left: number) =>
  Effect.gen(function* () {
    for (const promised of yield* host.callsInDoubt.page()) yield* host.charge.makeFree(promised)
    expect(yield* balanceAt(host, accountId)).toEqual({ available: left, held: 0 })
  })

describe("a host that leaves", () => {
  testing(
    "answers the call under way there; others run elsewhere at once",
    Effect.gen(function* () {
      const { away, leaveDuring, one, work } = yield* leaving
      const proceed = yield* Deferred.make<void>()
      const { calling, left } = yield* leaveDuring(Effect.as(Deferred.await(proceed), "done"))
      // Whether or not its leaving is known here yet
      expect((yield* one.call(away, "first")).data).toBe('{"text":"first"}')
      yield* until(() => one.leading.leads(away))
      yield* one.call(away, "second")
      expect(work.ran.get("second")).toEqual(["one"])
      // Longer than until the row of the host is seen to be gone
      yield* Effect.sleep("2500 millis")
      expect([calling.pollUnsafe(), left.pollUnsafe()]).toEqual([undefined, undefined])
      yield* Deferred.succeed(proceed, undefined)
      expect(yield* Fiber.join(calling)).toMatchObject({ value: { data: '{"text":"done"}' } })
      yield* Fiber.join(left)
      expect([work.ran.get("begun"), work.ran.get("first")?.length]).toEqual([["other"], 1])
      expect(yield* balanceAt(one, away)).toEqual({ available: 7 * PRICE, held: 0 })
    })
  )

  testing(
    "interrupts a call that outlasts the grace: its outcome is unknown, it is free, and it is not run again",
    Effect.gen(function* () {
      const { away, leaveDuring, one, time, work } = yield* leaving
      const { calling, left } = yield* leaveDuring(Effect.never)
      yield* until(() => one.leading.leads(away))
      expect([calling.pollUnsafe(), left.pollUnsafe()]).toEqual([undefined, undefined])
      yield* time.end("30 seconds")
      expect(yield* Effect.flatMap(Fiber.join(calling), Effect.flip)).toEqual(unknown)
      yield* Fiber.join(left)
      expect(work.ran.get("begun")).toEqual(["other"])
      yield* isFree(one, away, 10 * PRICE)
    })
  )

  testing(
    "waits five seconds more for a call that cannot be interrupted, then breaks its links",
    Effect.gen(function* () {
      const { away, leaveDuring, one, time, work } = yield* leaving
      const proceed = yield* Deferred.make<void>()
      const { calling, left } = yield* leaveDuring(Effect.uninterruptible(Effect.as(Deferred.await(proceed), "late")))
      yield* time.end("30 seconds")
      yield* time.end("5 seconds")
      expect(yield* Effect.flatMap(Fiber.join(calling), Effect.flip)).toEqual(unknown)
      yield* Deferred.succeed(proceed, undefined)
      yield* Fiber.join(left)
      expect(work.ran.get("begun")).toEqual(["other"])
      yield* isFree(one, away, 10 * PRICE)
    })
  )
})
