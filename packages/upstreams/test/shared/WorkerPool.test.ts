import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { BroadcastChannel } from "node:worker_threads"
import { UpstreamUnavailable } from "@millrace/core"
import { Effect, Exit, Fiber, Result, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as WorkerPool from "../../src/shared/WorkerPool.ts"
import type { Order } from "./FaultyWorker.ts"
import { watchThreads } from "./Threads.ts"

const Reply = Schema.Struct({ echo: Schema.String, answered: Schema.Int })

const makePool = (options: Partial<WorkerPool.Options<typeof Reply.Type>> = {}) =>
  WorkerPool.make<Order, typeof Reply.Type>({
    upstream: "faulty",
    script: new URL("./FaultyWorker.ts", import.meta.url),
    waitLimit: "1 minute",
    timeLimit: "20 seconds",
    idleLimit: "Infinity",
    ...options,
    reply: Reply
  })

/** A pool of one thread, asked by one account for one reply at a time. */
const makeFaulty = (options: Partial<WorkerPool.Options<typeof Reply.Type>> = {}) =>
  Effect.map(makePool(options), ({ ask }) => ({ ask: (order: Order) => Effect.map(ask("account", [order]), ([reply]) => reply) }))

/** Completes when a thread says that it entered its endless loop. */
const looping = Effect.gen(function* () {
  const channel = yield* Effect.acquireRelease(
    Effect.sync(() => new BroadcastChannel("loops")),
    (channel) => Effect.sync(() => channel.close())
  )
  return Effect.callback<void>((resume) => {
    channel.onmessage = () => resume(Effect.void)
  })
})

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

describe("a worker thread", () => {
  test("starts with the first message, once", () =>
    run(
      Effect.gen(function* () {
        const threads = yield* watchThreads
        const worker = yield* makeFaulty()
        expect(threads.started).toHaveLength(0)
        expect(yield* worker.ask({ echo: "a" })).toEqual({ echo: "a", answered: 1 })
        expect(yield* worker.ask({ echo: "b" })).toEqual({ echo: "b", answered: 2 })
        expect(threads.started).toHaveLength(1)
      })
    ))

  test("sees the environment of the process, unless it is to see none", () =>
    run(
      Effect.gen(function* () {
        const open = yield* makeFaulty()
        expect((yield* open.ask("environment"))?.echo).toContain("PATH")
        const closed = yield* makeFaulty({ environment: "none" })
        expect((yield* closed.ask("environment"))?.echo).toBe("")
      })
    ))

  test("ends with its scope, which waits for it", () =>
    run(
      Effect.gen(function* () {
        const threads = yield* watchThreads
        const worker = yield* Effect.scoped(Effect.tap(makeFaulty(), (worker) => worker.ask({ echo: "a" })))
        expect(threads.ended).toEqual(threads.started)
        expect(threads.ended).toHaveLength(1)
        expect(Exit.isFailure(yield* Effect.exit(worker.ask({ echo: "b" })))).toBe(true)
        expect(threads.started).toHaveLength(1)
      })
    ))

  test("fails its message when its scope closes", () =>
    run(
      Effect.gen(function* () {
        const loop = yield* looping
        const scope = yield* Scope.make()
        const worker = yield* Scope.provide(makeFaulty(), scope)
        const asked = yield* Effect.forkChild(Effect.exit(worker.ask("loop")), { startImmediately: true })
        yield* loop
        yield* Scope.close(scope, Exit.void)
        expect(Exit.isFailure(yield* Fiber.join(asked))).toBe(true)
      })
    ))

  test.each<[Order, string]>([
    ["throw", "the worker thread failed: unreachable"],
    ["exit", "the worker thread ended with code 3"],
    ["babble", "the worker thread's reply has an unknown shape"]
  ])("that answers with %s is replaced, and the next answers waiting messages", (order, reason) =>
    run(
      Effect.gen(function* () {
        const threads = yield* watchThreads
        const worker = yield* makeFaulty()
        const replies = yield* Effect.all([worker.ask(order), worker.ask({ echo: "a" }), worker.ask({ echo: "b" })].map(Effect.result), {
          concurrency: "unbounded"
        })
        expect(replies).toEqual([
          Result.fail(new UpstreamUnavailable({ upstream: "faulty", reason, ...(order === "babble" ? {} : { isolated: true }) })),
          Result.succeed({ echo: "a", answered: 1 }),
          Result.succeed({ echo: "b", answered: 2 })
        ])
        expect(threads.started).toHaveLength(2)
        expect(threads.ended).toEqual(threads.started.slice(0, 1))
      })
    )
  )

  test("that cannot be interrupted is ended after the time limit", () =>
    run(
      Effect.gen(function* () {
        const threads = yield* watchThreads
        const loop = yield* looping
        const worker = yield* makeFaulty()
        const looped = yield* Effect.forkChild(Effect.flip(worker.ask("loop")), { startImmediately: true })
        const waiting = yield* Effect.forkChild(worker.ask({ echo: "a" }), { startImmediately: true })
        yield* loop
        yield* TestClock.adjust("20 seconds")
        expect(yield* Fiber.join(looped)).toMatchObject({
          _tag: "UpstreamUnavailable",
          reason: "the worker thread exceeded its time limit",
          isolated: true
        })
        expect(threads.ended).toHaveLength(1)
        expect(yield* Fiber.join(waiting)).toEqual({ echo: "a", answered: 1 })
      })
    ))

  test("is ended by the interruption of its message, and of no other", () =>
    run(
      Effect.gen(function* () {
        const threads = yield* watchThreads
        const loop = yield* looping
        const worker = yield* makeFaulty()
        const looped = yield* Effect.forkChild(worker.ask("loop"), { startImmediately: true })
        const interrupted = yield* Effect.forkChild(worker.ask({ echo: "a" }), { startImmediately: true })
        const waiting = yield* Effect.forkChild(worker.ask({ echo: "b" }), { startImmediately: true })
        yield* loop
        yield* Fiber.interrupt(interrupted)
        expect(threads.ended).toHaveLength(0)
        yield* Fiber.interrupt(looped)
        expect(threads.ended).toHaveLength(1)
        expect(yield* Fiber.join(waiting)).toEqual({ echo: "b", answered: 1 })
      })
    ))

  test("refuses messages beyond its queue, and accepts them as soon as one leaves", () =>
    run(
      Effect.gen(function* () {
        const loop = yield* looping
        const worker = yield* makeFaulty({ queueLimit: 2 })
        const looped = yield* Effect.forkChild(worker.ask("loop"), { startImmediately: true })
        const waiting = yield* Effect.forkChild(worker.ask({ echo: "a" }), { startImmediately: true })
        expect(yield* Effect.flip(worker.ask({ echo: "b" }))).toMatchObject({
          _tag: "UpstreamUnavailable",
          reason: "2 calls wait already",
          isolated: true
        })
        yield* loop
        yield* Fiber.interrupt(looped)
        yield* Fiber.join(waiting)
        expect(yield* Effect.all([worker.ask({ echo: "c" }), worker.ask({ echo: "d" })], { concurrency: 2 })).toHaveLength(2)
      })
    ))

  test("that died idle is replaced without a failure", () =>
    run(
      Effect.gen(function* () {
        const threads = yield* watchThreads
        const worker = yield* makeFaulty()
        yield* worker.ask({ echo: "a" })
        yield* Effect.promise(async () => threads.started[0]?.terminate())
        expect(yield* worker.ask({ echo: "b" })).toEqual({ echo: "b", answered: 1 })
        expect(threads.started).toHaveLength(2)
      })
    ))

  test("is ended when idle, and started again when needed", () =>
    run(
      Effect.gen(function* () {
        const threads = yield* watchThreads
        const worker = yield* makeFaulty({ idleLimit: "5 minutes" })
        yield* worker.ask({ echo: "a" })
        yield* TestClock.adjust("4 minutes")
        expect(yield* worker.ask({ echo: "b" })).toEqual({ echo: "b", answered: 2 })
        yield* TestClock.adjust("4 minutes")
        expect(threads.ended).toHaveLength(0)
        yield* TestClock.adjust("1 minute")
        yield* threads.nextEnd
        expect(yield* worker.ask({ echo: "c" })).toEqual({ echo: "c", answered: 1 })
        expect(threads.started).toHaveLength(2)
      })
    ))

  test("does not keep an otherwise idle process alive", async () => {
    const script = fileURLToPath(new URL("./IdleProcess.ts", import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, script], { timeout: 10_000 })
    expect(stdout).toBe("a")
  })

  test("without a script fails each message", () =>
    run(
      Effect.gen(function* () {
        const worker = yield* makeFaulty({ script: new URL("./Missing.ts", import.meta.url) })
        const replies = yield* Effect.all([worker.ask({ echo: "a" }), worker.ask({ echo: "b" })].map(Effect.flip), { concurrency: 2 })
        for (const reply of replies) {
          expect(reply).toBeInstanceOf(UpstreamUnavailable)
          expect(reply.isolated).toBeUndefined()
        }
      })
    ))

  test("answers any sequence of messages, each with its own reply", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.oneof(
            { weight: 4, arbitrary: fc.record({ echo: fc.string() }) },
            { weight: 1, arbitrary: fc.constantFrom<Order>("throw", "exit", "babble") }
          ),
          { maxLength: 8 }
        ),
        (orders) =>
          run(
            Effect.gen(function* () {
              const worker = yield* makeFaulty()
              const replies = yield* Effect.all(
                orders.map((order) => Effect.result(worker.ask(order))),
                { concurrency: "unbounded" }
              )
              const echoes = replies.map((reply) => (Result.isSuccess(reply) ? reply.success?.echo : reply.failure._tag))
              expect(echoes).toEqual(orders.map((order) => (typeof order === "string" ? "UpstreamUnavailable" : order.echo)))
            })
          )
      ),
      { numRuns: 12, seed: 1 }
    ))
})

