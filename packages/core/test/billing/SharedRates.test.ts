import { MemoryEventStore, MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { PostgresStateStore } from "@millrace/event-store-postgres"
import { WrongClock } from "@millrace/testing"
import { Clock, Context, Effect, Exit, Layer, Logger, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as Postgres from "../../../event-store-postgres/test/Postgres.ts"
import * as RateCounts from "../../src/billing/RateCounts.ts"
import { RateLimit, type RateLimitPolicy } from "../../src/billing/RateLimit.ts"
import type * as RateSharing from "../../src/billing/RateSharing.ts"
import * as Millrace from "../../src/Millrace.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { Vault } from "../../src/vault/Vault.ts"
import { checkAsync } from "../vault/Property.ts"
import { MASTER, open } from "../vault/Vaults.ts"
import { range } from "./Bench.ts"

type Store = StateStore.StateStore["Service"]
type Host = RateLimit["Service"]

/** Between two exchanges, milliseconds. */
const EVERY = 100
/** Seconds. */
const WINDOW = 60

const quietOf = (limit: number) => Math.floor(limit / 20)

/** The limit of one process. `by`: its access to the store. */
const host = (store: Store, policy: RateLimitPolicy, by: Store = store, options: RateSharing.Options = {}) =>
  Effect.gen(function* () {
    const services = Layer.mergeAll(Layer.succeed(StateStore.StateStore, by), Layer.succeed(Vault, yield* open(store)))
    return Context.get(yield* Layer.build(RateLimit.shared(policy, options).pipe(Layer.provide(services))), RateLimit)
  })

const slowly = ({ get, list, write }: Store, delay: number): Store => ({
  get: (...of) => Effect.delay(get(...of), delay),
  list: (...of) => Effect.delay(list(...of), delay),
  write: (...of) => Effect.delay(write(...of), delay)
})

/** A store that counts its calls. */
const counted = ({ get, list, write }: Store) => {
  const calls = { list: 0, listed: 0, write: 0 }
  const store: Store = {
    get,
    list: (...of) =>
      Effect.andThen(
        Effect.sync(() => calls.list++),
        Effect.tap(list(...of), () => Effect.sync(() => calls.listed++))
      ),
    write: (...of) =>
      Effect.andThen(
        Effect.sync(() => calls.write++),
        write(...of)
      )
  }
  return { store, calls }
}

const running = (body: Effect.Effect<unknown, unknown, Scope.Scope>) =>
  Effect.runPromise(Effect.asVoid(Effect.scoped(body)).pipe(Effect.provide(TestClock.layer())))

const admits = ({ consume }: Host, key = "account:a") => Effect.map(Effect.exit(consume(key)), Exit.isSuccess)

/** The number of calls that one host admits. */
const admitted = (at: Host, calls: number, key?: string) =>
  Effect.map(
    Effect.forEach(range(calls), () => admits(at, key)),
    (all) => all.filter(Boolean).length
  )

/** Lets time pass in small steps, so that each timer fires when it is due. */
const pass = Effect.fnUntraced(function* (milliseconds: number) {
  const steps = Math.min(milliseconds, 1_500)
  for (let passed = 0; passed < steps; passed += 25) yield* TestClock.adjust(Math.min(25, steps - passed))
  if (milliseconds > steps) yield* TestClock.adjust(milliseconds - steps)
})

interface Burst {
  readonly at: number
  readonly calls: number
  /** Before it, milliseconds. */
  readonly wait: number
}

interface Call {
  readonly host: number
  readonly at: number
  readonly isAdmitted: boolean
}

/** Makes calls at several hosts on one store with a delay. Returns each call with its time and result. */
const simulate = Effect.fnUntraced(function* (hosts: number, limit: number, delay: number, bursts: ReadonlyArray<Burst>) {
  const store = yield* MemoryStateStore.make
  const all = yield* Effect.forEach(range(hosts), () => host(store, { limit, window: WINDOW }, slowly(store, delay)))
  const calls: Array<Call> = []
  for (const { at, calls: count, wait } of bursts) {
    yield* pass(wait)
    const i = at % hosts
    const now = yield* Clock.currentTimeMillis
    for (const _ of range(count)) calls.push({ host: i, at: now, isAdmitted: yield* admits(all[i] as Host) })
  }
  return calls
})

/** The most calls that a host admitted in a window before others had its report. */
const unheard = (calls: ReadonlyArray<Call>, i: number, limit: number, delay: number) => {
  const own = calls.filter(({ host, isAdmitted }) => host === i && isAdmitted).map(({ at }) => at)
  const lag = EVERY + 4 * delay
  const most = own.reduce((most, from) => Math.max(most, own.filter((at) => at >= from && at <= from + lag).length), 0)
  return Math.min(own.length, quietOf(limit) + 1 + most)
}

const admittedOf = (calls: ReadonlyArray<Call>) => calls.filter(({ isAdmitted }) => isAdmitted).length

const windowOf = ({ at }: Call) => Math.floor(at / (WINDOW * 1000))

/** The calls of each window, from the first to the last. */
const windowsOf = (calls: ReadonlyArray<Call>) =>
  range(Math.max(...calls.map(windowOf)) + 1).map((window) => calls.filter((call) => windowOf(call) === window))

const hostsOf = fc.integer({ min: 2, max: 4 })
const delays = fc.constantFrom(0, 5, 40, 150)
const bursts = (wait: fc.Arbitrary<number>, calls: number) =>
  fc.array(fc.record({ at: fc.nat(3), calls: fc.integer({ min: 1, max: calls }), wait }), { minLength: 1, maxLength: 40 })
/** Most calls are close together, some windows apart. */
const waits = fc.oneof(fc.constant(0), fc.nat(60), fc.nat(1_400), fc.constantFrom(20_000, 59_000, 90_000))

describe("hosts that share a store", () => {
  test("admit in a window at most the limit plus what each other host admits unreported, and refuse no call within the limit", () =>
    checkAsync(
      fc.asyncProperty(hostsOf, fc.integer({ min: 1, max: 120 }), delays, bursts(waits, 30), (hosts, limit, delay, schedule) =>
        running(
          Effect.gen(function* () {
            let owed = 0
            for (const calls of windowsOf(yield* simulate(hosts, limit, delay, schedule))) {
              const errors = range(hosts).map((i) => unheard(calls, i, limit, delay))
              const error = errors.reduce((sum, one) => sum + one, 0) - Math.min(...errors)
              expect(admittedOf(calls)).toBeLessThanOrEqual(Math.min(limit + error, hosts * limit))
              let admitted = 0
              for (const { isAdmitted } of calls) {
                if (isAdmitted) admitted++
                else expect(owed + admitted).toBeGreaterThanOrEqual(limit)
              }
              owed = Math.max(0, owed + admitted - limit)
            }
          })
        )
      ),
      120
    ))

  test("exceed the limit by at most a twentieth for each other host, if calls come one by one", () =>
    checkAsync(
      fc.asyncProperty(
        hostsOf,
        fc.integer({ min: 1, max: 120 }),
        fc.array(fc.nat(3), { minLength: 250, maxLength: 250 }),
        (hosts, limit, ats) =>
          running(
            Effect.gen(function* () {
              const schedule = ats.map((at) => ({ at, calls: 1, wait: 150 }))
              const admitted = admittedOf(yield* simulate(hosts, limit, 5, schedule))
              expect(admitted).toBeGreaterThanOrEqual(limit)
              expect(admitted).toBeLessThanOrEqual(limit + (hosts - 1) * (quietOf(limit) + 1))
            })
          )
      ),
      10
    ))

  test("keep to the limit over time, at any host and at any time in a window", () =>
    checkAsync(
      fc.asyncProperty(
        hostsOf,
        fc.constantFrom(20, 60, 100),
        fc.constantFrom(0, 40),
        // For each window, the time and the hosts in turn
        fc.array(fc.record({ early: fc.boolean(), ats: fc.uniqueArray(fc.nat(3), { minLength: 1 }) }), { minLength: 6, maxLength: 12 }),
        (hosts, limit, delay, plan) =>
          running(
            Effect.gen(function* () {
              const length = WINDOW * 1000
              const schedule = plan.flatMap(({ early, ats }) =>
                ats.map((at, i) => ({ at, calls: limit + 5, wait: i > 0 ? 0 : early ? 10 : length - 20 }))
              )
              const windows = windowsOf(yield* simulate(hosts, limit, delay, schedule))
              const total = windows.reduce((sum, calls) => sum + admittedOf(calls), 0)
              expect(total).toBeLessThanOrEqual(windows.length * (limit + (hosts - 1) * quietOf(limit)) + 2 * (hosts - 1) * limit)
            })
          )
      ),
      30
    ))

  test("stop limiting the last host once the windows of stopped hosts are over", () =>
    checkAsync(
      fc.asyncProperty(
        fc.array(fc.record({ calls: fc.nat(50), at: fc.nat(2_000), ends: fc.nat(2_000) }), { minLength: 1, maxLength: 3 }),
        fc.boolean(),
        (others, isNew) =>
          running(
            Effect.gen(function* () {
              const store = yield* MemoryStateStore.make
              const policy = { limit: 40, window: WINDOW }
              const old = yield* host(store, policy)
              yield* admitted(old, 5)
              let spent = 5
              for (const { calls, at, ends } of others) {
                yield* pass(at)
                const life = yield* Scope.make()
                const other = yield* Scope.provide(host(store, policy), life)
                spent += yield* admitted(other, calls)
                yield* pass(ends)
                yield* Scope.close(life, Exit.void)
              }
              const left = isNew ? yield* host(store, policy) : old
              for (let owed = Math.max(0, spent - 40), window = 1; window < 8; window++) {
                yield* TestClock.setTime(window * WINDOW * 1000)
                const all = yield* admitted(left, 50)
                expect(all).toBeGreaterThanOrEqual(Math.max(0, 40 - owed))
                expect(all).toBeLessThanOrEqual(40)
                yield* pass(1_000)
                owed = Math.max(0, owed + all - 40)
                if (window === 7) expect(all).toBe(40)
              }
            })
          )
      ),
      30
    ))

  test("make a caller wait for the excess, at each host", () =>
    running(
      Effect.gen(function* () {
        const store = yield* MemoryStateStore.make
        const policy = { limit: 40, window: WINDOW }
        const [a, b, c] = yield* Effect.all([host(store, policy), host(store, policy), host(store, policy)])
        // Concurrently, at the end of a window
        yield* TestClock.setTime(WINDOW * 1000 - 10)
        for (const at of [a, b]) expect(yield* admitted(at, 50)).toBe(40)
        yield* pass(1_010)
        for (const at of [a, b]) {
          expect(yield* admits(at)).toBe(false)
          expect(yield* at.peek("account:a")).toEqual({ limit: 40, window: WINDOW, remaining: 0, resetAfter: WINDOW - 1 })
        }
        // Before it has the others' reports it admits a twentieth and one more, which is a debt as well
        expect(yield* admitted(c, 3)).toBe(3)
        yield* pass(1_000)
        expect((yield* Effect.flip(c.consume("account:a"))).resetAfter).toBe(WINDOW - 2)
        yield* TestClock.setTime(2 * WINDOW * 1000)
        expect(yield* admitted(c, 50)).toBe(37)
      })
    ))

  test("report a debt in each window, even without calls", () =>
    running(
      Effect.gen(function* () {
        const store = yield* MemoryStateStore.make
        const policy = { limit: 40, window: WINDOW }
        const hosts = yield* Effect.forEach(range(4), () => host(store, policy))
        for (const at of hosts) expect(yield* admitted(at, 40)).toBe(40)
        yield* pass(1_000)
        // The excess is 120: three windows
        for (const _ of range(3)) yield* TestClock.adjust(WINDOW * 1000)
        const late = yield* host(store, policy)
        expect(yield* admitted(late, 3)).toBe(3)
        yield* pass(1_000)
        expect(yield* admits(late)).toBe(false)
        yield* TestClock.adjust(WINDOW * 1000)
        expect(yield* admitted(late, 50)).toBe(37)
      })
    ))

  test("count in the same windows if the clock of one differs", () =>
    running(
      Effect.gen(function* () {
        const store = yield* MemoryStateStore.make
        const policy = { limit: 40, window: WINDOW }
        const right = yield* host(store, policy)
        const apart = { ahead: 2_000 }
        const ahead = yield* Effect.provideService(host(store, policy), Clock.Clock, yield* WrongClock.make(apart))
        const spend = (at: Host) => Effect.andThen(admitted(at, 3), Effect.andThen(pass(200), admitted(at, 50)))
        yield* TestClock.setTime(WINDOW * 1000 - 3_000)
        expect(yield* admitted(ahead, 30)).toBe(30)
        yield* TestClock.setTime(WINDOW * 1000 - 1_500)
        // The other host is in a new window, this one in the old
        expect(yield* admitted(ahead, 30)).toBe(30)
        yield* pass(200)
        expect(yield* spend(right)).toBe(7)
        yield* TestClock.setTime(WINDOW * 1000)
        expect(yield* spend(right)).toBe(7)
        // By an hour: neither uses the other's reports
        apart.ahead = 3_600_000
        expect(yield* spend(ahead)).toBe(37)
        yield* TestClock.setTime(2 * WINDOW * 1000)
        expect(yield* spend(right)).toBe(37)
      })
    ))

  test("count the calls of a host that died and restarted", () =>
    running(
      Effect.gen(function* () {
        const store = yield* MemoryStateStore.make
        const policy = { limit: 40, window: WINDOW }
        const life = yield* Scope.make()
        const first = yield* Scope.provide(host(store, policy), life)
        expect(yield* admitted(first, 40)).toBe(40)
        yield* pass(1_000)
        yield* Scope.close(life, Exit.void)
        const second = yield* host(store, policy)
        expect(yield* admitted(second, 3)).toBe(3)
        yield* pass(200)
        expect(yield* admits(second)).toBe(false)
      })
    ))

  test("count each key separately", () =>
    running(
      Effect.gen(function* () {
        const store = yield* MemoryStateStore.make
        const [a, b] = yield* Effect.all([host(store, { limit: 40, window: WINDOW }), host(store, { limit: 40, window: WINDOW })])
        expect(yield* admitted(a, 40, "account:a")).toBe(40)
        expect(yield* admitted(a, 20, "account:b")).toBe(20)
        expect(yield* admitted(b, 3, "account:a")).toBe(3)
        expect(yield* admitted(b, 3, "account:b")).toBe(3)
        yield* pass(1_000)
        expect(yield* admitted(b, 1, "account:a")).toBe(0)
        expect(yield* admitted(b, 50, "account:b")).toBe(17)
        expect(yield* admitted(b, 50, "account:c")).toBe(40)
      })
    ))
})

describe("the access of one host to the store", () => {
  const policy = { limit: 100, window: WINDOW }

  test("does not happen for keys that are seldom called, however many", () =>
    running(
      Effect.gen(function* () {
        const { store, calls } = counted(yield* MemoryStateStore.make)
        const at = yield* host(store, policy)
        const before = { ...calls }
        for (const i of range(2_000)) expect(yield* admitted(at, 5, `client:${i}`)).toBe(5)
        yield* pass(5_000)
        expect(calls).toEqual(before)
      })
    ))

  test("is at most one write and one read in 100 ms, and ends with the calls", () =>
    running(
      Effect.gen(function* () {
        const { store, calls } = counted(yield* MemoryStateStore.make)
        const at = yield* host(store, { limit: 1_000_000, window: WINDOW })
        const before = { ...calls }
        for (const _ of range(100)) {
          yield* admitted(at, 20, "account:a")
          yield* admitted(at, 50_001 / 25, "account:b")
          yield* TestClock.adjust(10)
        }
        const { list, write } = { list: calls.list - before.list, write: calls.write - before.write }
        expect(write).toBeGreaterThan(1)
        expect(write).toBeLessThanOrEqual(11)
        expect(list).toBe(write)
        yield* pass(5_000)
        const after = { ...calls }
        yield* pass(WINDOW * 1000)
        expect(calls).toEqual(after)
      })
    ))

  test("uses one row for all busy keys, which names none of them and expires with its windows", () =>
    running(
      Effect.gen(function* () {
        const store = yield* MemoryStateStore.make
        const at = yield* host(store, policy)
        for (const i of range(3_000)) yield* admitted(at, 10, `client:192.0.2.${i}`)
        yield* pass(1_000)
        const rows = yield* store.list("rates")
        expect(rows.length).toBe(1)
        expect(rows[0]?.value.length).toBe(6 + 2_000 * 28)
        const text = Buffer.from(rows[0]?.value ?? []).toString("latin1") + rows[0]?.key
        expect(text).not.toContain("client")
        expect(text).not.toContain("192.0.2")
        yield* pass(WINDOW * 1000 + 60_000)
        expect(yield* store.list("rates")).toEqual([])
        // There is room again
        const other = yield* host(store, policy)
        yield* admitted(at, 50, "account:a")
        yield* pass(200)
        yield* admitted(at, 50, "account:a")
        yield* pass(200)
        yield* admitted(other, 6, "account:a")
        yield* pass(200)
        expect(yield* admits(other)).toBe(false)
      })
    ))
})

describe("a store that fails", () => {
  const policy = { limit: 40, window: WINDOW }

  /** A store that fails while `broken` says so. */
  const breaking = (store: Store, answer: Effect.Effect<never, StateStore.StateUnavailable>, broken = { list: false, write: false }) => ({
    broken,
    store: {
      get: store.get,
      list: (...of) => Effect.suspend(() => (broken.list ? answer : store.list(...of))),
      write: (...of) => Effect.suspend(() => (broken.write ? answer : store.write(...of)))
    } satisfies Store
  })

  const answers = {
    fails: Effect.fail(new StateStore.StateUnavailable({ reason: "away" })),
    hangs: Effect.never,
    throws: Effect.die(new Error("a bug in a store"))
  }

  for (const [how, answer] of Object.entries(answers))
    for (const call of ["list", "write"] as const)
      test(`that ${how} at a ${call} blocks no call: each host counts alone, logs it once, and shares again`, () => {
        const lines: Array<string> = []
        const log = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${message}`.split(":")[0] ?? ""))
        return running(
          Effect.gen(function* () {
            const shared = yield* MemoryStateStore.make
            const { store, broken } = breaking(shared, answer)
            const a = yield* host(shared, policy, store)
            const b = yield* host(shared, policy)
            broken[call] = true
            expect(yield* admitted(a, 30)).toBe(30)
            yield* pass(200)
            expect(yield* admitted(a, 30)).toBe(10)
            for (const _ of range(8)) yield* pass(1_000)
            expect(lines).toEqual(["Warn Rate limits are counted by this host alone"])
            broken[call] = false
            for (const _ of range(40)) yield* pass(1_000)
            expect(lines).toEqual(["Warn Rate limits are counted by this host alone", "Info Rate limits are shared with other hosts again"])
            yield* admitted(b, 3)
            yield* pass(200)
            expect(yield* admits(b)).toBe(false)
          }).pipe(Effect.provide(Logger.layer([log])))
        )
      })

  test("leaves the last reports in force for their windows", () =>
    running(
      Effect.gen(function* () {
        const shared = yield* MemoryStateStore.make
        const { store, broken } = breaking(shared, answers.fails)
        const a = yield* host(shared, policy)
        const b = yield* host(shared, policy, store)
        expect(yield* admitted(a, 30)).toBe(30)
        yield* pass(200)
        yield* admitted(b, 3)
        yield* pass(200)
        broken.list = true
        broken.write = true
        expect(yield* admitted(b, 30)).toBe(7)
        yield* pass(WINDOW * 1000)
        expect(yield* admitted(b, 50)).toBe(40)
      }).pipe(Effect.provide(Logger.layer([])))
    ))

  test("does not matter if rows are malformed, or from a host whose clock is far ahead", () =>
    running(
      Effect.gen(function* () {
        const store = yield* MemoryStateStore.make
        const at = yield* host(store, policy)
        yield* admitted(at, 3)
        yield* pass(200)
        const [row] = yield* store.list("rates")
        const told = Buffer.from(row?.value ?? [])
        const [window, name] = [told.subarray(0, 6), told.subarray(6, 22)]
        const put = (key: string, value: Uint8Array) => store.write([{ _tag: "put", space: "rates", key, value }])
        // The same key with huge counts, and malformed rows
        yield* put("short", Uint8Array.of(1, 2, 3))
        yield* put("long", Buffer.concat([window, name, Buffer.alloc(12, 0xff), Uint8Array.of(1)]))
        yield* put("later", Buffer.concat([Buffer.alloc(6, 0xff), name, Buffer.alloc(12, 0xff)]))
        yield* admitted(at, 3)
        yield* pass(200)
        const refused = yield* Effect.flip(at.consume("account:a"))
        expect(refused.resetAfter).toBeLessThanOrEqual(WINDOW * 6)
        yield* TestClock.setTime(6 * WINDOW * 1000)
        expect(yield* admitted(at, 40)).toBe(40)
      })
    ))
})

describe("hosts on one PostgreSQL", () => {
  const policy = { limit: 60, window: 3_600 }
  const round = quietOf(policy.limit) + 1

  for (const hosts of [2, 4])
    test(`together admit the limit, plus a twentieth of it at ${hosts - 1} of them`, { timeout: 120_000 }, () =>
      Effect.runPromise(
        Effect.gen(function* () {
          const at = yield* Postgres.schema
          // A window that begins now
          const ahead = 3_600_000 - ((yield* Clock.currentTimeMillis) % 3_600_000)
          const clock = yield* WrongClock.make({ ahead })
          const opened = Effect.gen(function* () {
            const built = yield* Layer.build(Layer.fresh(PostgresStateStore.layer(at)))
            const { store, calls } = counted(Context.get(built, StateStore.StateStore))
            const rates = yield* host(store, policy, store, { patience: "1 minute" })
            Object.assign(calls, { listed: 0, write: 0 })
            return { rates, calls }
          })
          const all = yield* Effect.forEach(range(hosts), () => Effect.provideService(opened, Clock.Clock, clock))
          let total = 0
          for (let refusals = 0; refusals < hosts; ) {
            refusals = 0
            for (const { calls, rates } of all) {
              const before = calls.write
              const more = yield* admitted(rates, round)
              total += more
              if (more < round) refusals++
              // As many as must be reported: then both hosts exchange counts
              else while (calls.listed <= before) yield* Effect.sleep(5)
            }
          }
          expect(total).toBeGreaterThanOrEqual(policy.limit)
          expect(total).toBeLessThanOrEqual(policy.limit + (hosts - 1) * round)
        }).pipe(Effect.scoped)
      )
    )
})

test("Millrace.layer shares rate limits between hosts", () =>
  running(
    Effect.gen(function* () {
      const stores = yield* Layer.build(Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, MasterKey.layer(MASTER)))
      const built = Layer.build(Layer.fresh(Millrace.layer({ operations: [], rateLimit: { limit: 40, window: WINDOW } })))
      const opened = Effect.map(Effect.provideContext(built, Context.merge(yield* Effect.context<Scope.Scope>(), stores)), (context) =>
        Context.get(context, RateLimit)
      )
      const [a, b] = yield* Effect.all([opened, opened])
      expect(yield* admitted(a, 40)).toBe(40)
      expect(yield* admitted(b, 3)).toBe(3)
      yield* pass(1_000)
      expect(yield* admits(b)).toBe(false)
    })
  ))

describe("keys in memory", () => {
  test("are limited in number", () => {
    const counts = new RateCounts.Counts({ limit: 10, length: 60_000 }, 0, 100)
    for (const i of range(10_000)) {
      RateCounts.admit(counts.remember(`client:${i}`, 0))
      expect(counts.size).toBeLessThanOrEqual(100)
    }
    // The latest are among them
    expect(counts.find("client:9999", 0)?.calls).toBe(1)
    expect(counts.find("client:0", 0)).toBeUndefined()
  })

  test("keep their debt without calls", () => {
    const counts = new RateCounts.Counts({ limit: 10, length: 1_000 }, 0)
    const tally = counts.remember("account:a", 0)
    for (const _ of range(10)) RateCounts.admit(tally)
    counts.merge(tally, [{ window: 0, calls: 30, before: 0, debt: 0 }], 0)
    expect(counts.freeAt(tally)).toBe(4_000)
    for (const at of [1_500, 2_600, 3_900]) counts.remember("account:b", at)
    expect(counts.total(counts.remember("account:a", 3_950))).toBe(10)
    expect(counts.total(counts.remember("account:a", 4_000))).toBe(0)
  })
})
