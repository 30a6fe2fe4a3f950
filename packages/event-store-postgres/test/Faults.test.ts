/** Servers that are unreachable, refuse, fall silent, die or come back. The errors are clear, and no event is lost or doubled. */
import { EventStore, type StreamName } from "@millrace/event-sourcing"
import { PostgresEventStore, PostgresStateStore } from "@millrace/event-store-postgres"
import { Effect, Exit, Fiber, type Scope, Stream } from "effect"
import pg from "pg"
import { afterAll, assert, beforeAll, describe, expect, it } from "vitest"
import * as FaultProxy from "../../testing/src/FaultProxy.ts"
import { faultOfConnecting, faultOfStatement } from "../src/Fault.ts"
import { client, freshSchema } from "./Postgres.ts"
import { type Server, startServer } from "./PostgresServer.ts"
import { appendByHand, event, idsOf, persist, readAll, run, type Store, until } from "./Writing.ts"

let server: Server
const unhandled: Array<unknown> = []
const hear = (reason: unknown) => void unhandled.push(reason)

beforeAll(async () => {
  process.on("unhandledRejection", hear)
  process.on("uncaughtException", hear)
  server = await startServer()
})

afterAll(async () => {
  await server.remove()
  process.off("unhandledRejection", hear)
  process.off("uncaughtException", hear)
  expect(unhandled).toEqual([])
})

const test = (title: string, body: Effect.Effect<void, unknown, Scope.Scope>) => it(title, () => Effect.runPromise(Effect.scoped(body)))

const reasonOf = <A, R>(effect: Effect.Effect<A, { readonly _tag: string; readonly reason?: string }, R>) =>
  Effect.map(Effect.flip(effect), (error) => `${error._tag}: ${error.reason}`)

const refusal = (url: string) => reasonOf(Effect.scoped(PostgresEventStore.make({ url, schema: freshSchema() })))

const withPath = (path: string) => server.url.replace("/postgres?", "/").replace(/\/postgres$/, path)

