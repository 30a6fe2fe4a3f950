/**
 * One seeded schedule of commands against aggregates that share a faulty store, under the test clock. Several processes have different
 * clocks and are replaced; callers race, repeat commands and are interrupted. At the end, every answer is compared with the log.
 */
import assert from "node:assert/strict"
import { Cause, Clock, type Duration, Effect, Exit, Fiber, Layer, Logger, Option, Random, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as FaultyEventStore from "../../testing/src/FaultyEventStore.ts"
import * as SeededRandom from "../../testing/src/SeededRandom.ts"
import * as Aggregate from "../src/Aggregate.ts"
import { EventIds } from "../src/EventIds.ts"
import {
  type Condition,
  type ConditionFailed,
  EventStore,
  expectedOf,
  start as logStart,
  type RecordedEvent,
  revisionOf,
  type StoreUnavailable,
  WrongRevision
} from "../src/EventStore.ts"
import * as HashChain from "../src/HashChain.ts"
import * as MemoryEventStore from "../src/MemoryEventStore.ts"
import * as StreamName from "../src/StreamName.ts"
import { empty, Full, LIMIT, pay, Till, type TillEvent, till } from "./Till.ts"

type Store = EventStore["Service"]

const { codec } = till
export const decode = ({ type, data }: { readonly type: string; readonly data: string }): TillEvent => codec.decode(type, data)

/** All events of a stream. */
export const logOf = (store: Store, id: string) => Stream.runCollect(store.readStream(StreamName.make(till.category, id)))

/** A store that does not recognize a repeated append, and checks no conditions: it answers `WrongRevision` although the events were written. */
export const forgetful = (store: Store): Store => ({
  ...store,
  append: (stream, expected, events) =>
    Effect.flatMap(store.lastRevision(stream), (actual) =>
      actual === expected ? store.append(stream, expected, events) : Effect.fail(new WrongRevision({ stream, actual }))
    )
})

/** A clock that shows a skewed time, and sleeps by the test clock. */
export const skewed = (clock: Clock.Clock, skew: () => number): Clock.Clock => ({
  ...clock,
  currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + skew(),
  currentTimeMillis: Effect.sync(() => clock.currentTimeMillisUnsafe() + skew()),
  sleep: (duration: Duration.Duration) => clock.sleep(duration)
})

/** The state after each number of events, computed by `evolve` and by a separate sum. Also verifies the hash chain. */
export const audit = (log: ReadonlyArray<RecordedEvent>, stream: StreamName.StreamName): ReadonlyArray<Till> => {
  const states = [till.initial]
  const ids = new Set<string>()
  let hash = HashChain.start(stream)
  let state = till.initial
  let sum = 0
  let at = ""
  log.forEach((recorded, revision) => {
    assert.equal(recorded.revision, revision)
    assert.equal(HashChain.verify(hash, recorded), true, `the chain breaks at ${revision}`)
    hash = HashChain.hashOf(recorded)
    assert.equal(ids.has(recorded.id), false, `the id of ${revision} is not new`)
    ids.add(recorded.id)
    assert.equal(at <= HashChain.atOf(recorded), true, `time goes back at ${revision}`)
    at = HashChain.atOf(recorded)
    const event = decode(recorded)
    sum = event._tag === "Paid" ? sum + event.amount : 0
    state = till.evolve(state, event, Date.parse(at))
    assert.equal(state.total, sum)
    states.push(state)
  })
  return states
}

const LATE_BY = 300

/** The answer to a command. */
interface Told {
  readonly nonce: string
  readonly id: string
  readonly key: string | undefined
  readonly amount: number
  /** Events of this stream that had been acknowledged when the command began. */
  readonly floor: number
  /** Events in the log at the time of the answer. */
  readonly ceiling: number
  readonly exit: Exit.Exit<Aggregate.Committed<Till, TillEvent>, Full | Aggregate.Failure | ConditionFailed>
}

type Host = Aggregate.Aggregate<Till, TillEvent>

/** `submitIf` for a fiber. */
const executeIf = (host: Host, condition: Condition, ...[id, decide, metadata]: Parameters<Host["execute"]>) =>
  Effect.callback<Aggregate.Committed<Till, TillEvent>, Full | Aggregate.Failure | ConditionFailed>((resume) => {
    const command = host.submitIf([condition], id, decide as ReturnType<typeof pay>, metadata, resume)
    return Effect.sync(() => {
      command.dropped = true
    })
  })

export interface Ran {
  /** How often each answer was given. */
  readonly told: Readonly<Record<string, number>>
  /** The trace of the store for each process. */
  readonly traces: string
}

/** Runs the schedule of this seed; dies if any check fails. */
export const run = (seed: number): Effect.Effect<Ran, StoreUnavailable> =>
  Effect.gen(function* () {
    const random = SeededRandom.make(seed)
    const { below, chance } = random
    const memory = yield* EventStore
    const clock = yield* Clock.Clock
    const rate = chance(0.2) ? 0 : random.next() / 4
    const isForgetful = chance(0.3)
    const fast = chance(0.3)
    const streams = 1 + below(2)
    const stores: Array<FaultyEventStore.FaultyEventStore> = []

    yield* Effect.forkScoped(Effect.forever(Effect.andThen(TestClock.adjust(20), Effect.yieldNow)))
    const scope = yield* Scope.make()

    const start = Effect.gen(function* () {
      const name = `process ${stores.length}`
      const own = random.fork(name)
      const store = FaultyEventStore.make(isForgetful ? forgetful(memory) : memory, {
        random: own,
        rates: { before: rate / 2, after: rate, lost: rate / 2, unanswered: rate },
        unavailable: rate / 4,
        delay: fast ? 0 : 5,
        lateBy: 1 + own.below(LATE_BY)
      })
      stores.push(store)
      return yield* Aggregate.make(till, {
        idleAfter: 20 + own.below(60),
        batchLimit: 1 + own.below(6),
        queueLimit: 3 + own.below(4),
        ...(own.chance(0.7) ? { snapshots: { version: 1 + own.below(2), state: Till, every: 1 + own.below(5) } } : {})
      }).pipe(
        Scope.provide(scope),
        Effect.provideService(EventStore, store),
        Effect.provideService(EventIds, own.eventIds()),
        Effect.provideService(
          Clock.Clock,
          skewed(clock, () => own.below(400))
        )
      )
    })
    const processes = [yield* start, yield* start, yield* start] as const
    const hosts = [...processes]
    const told: Array<Told> = []
    const abandoned = new Set<string>()
    const known = new Map<string, number>()
    const conditions = new Map<string, Assumed>()
    let nonces = 0

    const command = Effect.gen(function* () {
      const which = below(hosts.length)
      const host = hosts[which]
      if (host === undefined) return
      // A new process takes over; appends of the old one are still under way, and its callers may or may not get answers
      if (chance(0.01)) hosts[which] = yield* start
      const id = `t${below(streams)}`
      const nonce = `n${nonces++}`
      const what = below(10)
      const key = what < 6 ? `k${below(120)}` : undefined
      const amount = 1 + below(20)
      const parts = 1 + below(3)
      const floor = known.get(id) ?? 0
      const other = `t${below(2)}`
      const assumed = chance(0.4) && other !== id ? host.assume(other) : undefined
      const condition = assumed && { stream: StreamName.make(till.category, other), expected: expectedOf(assumed.revision) }
      if (key !== undefined && condition !== undefined)
        conditions.set(nonce, { ...condition, floor: yield* memory.lastRevision(condition.stream) })
      const asked: Effect.Effect<Aggregate.Committed<Till, TillEvent>, Full | Aggregate.Failure | ConditionFailed> = key !== undefined
        ? condition !== undefined
          ? executeIf(host, condition, id, pay(key, amount, parts), { $correlationId: nonce })
          : // Whether the stream is new is a guess, which may be wrong
            (chance(0.25) ? host.begin : host.execute)(id, pay(key, amount, parts), { $correlationId: nonce })
        : what < 7
          ? host.execute(id, empty, { $correlationId: nonce })
          : Effect.map(host.read(id), (current) => ({ ...current, events: [] }))
      if (chance(0.15)) {
        abandoned.add(nonce)
        const fiber = yield* Effect.forkChild(asked)
        if (chance(0.5)) yield* Effect.replicateEffect(Effect.yieldNow, below(6), { discard: true })
        else yield* Effect.sleep(below(12))
        yield* Fiber.interrupt(fiber)
        return
      }
      const exit = yield* Effect.exit(asked)
      const rests = restsOn(exit)
      if (rests !== undefined) known.set(id, Math.max(known.get(id) ?? 0, rests.after))
      const ceiling = (yield* logOf(memory, id)).length
      told.push({ nonce, id, key, amount: amount * parts, floor, ceiling, exit })
      if (chance(0.1)) yield* Effect.sleep(below(100))
    })
    const caller = Effect.replicateEffect(command, 8, { discard: true })
    yield* Effect.forEach(
      Array.from({ length: 7 }, () => caller),
      (each) => each,
      { concurrency: "unbounded", discard: true }
    )
    // Appends under way arrive, or are lost for good
    yield* Scope.close(scope, Exit.void)
    yield* Effect.sleep(LATE_BY)

    const traces = stores.map((store, i) => `process ${i}\n${FaultyEventStore.format(store.trace)}`).join("\n")
    try {
      const counts: Record<string, number> = {}
      for (let i = 0; i < streams; i++) {
        const name = StreamName.make(till.category, `t${i}`)
        const log = yield* logOf(memory, `t${i}`)
        compare(
          log,
          audit(log, name),
          told.filter(({ id }) => id === `t${i}`),
          abandoned,
          counts
        )
      }
      for (const { nonce, exit } of told) if (restsOn(exit) !== undefined) assertConfirmed(nonce, conditions.get(nonce))
      const all = yield* Stream.runCollect(memory.readAll(logStart))
      const isChecked = !isForgetful && memory.append.isConditional === true
      counts["conditional"] = assertConditions(all, conditions, isChecked)
      return { told: counts, traces }
    } catch (cause) {
      throw new Error(`seed ${seed}: ${cause instanceof Error ? cause.message : cause}\n${traces}`, { cause })
    }
  }).pipe(
    Effect.scoped,
    // The pauses of competing writers are random
    Random.withSeed(`${seed}`),
    Effect.provide(Layer.mergeAll(MemoryEventStore.layer, TestClock.layer(), Logger.layer([])))
  )

/** A condition of a command. `floor`: where its stream ended when the command began. */
interface Assumed extends Condition {
  readonly floor: Condition["expected"]
}

/** No answer rests on an end of another stream that was passed before the command began. */
const assertConfirmed = (nonce: string, assumed: Assumed | undefined): void => {
  if (assumed === undefined) return
  assert.equal(revisionOf(assumed.expected) >= revisionOf(assumed.floor), true, `${nonce} rests on an old end of ${assumed.stream}`)
}

/**
 * Every event that was decided under a condition has its place before the condition ends; right after a check, at least not before it begins.
 * Returns how many there are.
 */
const assertConditions = (all: ReadonlyArray<RecordedEvent>, conditions: ReadonlyMap<string, Condition>, isChecked: boolean): number => {
  const ends = new Map<string, number>()
  let conditional = 0
  for (const event of all) {
    const nonce = String(HashChain.metadataOf(event)["$correlationId"])
    const condition = conditions.get(nonce)
    if (condition !== undefined) {
      const [end, expected] = [ends.get(condition.stream) ?? -1, revisionOf(condition.expected)]
      assert.equal(
        isChecked ? end === expected : end >= expected,
        true,
        `${nonce} rests on ${expected} of ${condition.stream}, which is at ${end}`
      )
      conditional++
    }
    ends.set(event.stream, event.revision)
  }
  return conditional
}

/** How many events an answer is based on, before and after the command's own events. */
const restsOn = (exit: Told["exit"]): { readonly before: number; readonly after: number } | undefined => {
  if (Exit.isSuccess(exit)) return { before: exit.value.revision + 1 - exit.value.events.length, after: exit.value.revision + 1 }
  const error = Option.getOrUndefined(Exit.findErrorOption(exit))
  return error instanceof Full ? { before: error.count, after: error.count } : undefined
}

const compare = (
  log: ReadonlyArray<RecordedEvent>,
  states: ReadonlyArray<Till>,
  told: ReadonlyArray<Told>,
  abandoned: ReadonlySet<string>,
  counts: Record<string, number>
): void => {
  const written = new Map<string, Array<RecordedEvent>>()
  for (const event of log) {
    const nonce = String(HashChain.metadataOf(event)["$correlationId"])
    const run = written.get(nonce)
    if (run === undefined) written.set(nonce, [event])
    else {
      assert.equal(event.revision, (run.at(-1)?.revision ?? 0) + 1, `${nonce} is written twice, or in pieces`)
      run.push(event)
    }
  }
  // Only one command pays a key, and the limit holds after each event
  const payers = new Map<string, string>()
  for (const [nonce, events] of written)
    for (const event of events.map(decode))
      if (event._tag === "Paid") {
        assert.equal(payers.get(event.key) ?? nonce, nonce, `${event.key} is paid twice`)
        payers.set(event.key, nonce)
      }
  for (const { total } of states) assert.equal(total <= LIMIT, true, `${total} in a till`)

  for (const { nonce, key, amount, floor, ceiling, exit } of told) {
    const own = written.get(nonce) ?? []
    written.delete(nonce)
    const rests = restsOn(exit)
    if (rests !== undefined) {
      assert.equal(rests.before >= floor, true, `${nonce} rests on ${rests.before} events when ${floor} were known`)
      assert.equal(rests.after <= ceiling, true, `${nonce} rests on ${rests.after} events when ${ceiling} were written`)
    }
    if (Exit.isSuccess(exit)) {
      const { events, state, revision, at } = exit.value
      assert.deepEqual(own.map(decode), events, `${nonce} is not written as it was told`)
      if (own.length > 0) assert.equal(own.at(-1)?.revision, revision)
      assert.deepEqual(state, states[revision + 1], `${nonce} was told another state than that of its revision`)
      assert.equal(at >= state.lastAt, true, `${nonce} was told a time before its events`)
      count(counts, events.length === 0 ? "nothing" : "written")
      continue
    }
    const error = Option.getOrUndefined(Exit.findErrorOption(exit))
    if (error === undefined) throw new Error(`${nonce} met ${Cause.pretty(exit.cause)}`)
    count(counts, error._tag)
    if (error._tag !== "AppendInDoubt") assert.equal(own.length, 0, `${nonce} was refused with ${error._tag} and is in the log`)
    if (error instanceof Full) {
      const state = states[error.count]
      assert.equal(state?.total, error.total, `${nonce} was refused on a total that never was`)
      assert.equal(
        error.total + amount > LIMIT && key !== undefined && !state?.keys.includes(key),
        true,
        `${nonce} was refused for nothing`
      )
    }
  }
  for (const nonce of written.keys()) assert.equal(abandoned.has(nonce), true, `${nonce} is in the log, but no command sent it`)
}

const count = (counts: Record<string, number>, what: string): void => {
  counts[what] = (counts[what] ?? 0) + 1
}
