/**
 * An operation whose behaviour a test sets, and hosts that serve it. Each host stands for a process over shared stores, whose access to
 * them can fail at any moment. After each test, the log is checked for the ledger's invariants.
 */
import { EventStore, HashChain, MemoryEventStore, MemoryStateStore, StateStore, StreamName } from "@millrace/event-sourcing"
import { Context, Deferred, Effect, Exit, Layer, Logger, Schema, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { expect, test } from "vitest"
import * as FaultyEventStore from "../../../testing/src/FaultyEventStore.ts"
import { invariants } from "../../../testing/src/Invariants.ts"
import { Registration } from "../../src/accounts/Registration.ts"
import { CallsInDoubt } from "../../src/billing/CallsInDoubt.ts"
import { Charge } from "../../src/billing/Charge.ts"
import { PriceBook } from "../../src/billing/PricePlan.ts"
import { Recovery } from "../../src/billing/Recovery.ts"
import { Replies } from "../../src/billing/Replies.ts"
import * as Credits from "../../src/Credits.ts"
import { Jobs } from "../../src/jobs/Jobs.ts"
import { Account } from "../../src/ledger/Account.ts"
import * as Decisions from "../../src/ledger/Decisions.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import type { LotSource } from "../../src/ledger/Lots.ts"
import * as Millrace from "../../src/Millrace.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { Vault } from "../../src/vault/Vault.ts"
import { CircuitBreaker } from "../../src/work/CircuitBreaker.ts"
import * as Operation from "../../src/work/Operation.ts"
import type { OperationError } from "../../src/work/OperationError.ts"
import { MASTER } from "../vault/Vaults.ts"

export const credits = Credits.of
export const all = { concurrency: "unbounded" } as const
export const range = (n: number) => Array.from({ length: n }, (_, i) => i)
export const seconds = (n: number) => n * 1_000
export const minutes = (n: number) => n * 60_000
export const hours = (n: number) => n * 3_600_000

// the operation

export const Data = Schema.Struct({ text: Schema.String, count: Schema.Int })
type Outcome = Operation.Outcome<typeof Data.Type>

export interface Input {
  readonly text: string
  readonly units?: number
}

/** The price of a unit: one credit. */
export const UNIT = 1_000
/** The operation's time limit. Its hold lives 30 seconds longer. */
export const TIMEOUT = seconds(30)
export const LIFETIME = TIMEOUT + seconds(30)

export interface Bench {
  /** The callers of the runs, in order. */
  readonly runs: Array<Operation.Caller>
  readonly recovered: Array<string>
  check: (input: Input) => Effect.Effect<void, OperationError>
  answer: (input: Input, caller: Operation.Caller) => Effect.Effect<Outcome, OperationError>
  recover: (reservationId: string) => Effect.Effect<Outcome | undefined, OperationError>
}

export const makeBench = (): Bench => ({
  runs: [],
  recovered: [],
  check: () => Effect.void,
  answer: ({ text }) => Effect.succeed({ data: { text, count: text.length } }),
  recover: () => Effect.undefined
})

/** `bench.work`; `bench.create`, which is recoverable; `bench.free`, which is free; `bench.new`, which has no price. */
const operationsOf = (bench: Bench) => {
  const options = {
    summary: "Work",
    route: { method: "POST", path: "/bench", params: {}, query: {}, body: { text: Schema.String, units: Schema.optionalKey(Schema.Int) } },
    success: Data,
    quantity: ({ units = 1 }: Input) => units,
    timeout: TIMEOUT,
    check: (input: Input) => Effect.suspend(() => bench.check(input)),
    run: (input: Input, caller: Operation.Caller) =>
      Effect.suspend(() => {
        bench.runs.push(caller)
        return bench.answer(input, caller)
      })
  } as const
  return {
    work: Operation.make("bench.work", options),
    create: Operation.make("bench.create", {
      ...options,
      recover: (reservationId) =>
        Effect.suspend(() => {
          bench.recovered.push(reservationId)
          return bench.recover(reservationId)
        })
    }),
    free: Operation.make("bench.free", options),
    new: Operation.make("bench.new", options)
  }
}

const PRICES = { "bench.work": credits(UNIT), "bench.create": credits(UNIT), "bench.free": credits(0) }

/** From now on the operation waits for `proceed`. `started` ends when it runs. */
export const paused = (bench: Bench) =>
  Effect.gen(function* () {
    const started = yield* Deferred.make<void>()
    const proceed = yield* Deferred.make<void>()
    const { answer } = bench
    bench.answer = (input, caller) =>
      Effect.gen(function* () {
        yield* Deferred.succeed(started, undefined)
        yield* Deferred.await(proceed)
        return yield* answer(input, caller)
      })
    return {
      started: Deferred.await(started),
      proceed: Effect.suspend(() => {
        bench.answer = answer
        return Deferred.succeed(proceed, undefined)
      })
    }
  })

// stores

export interface Stores {
  readonly events: EventStore.EventStore["Service"]
  readonly states: StateStore.StateStore["Service"]
}

/** All stores of a test. Their logs are checked at its end. */
export class Watched extends Context.Service<Watched, Array<Stores>>()("test/Watched") {}

export const stores: Effect.Effect<Stores, never, Watched> = Effect.gen(function* () {
  const shared = { events: yield* MemoryEventStore.make, states: yield* MemoryStateStore.make }
  const watched = yield* Watched
  watched.push(shared)
  return shared
})

/** The state store of a process that was cut off. */
const unreachable: StateStore.StateStore["Service"] = {
  get: () => Effect.fail(new StateStore.StateUnavailable({ reason: "cut off" })),
  list: () => Effect.fail(new StateStore.StateUnavailable({ reason: "cut off" })),
  write: () => Effect.fail(new StateStore.StateUnavailable({ reason: "cut off" }))
}

/** Access to the stores that can be changed while it is used. With `run`, it has the callback forms of an event store. */
export const way = (to: Stores, run?: ReturnType<typeof Effect.runForkWith<never>>) => {
  let { events, states } = to
  const each = <A, E>(call: (store: Stores) => Effect.Effect<A, E>) => Effect.suspend(() => call({ events, states }))
  const streamed = <A, E>(call: (store: Stores) => Stream.Stream<A, E>) => Stream.suspend(() => call({ events, states }))
  const append = EventStore.wrapAppend(events.append, (...of) => each((to) => to.events.append(...of)))
  const lastRevision: EventStore.LastRevision = (...of) => each((to) => to.events.lastRevision(...of))
  const submit: EventStore.SubmitAppend = (stream, expected, batch, told, conditions) => {
    if (events.append.submit !== undefined) return events.append.submit(stream, expected, batch, told, conditions)
    run?.(events.append(stream, expected, batch, conditions)).addObserver(told)
  }
  return {
    events: EventStore.EventStore.of({
      append: run === undefined ? append : Object.assign(append, { submit }),
      readStream: (...of) => streamed((to) => to.events.readStream(...of)),
      lastRevision:
        run === undefined
          ? lastRevision
          : Object.assign(lastRevision, { now: (stream: StreamName.StreamName) => events.lastRevision.now?.(stream) }),
      readAll: (...of) => streamed((to) => to.events.readAll(...of)),
      subscribe: (...of) => streamed((to) => to.events.subscribe(...of)),
      head: each((to) => to.events.head),
      loadSnapshot: (...of) => each((to) => to.events.loadSnapshot(...of)),
      saveSnapshot: (...of) => each((to) => to.events.saveSnapshot(...of))
    }),
    states: StateStore.StateStore.of({
      get: (...of) => each((to) => to.states.get(...of)),
      list: (...of) => each((to) => to.states.list(...of)),
      write: (...of) => each((to) => to.states.write(...of))
    }),
    /** From now on appends and reads have these faults, counted from now. */
    fail: (options: FaultyEventStore.Options) =>
      Effect.sync(() => {
        events = FaultyEventStore.make(to.events, options)
      }),
    heal: Effect.sync(() => {
      events = to.events
      states = to.states
    }),
    /** From now on nothing that this process writes reaches the stores. */
    cut: Effect.sync(() => {
      events = FaultyEventStore.make(to.events, { rates: { before: 1 }, unavailable: 1 })
      states = unreachable
    }),
    /** From now on uses other stores, made of the real ones. */
    through: (other: (to: Stores) => Partial<Stores>) =>
      Effect.sync(() => {
        const ways = { ...to, ...other(to) }
        events = ways.events
        states = ways.states
      })
  }
}

// hosts

export interface HostOptions extends Omit<Millrace.MillraceOptions<never>, "operations"> {
  /** Without it, the host has no recovery of holds. */
  readonly recovery?: {}
  /** Whether its event store has callback forms. */
  readonly byCallback?: boolean
}

/** Opens a process. It ends with the scope. */
export const host = (shared: Stores, bench: Bench, options: HostOptions = {}) =>
  Effect.gen(function* () {
    const run = options.byCallback === true ? Effect.runForkWith(yield* Effect.context<never>()) : undefined
    const { events, states, ...faults } = way(shared, run)
    const operations = operationsOf(bench)
    const base = Layer.mergeAll(
      Layer.succeed(EventStore.EventStore, events),
      Layer.succeed(StateStore.StateStore, states),
      Layer.orDie(MasterKey.layer(MASTER))
    )
    const calls = Charge.layer(options.late === undefined ? {} : { late: options.late }).pipe(
      Layer.provideMerge(
        Layer.mergeAll(Replies.layer, CallsInDoubt.layer, CircuitBreaker.layer(options.breaker), Jobs.layer(options.jobs))
      ),
      Layer.provideMerge(Millrace.administration(options.trial === undefined ? {} : { trial: options.trial }))
    )
    const context = yield* Layer.build(Layer.fresh(Layer.provide(calls, base)))
    const services = Effect.all({
      charge: Charge,
      ledger: Ledger,
      prices: PriceBook,
      replies: Replies,
      vault: Vault,
      registration: Registration
    })
    const { charge, ledger, ...others } = yield* Effect.provideContext(services, context)
    yield* others.prices.publish(PRICES)

    const recovery =
      options.recovery &&
      (yield* Effect.provideContext(
        Recovery,
        yield* Layer.build(
          Layer.fresh(
            Recovery.layer([operations.work, operations.create], options.recovery).pipe(
              Layer.provide(Layer.succeedContext(context)),
              Layer.provide(base)
            )
          )
        )
      ))

    let requests = 0
    return {
      ...others,
      ...faults,
      charge,
      ledger,
      recovery,
      operations,
      /** Calls `bench.work` by default. The idempotent request is the input. */
      call: (
        accountId: string,
        {
          operation = "work",
          key,
          text = "text",
          units,
          maxCost,
          requestId = `req_${++requests}`
        }: {
          readonly operation?: keyof typeof operations
          readonly key?: string
          readonly text?: string
          readonly units?: number
          readonly maxCost?: number
          readonly requestId?: string
        } = {}
      ) => {
        const input: Input = { text, ...(units === undefined ? {} : { units }) }
        return charge.run(operations[operation], input, {
          accountId,
          requestId,
          ...(key === undefined ? {} : { idempotency: { key, request: JSON.stringify(input) } }),
          ...(maxCost === undefined ? {} : { maxCost: credits(maxCost) })
        })
      },
      grant: (accountId: string, amount: number, lotId: string, source: LotSource = "promotion", expiresAt: number | null = null) =>
        ledger.execute(accountId, Decisions.grant({ lotId, amount: credits(amount), source, expiresAt })),
      /** The available and the held credits. */
      balance: (accountId: string) =>
        Effect.map(ledger.balance(accountId), ({ available, held }) => ({ available: Number(available), held: Number(held) }))
    }
  })
export type Host = Effect.Success<ReturnType<typeof host>>

/** A process that can die before the test ends: it then writes nothing more, and its background work stops. */
export const mortalHost = (shared: Stores, bench: Bench, options: HostOptions = {}) =>
  Effect.gen(function* () {
    const scope = yield* Effect.acquireRelease(Scope.make(), (scope) => Scope.close(scope, Exit.void))
    const mortal = yield* Effect.provideService(host(shared, bench, options), Scope.Scope, scope)
    return { ...mortal, die: Effect.andThen(mortal.cut, Scope.close(scope, Exit.void)) }
  })

export const ACCOUNT = "acc_1"

/** Opens an account with an amount in thousandths. */
export const opened = ({ ledger, grant }: Host, amount: number, accountId = ACCOUNT) =>
  Effect.gen(function* () {
    yield* ledger.execute(accountId, Decisions.open({ sealedEmail: "sealed", emailHash: accountId }))
    yield* grant(accountId, amount, `lot_${accountId}`)
    return accountId
  })

/** The usual setting: stores, a bench, a host and an account with ten credits. */
export const setting = (options: HostOptions = {}) =>
  Effect.gen(function* () {
    const shared = yield* stores
    const bench = makeBench()
    const here = yield* host(shared, bench, options)
    const accountId = yield* opened(here, 10 * UNIT)
    return { shared, bench, here, accountId }
  })

/** Balances of {@link setting}'s account: before a call, during a call of a unit, and after it was charged. */
export const FULL = { available: 10 * UNIT, held: 0 }
export const HELD = { available: 9 * UNIT, held: UNIT }
export const CHARGED = { available: 9 * UNIT, held: 0 }

/** Calls with an idempotency key, and the cases of tests that run with and without one. */
export const KEY = { key: "key" }
export const KEYS = [undefined, "key"] as const
export const withKey = (key: string | undefined) => (key === undefined ? {} : { key })
export const keyName = (key: string | undefined) => (key === undefined ? "without a key" : "with a key")

// the log

/** What {@link endsIn} returns for a call that succeeded, and for one that failed. */
export const SETTLED = ["CreditReserved", "OperationSucceeded"]
export const REFUNDED = ["CreditReserved", "Refunded service_error"]

const { codec } = Account

const recordedOf = ({ events }: Stores) =>
  Effect.map(Stream.runCollect(events.readAll(EventStore.start)), (log) =>
    log
      .filter(({ stream }) => StreamName.category(stream) === Account.category)
      .map((event) => ({
        stream: event.stream,
        revision: event.revision,
        event: codec.decode(event.type, event.data),
        at: Date.parse(HashChain.atOf(event))
      }))
  )

/** Events of all accounts in order, without those that open them and grant credits. */
export const eventsIn = (shared: Stores) =>
  Effect.map(recordedOf(shared), (log) =>
    log.map(({ event }) => event).filter(({ _tag }) => _tag !== "AccountOpened" && _tag !== "CreditsGranted")
  )

/** The types of these events; `Refunded` with its reason. */
export const endsIn = (shared: Stores) =>
  Effect.map(eventsIn(shared), (log) => log.map((event) => (event._tag === "Refunded" ? `${event._tag} ${event.reason}` : event._tag)))

/** The whole log as text. */
export const logText = ({ events }: Stores) =>
  Effect.map(Stream.runCollect(events.readAll(EventStore.start)), (log) => log.map((event) => JSON.stringify(event)).join("\n"))

// time

/** Runs an effect while time passes, so that retries, pauses and background work go on. */
export const patiently = <A, E, R>(effect: Effect.Effect<A, E, R>, milliseconds = 50): Effect.Effect<A, E, R> =>
  Effect.raceFirst(effect, Effect.forever(Effect.andThen(TestClock.adjust(milliseconds), Effect.yieldNow)))

/** Lets all fibers run that need no time. */
export const quiet = Effect.promise(async () => {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
})

/** Lets time pass, and before and after it all fibers that need no time. */
export const elapse = (milliseconds: number) => Effect.andThen(quiet, Effect.andThen(TestClock.adjust(milliseconds), quiet))

/** Waits in steps of a second until the answer is true. */
export const until = (question: Effect.Effect<boolean, unknown>, atMost = hours(1)): Effect.Effect<void, unknown> =>
  Effect.gen(function* () {
    for (let waited = 0; waited < atMost; waited += seconds(1)) {
      if (yield* question) return
      yield* elapse(seconds(1))
    }
    throw new Error("It never came true")
  })

/** How an effect ended: a value, the tag of its error, or `defect`. */
export { outcome } from "../vault/Vaults.ts"

/** The result of a call: the tag of its error, `reply` or `replayed`. */
export const told = <E extends { readonly _tag: string }, R>(call: Effect.Effect<{ readonly replayed: boolean }, E, R>) =>
  call.pipe(
    Effect.map(({ replayed }) => (replayed ? "replayed" : "reply")),
    Effect.catch((error) => Effect.succeed(error._tag)),
    Effect.catchDefect(() => Effect.succeed("defect"))
  )

/** The number of each item. */
export const count = (items: ReadonlyArray<string>): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const item of items) counts[item] = (counts[item] ?? 0) + 1
  return counts
}

export const START = Date.UTC(2026, 0, 1)

/** Runs an effect under a test clock, then checks the ledger's invariants for every account. */
export const underTestClock = (body: Effect.Effect<unknown, unknown, Scope.Scope | Watched>): Promise<void> =>
  Effect.runPromise(
    Effect.gen(function* () {
      yield* TestClock.setTime(START)
      yield* Effect.scoped(body)
      for (const shared of yield* Watched) expect(invariants(yield* recordedOf(shared))).toEqual([])
    }).pipe(Effect.provideService(Watched, []), Effect.provide(TestClock.layer()), Effect.provide(Logger.layer([])))
  )

/** A test that is one effect: see {@link underTestClock}. */
export const testing = (name: string, body: Effect.Effect<unknown, unknown, Scope.Scope | Watched>): void =>
  test(name, () => underTestClock(body))