describe("a server that refuses the connection", () => {
  test(
    "is reported with what to check, and without the password",
    Effect.gen(function* () {
      const told = [
        yield* refusal(server.url.replace(/:\d+\//, ":1/")),
        yield* refusal(server.url.replace("secret", "wrong")),
        yield* refusal(server.url.replace("postgres:secret", "nobody:secret")),
        yield* refusal(withPath("/nowhere")),
        yield* refusal("mysql://user:secret@localhost/x"),
        yield* refusal("postgres://user:secret@[/x"),
        yield* refusal(server.url.replace("127.0.0.1", "no-such-host.invalid")),
        yield* refusal(`${server.url}?sslmode=verify-full`)
      ]
      expect(told[0]).toMatch(/^StoreUnavailable: PostgreSQL at 127\.0\.0\.1:1\/postgres refuses connections: is it running/)
      expect(told[1]).toMatch(/^StoreUnavailable: .* does not let this user in: .*password authentication failed/)
      expect(told[2]).toMatch(/^StoreUnavailable: .* does not let this user in/)
      expect(told[3]).toMatch(/^StoreUnavailable: .*\/nowhere: there is no such database/)
      expect(told[4]).toMatch(/^StoreUnavailable: Not the address of a PostgreSQL database: it must start with postgres:\/\//)
      expect(told[5]).toMatch(/^StoreUnavailable: Not the address of a PostgreSQL database/)
      expect(told[6]).toMatch(/^StoreUnavailable: .*: no such host/)
      expect(told[7]).toMatch(/^StoreUnavailable: .*does not support SSL/)
      for (const reason of told) expect(reason).not.toContain("secret")
    })
  )

  test(
    "has no connection left",
    Effect.gen(function* () {
      const db = yield* client(server.url)
      yield* run(db, "DROP ROLE IF EXISTS few; CREATE ROLE few LOGIN SUPERUSER PASSWORD 'secret' CONNECTION LIMIT 0")
      yield* run(db, "ALTER ROLE few NOSUPERUSER")
      expect(yield* refusal(server.url.replace("postgres:secret", "few:secret"))).toMatch(/has no connection left: lower maxConnections/)
    })
  )

  it("has a reason for each error code", () => {
    const ofCode = (code: string, severity = "ERROR") => {
      const error = new pg.DatabaseError("told", 4, "error")
      error.code = code
      error.severity = severity
      return faultOfStatement(error, "here")
    }
    for (const [code, reason] of [
      ["53100", /no space left/],
      ["25006", /read-only/],
      ["57014", /timeout such as statement_timeout/],
      ["57P03", /starting up/],
      ["42501", /does not allow/],
      ["42P01", /tables or functions of Millrace are missing/],
      ["40001", /failed \(40001: told\)/]
    ] as const) {
      const fault = ofCode(code)
      expect(fault.inDoubt, code).toBe(false)
      expect(fault.message).toMatch(reason)
    }
    const lost = expect.stringMatching(/^The connection to here was lost/)
    // A full disk under the write-ahead log is a PANIC, a shutdown is FATAL: neither shows whether the commit was written
    expect(ofCode("53100", "PANIC").inDoubt).toBe(true)
    expect(ofCode("57P01", "FATAL")).toMatchObject({ message: lost, inDoubt: true })
    expect(faultOfStatement(new Error("Connection terminated unexpectedly"), "here")).toMatchObject({ message: lost, inDoubt: true })
    const untrusted = Object.assign(new Error("self-signed certificate"), { code: "DEPTH_ZERO_SELF_SIGNED_CERT" })
    expect(faultOfConnecting(untrusted, "here").message).toMatch(
      /^The certificate of here is not trusted: name its authority by sslrootcert/
    )
    expect(faultOfConnecting(new Error("Connection terminated unexpectedly"), "here")).toMatchObject({ message: lost, inDoubt: false })
  })
})

const through = Effect.gen(function* () {
  const schema = freshSchema()
  const direct = yield* PostgresEventStore.make({ url: server.url, schema })
  const proxy = yield* FaultProxy.make(server.port)
  const options = { url: server.url.replace(/:\d+\//, `:${proxy.port}/`), schema, listenUrl: false as const, deadline: 1_500 }
  return { schema, direct, proxy, options, store: yield* PostgresEventStore.make(options) }
})

describe("an append whose answer is lost", () => {
  const lose = (faults: FaultProxy.Faults, isWritten: boolean) =>
    Effect.gen(function* () {
      const { store, direct, proxy } = yield* through
      const streams = [0, 1, 2].map((i): StreamName.StreamName => `a-${i}`)
      const batches = streams.map(() => [event(), event()] as const)
      const send = Effect.forEach(batches, (batch, i) => Effect.exit(store.append(streams[i] ?? "a-0", "noStream", batch)), {
        concurrency: "unbounded"
      })
      // The connection is open already, so that the append is lost and not the connection attempt
      expect(yield* store.lastRevision("a-0")).toBe("noStream")
      proxy.set(faults)
      const lost = yield* send
      proxy.set()
      expect(proxy.struck()).toBeGreaterThan(0)
      for (const exit of lost) {
        assert(Exit.isFailure(exit))
        expect(String(exit.cause)).toMatch(/AppendInDoubt/)
      }
      expect(idsOf(yield* readAll(direct, EventStore.start))).toEqual(isWritten ? batches.flat().map(({ id }) => id) : [])
      // The identical appends settle it
      const settled = yield* send
      for (const exit of settled) assert(Exit.isSuccess(exit) && exit.value.revision === 1)
      const all = yield* readAll(direct, EventStore.start)
      expect(idsOf(all)).toEqual(batches.flat().map(({ id }) => id))
      expect(settled.map((exit) => Exit.isSuccess(exit) && exit.value.position)).toEqual([1, 3, 5].map((i) => all[i]?.position))
    })

  test("before it arrived, is in doubt until it is sent again", lose({ up: { _tag: "reset" } }, false))
  test("after it was written, is in doubt until it is sent again", lose({ down: { _tag: "reset" } }, true))
  test("in silence, before it arrived, is in doubt at its deadline", lose({ up: { _tag: "blackHole" } }, false))
  test("in silence, after it was written, is in doubt at its deadline", lose({ down: { _tag: "blackHole" } }, true))
})

describe("a server that cannot be reached for a while", () => {
  test(
    "fails each call at its deadline, and serves again afterwards",
    Effect.gen(function* () {
      const { store, proxy, options } = yield* through
      const state = yield* PostgresStateStore.make(options)
      yield* store.append("a-1", "noStream", [event()])
      const seen: Array<EventStore.RecordedEvent> = []
      for (const _tag of ["reset", "blackHole"] as const) {
        proxy.set({ up: { _tag } })
        const told = yield* Effect.all(
          [
            reasonOf(store.lastRevision("a-1")),
            reasonOf(Stream.runCollect(store.readStream("a-1"))),
            reasonOf(Stream.runCollect(store.readAll(EventStore.start))),
            reasonOf(store.head),
            reasonOf(store.loadSnapshot("a-1")),
            reasonOf(store.saveSnapshot("a-1", { revision: 1, data: "{}" })),
            reasonOf(state.get("s", "k")),
            reasonOf(state.list("s")),
            reasonOf(state.write([{ _tag: "remove", space: "s", key: "k" }])),
            reasonOf(Stream.runForEach(store.subscribe(EventStore.start), ({ events }) => Effect.sync(() => seen.push(...events))))
          ],
          { concurrency: "unbounded" }
        )
        for (const reason of told)
          expect(reason).toMatch(/^St(ore|ate)Unavailable: .*(was lost|did not answer within 1.5 s|gave no connection in time)/)
        proxy.set()
        proxy.reset()
        expect(yield* store.lastRevision("a-1")).toBe(0)
        expect(yield* state.get("s", "k")).toBeUndefined()
      }
    })
  )

  test(
    "does not delay closing",
    Effect.gen(function* () {
      const { proxy, options } = yield* through
      const closing = Effect.scoped(
        Effect.gen(function* () {
          const store = yield* PostgresEventStore.make(options)
          yield* store.append("a-1", "noStream", [event()])
          proxy.set({ up: { _tag: "blackHole" } })
          const fiber = yield* Effect.forkChild(Effect.flip(store.append("a-2", "noStream", [event()])), { startImmediately: true })
          yield* until(
            "it was sent",
            Effect.sync(() => proxy.struck() > 0)
          )
          return fiber
        })
      )
      const fiber = yield* Effect.timeout(closing, 8_000)
      expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "AppendInDoubt", reason: "The store was closed" })
    })
  )
})

/** Checks that no event is lost, doubled or out of order, and that the log has no gaps. */
const isWhole = (store: Store, written: ReadonlyArray<ReadonlyArray<string>>) =>
  Effect.gen(function* () {
    const all = yield* readAll(store, EventStore.start)
    for (const [i, ids] of written.entries()) expect(idsOf(all.filter(({ stream }) => stream === `a-${i}`))).toEqual(ids)
    expect(all).toHaveLength(written.flat().length)
    expect(all.map(({ position }) => Number(position))).toEqual(all.map((_, i) => i + 1))
    return all
  })

describe("a server under load", () => {
  /** Writes to sixteen streams until `isOver`, and for a while after it. */
  const load = (store: Store) => {
    const state = { isOver: false, troubles: 0 }
    const write = (stream: StreamName.StreamName) =>
      Effect.gen(function* () {
        const written: Array<string> = []
        while (!state.isOver) written.push(...(yield* persist(store, stream, written.length, 10, () => state.troubles++)))
        return [...written, ...(yield* persist(store, stream, written.length, 10))]
      })
    return Effect.map(
      Effect.forkScoped(
        Effect.forEach(
          Array.from({ length: 16 }, (_, i) => i),
          (i) => write(`a-${i}`),
          { concurrency: "unbounded" }
        )
      ),
      (fiber) => ({
        end: Effect.suspend(() => {
          state.isOver = true
          return Fiber.join(fiber)
        }),
        troubles: () => state.troubles
      })
    )
  }

  const follow = (store: Store, seen: Array<EventStore.RecordedEvent>) => {
    const again: Effect.Effect<never> = store.subscribe(seen.at(-1)?.position ?? EventStore.start).pipe(
      Stream.runForEach(({ events }) => Effect.sync(() => seen.push(...events))),
      Effect.ignore,
      Effect.andThen(Effect.sleep(5)),
      Effect.andThen(Effect.suspend(() => follow(store, seen)))
    )
    return again
  }

  test(
    "whose backends are ended repeatedly loses and doubles no event, and followers keep following",
    Effect.gen(function* () {
      const schema = freshSchema()
      const options = { url: server.url, schema }
      const [store, other] = [yield* PostgresEventStore.make(options), yield* PostgresEventStore.make(options)]
      const seen: Array<EventStore.RecordedEvent> = []
      yield* Effect.forkScoped(follow(other, seen))
      const db = yield* client(server.url)
      const writing = yield* load(store)
      for (let i = 0; i < 15 || writing.troubles() === 0; i++) {
        yield* Effect.sleep(30)
        yield* run(db, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'millrace'")
      }
      const all = yield* isWhole(store, yield* writing.end)
      yield* until(
        "all are followed",
        Effect.sync(() => seen.length === all.length)
      )
      expect(seen).toEqual(all)
    })
  )

  test(
    "that is killed and restarted keeps every acknowledged event, and serves again",
    Effect.gen(function* () {
      const options = { url: server.url, schema: freshSchema() }
      const [store, other] = [yield* PostgresEventStore.make(options), yield* PostgresEventStore.make(options)]
      const seen: Array<EventStore.RecordedEvent> = []
      yield* Effect.forkScoped(follow(other, seen))
      const writing = yield* load(store)
      for (const end of [server.kill, server.stop, server.kill]) {
        yield* Effect.sleep(100)
        yield* Effect.promise(end)
        expect(yield* reasonOf(other.lastRevision("a-0"))).toMatch(/^StoreUnavailable: .*(was lost|refuses connections)/)
        yield* Effect.promise(server.start)
      }
      const all = yield* isWhole(store, yield* writing.end)
      expect(writing.troubles()).toBeGreaterThan(0)
      yield* until(
        "all are followed",
        Effect.sync(() => seen.length === all.length)
      )
      expect(seen).toEqual(all)
    })
  )

  test(
    "that cancels a slow statement has written nothing of it",
    Effect.gen(function* () {
      const schema = freshSchema()
      const store = yield* PostgresEventStore.make({ url: `${server.url}?options=-c%20statement_timeout%3D100`, schema })
      const db = yield* client(server.url)
      yield* run(db, "BEGIN")
      yield* appendByHand(db, schema, "held-1")
      expect(yield* reasonOf(store.append("a-1", "noStream", [event()]))).toMatch(
        /^StoreUnavailable: .*gave up: a timeout such as statement_timeout/
      )
      yield* run(db, "ROLLBACK")
      expect(yield* store.lastRevision("a-1")).toBe("noStream")
    })
  )
})

describe("a listening connection", () => {
  test(
    "that was ended is reopened; meanwhile the log is polled",
    Effect.gen(function* () {
      const options = { url: server.url, schema: freshSchema() }
      const [store, other] = [yield* PostgresEventStore.make(options), yield* PostgresEventStore.make(options)]
      const db = yield* client(server.url)
      const listeners = Effect.map(
        run(db, "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' OR (query = 'SELECT 1' AND application_name = 'millrace')"),
        ({ rows }) => rows.map(({ pid }) => Number(pid))
      )
      const seen: Array<EventStore.RecordedEvent> = []
      yield* Effect.forkScoped(
        Stream.runForEach(other.subscribe(EventStore.start), ({ events }) => Effect.sync(() => seen.push(...events)))
      )
      yield* until(
        "both listen",
        Effect.map(listeners, ({ length }) => length === 2)
      )
      const first = yield* listeners
      yield* run(db, `SELECT pg_terminate_backend(pid) FROM unnest('{${first.join(",")}}'::int[]) pid`)
      yield* store.append("a-1", "noStream", [event()])
      yield* until(
        "it is followed without",
        Effect.sync(() => seen.length === 1)
      )
      yield* until(
        "both listen again",
        Effect.map(listeners, (pids) => pids.length === 2 && !pids.some((pid) => first.includes(pid)))
      )
      yield* store.append("a-1", 0, [event()])
      yield* until(
        "it is followed",
        Effect.sync(() => seen.length === 2)
      )
    })
  )
})