describe("a worker pool", () => {
  /** Asks for each reply by a call of its own. */
  const askAll = (pool: WorkerPool.WorkerPool<Order, typeof Reply.Type>, accountId: string, orders: ReadonlyArray<Order>) =>
    Effect.forkChild(
      Effect.forEach(orders, (order) => Effect.exit(pool.ask(accountId, [order])), { concurrency: "unbounded" }),
      { startImmediately: true }
    )

  const echoes = (name: string, count: number): ReadonlyArray<Order> => Array.from({ length: count }, (_, i) => ({ echo: `${name}${i}` }))

  /** What a single thread answered, in its order. */
  const inOrder = (...exits: ReadonlyArray<Exit.Exit<ReadonlyArray<typeof Reply.Type>, unknown>>) =>
    exits
      .flatMap((exit) => (Exit.isSuccess(exit) ? exit.value : []))
      .sort((a, b) => a.answered - b.answered)
      .map(({ echo }) => echo)

  test("takes turns between accounts, however many messages one sends", () =>
    run(
      Effect.gen(function* () {
        const pool = yield* makePool()
        const many = yield* askAll(pool, "a", echoes("a", 25))
        const few = yield* askAll(pool, "b", echoes("b", 5))
        const served = inOrder(...(yield* Fiber.join(many)), ...(yield* Fiber.join(few)))
        expect(served.slice(0, 10)).toEqual(["a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3", "a4", "b4"])
        expect(served.slice(10)).toEqual(Array.from({ length: 20 }, (_, i) => `a${i + 5}`))
      })
    ))

  test("takes the messages of one call in turn with others", () =>
    run(
      Effect.gen(function* () {
        const pool = yield* makePool()
        const long = yield* Effect.forkChild(Effect.exit(pool.ask("a", echoes("a", 5))), { startImmediately: true })
        const few = yield* askAll(pool, "b", echoes("b", 2))
        expect(inOrder(yield* Fiber.join(long), ...(yield* Fiber.join(few)))).toEqual(["a0", "b0", "a1", "b1", "a2", "a3", "a4"])
      })
    ))

  test("gives accounts equal time, not equal turns", () =>
    run(
      Effect.gen(function* () {
        const loop = yield* looping
        const pool = yield* makePool()
        yield* pool.ask("a", [{ echo: "start" }])
        const slow = yield* askAll(pool, "a", ["loop", { echo: "a" }])
        const quick = yield* askAll(pool, "b", echoes("b", 10))
        yield* loop
        yield* TestClock.adjust("20 seconds")
        const served = inOrder(...(yield* Fiber.join(slow)), ...(yield* Fiber.join(quick)))
        expect(served).toEqual([...Array.from({ length: 10 }, (_, i) => `b${i}`), "a"])
      })
    ))

  test("serves an account whose turns alternate with messages that end a thread", () =>
    run(
      Effect.gen(function* () {
        const threads = yield* watchThreads
        const pool = yield* makePool()
        const hostile = yield* askAll(
          pool,
          "a",
          Array.from({ length: 4 }, () => "exit")
        )
        const honest = yield* askAll(pool, "b", echoes("b", 4))
        const exits = yield* Fiber.join(honest)
        expect(exits.every(Exit.isSuccess)).toBe(true)
        for (const exit of yield* Fiber.join(hostile))
          expect(exit).toEqual(
            Exit.fail(new UpstreamUnavailable({ upstream: "faulty", reason: "the worker thread ended with code 3", isolated: true }))
          )
        expect(threads.started).toHaveLength(5)
      })
    ))

  test("limits the calls of each account, and admits others", () =>
    run(
      Effect.gen(function* () {
        const loop = yield* looping
        const pool = yield* makePool({ accountLimit: 2, queueLimit: 3 })
        const looped = yield* Effect.forkChild(pool.ask("a", ["loop"]), { startImmediately: true })
        yield* loop
        const second = yield* Effect.forkChild(pool.ask("a", [{ echo: "a" }]), { startImmediately: true })
        const reason = (accountId: string) => Effect.map(Effect.flip(pool.ask(accountId, [{ echo: "x" }])), ({ reason }) => reason)
        expect(yield* reason("a")).toBe("2 calls of the account wait already")
        const other = yield* Effect.forkChild(pool.ask("b", [{ echo: "b" }]), { startImmediately: true })
        expect(yield* reason("b")).toBe("3 calls wait already")
        yield* Fiber.interrupt(looped)
        expect(yield* Fiber.join(other)).toMatchObject([{ echo: "b" }])
        expect(yield* Fiber.join(second)).toMatchObject([{ echo: "a" }])
        expect(yield* pool.ask("a", [{ echo: "c" }])).toMatchObject([{ echo: "c" }])
      })
    ))

  test("fails a call whose later message waited too long, and ends no thread", () =>
    run(
      Effect.gen(function* () {
        const threads = yield* watchThreads
        const loop = yield* looping
        const pool = yield* makePool({ waitLimit: "5 seconds" })
        const other = yield* Effect.forkChild(Effect.exit(pool.ask("a", ["loop"])), { startImmediately: true })
        yield* loop
        const waiting = yield* Effect.forkChild(Effect.flip(pool.ask("b", echoes("b", 3))), { startImmediately: true })
        yield* TestClock.adjust("5 seconds")
        expect(yield* Fiber.join(waiting)).toMatchObject({ reason: "it waited too long for its turn", isolated: true })
        expect(threads.ended).toHaveLength(0)
        yield* Fiber.interrupt(other)
        expect(yield* pool.ask("b", echoes("c", 2))).toMatchObject([{ echo: "c0" }, { echo: "c1" }])
      })
    ))

  test("works on as many messages at once as it has threads", () =>
    run(
      Effect.gen(function* () {
        const threads = yield* watchThreads
        const loop = yield* looping
        const pool = yield* makePool({ threads: 2 })
        const looped = yield* Effect.forkChild(pool.ask("a", ["loop"]), { startImmediately: true })
        yield* loop
        expect(yield* pool.ask("b", echoes("b", 3))).toMatchObject([{ echo: "b0" }, { echo: "b1" }, { echo: "b2" }])
        expect(threads.started).toHaveLength(2)
        yield* Fiber.interrupt(looped)
      })
    ))
})
