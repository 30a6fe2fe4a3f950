/** A server whose settings lose acknowledged writes is refused; a server that may lose them causes a warning. */
import { EventStore } from "@millrace/event-sourcing"
import { PostgresEventStore, PostgresStateStore } from "@millrace/event-store-postgres"
import { Effect, Fiber, Logger, type Scope } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { client, freshSchema } from "./Postgres.ts"
import { type Server, startServer } from "./PostgresServer.ts"
import { event, idsOf, readAll, run, until } from "./Writing.ts"

let server: Server

beforeAll(async () => {
  server = await startServer("fsync = off")
})

afterAll(() => server.remove())

const test = (title: string, body: Effect.Effect<void, unknown, Scope.Scope>) => it(title, () => Effect.runPromise(Effect.scoped(body)))

const reasonOf = <A, R>(effect: Effect.Effect<A, { readonly _tag: string; readonly reason?: string }, R>) =>
  Effect.map(Effect.flip(effect), (error) => `${error._tag}: ${error.reason}`)

/** The appends that wait for this. Notifications wait for a standby as well. */
const appending = (kind: string) => `wait_event = '${kind}' AND query LIKE '%append%'`

const opening = (more = "") => Effect.scoped(PostgresEventStore.make({ url: `${server.url}${more}`, schema: freshSchema() }))

/** The warnings that a store logs while it is opened. */
const warnings = (more: string) =>
  Effect.suspend(() => {
    const told: Array<string> = []
    const logger = Logger.make(({ message, logLevel }) => void told.push(`${logLevel}: ${String(message)}`))
    return Effect.as(Effect.provide(opening(more), Logger.layer([logger])), told)
  })

/** Changes settings as the server's configuration file would. */
const set = (name: string, value: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const db = yield* client(server.url)
      yield* run(db, `ALTER SYSTEM SET ${name} = ${value}`)
      yield* run(db, "SELECT pg_reload_conf()")
      yield* until(
        `${name} is ${value}`,
        Effect.map(run(db, `SHOW ${name}`), ({ rows: [row] }) => row?.[name] === value)
      )
    })
  )

/**
 * Demands a standby that is not there. Returns once commits wait for it: the server's checkpointer decides that, and may learn of a setting
 * later than sessions do.
 */
const demandStandby = Effect.scoped(
  Effect.gen(function* () {
    yield* set("synchronous_standby_names", "other")
    const [writer, db] = [yield* client(server.url), yield* client(server.url)]
    // A wait that is cancelled lets its commit through
    const endWait = Effect.map(
      run(db, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"),
      ({ rows }) => rows.length > 0
    )
    const commit = run(writer, "SELECT pg_logical_emit_message(true, 'test', '')")
    yield* until("commits wait", Effect.raceFirst(Effect.as(commit, false), Effect.as(until("a commit waits", endWait), true)))
  })
)

describe("a server", () => {
  test(
    "without fsync is refused when the store is opened and at every write",
    Effect.gen(function* () {
      expect(yield* reasonOf(opening())).toMatch(/^StoreUnavailable: .*fsync is off: what was acknowledged would be lost/)
      expect(yield* reasonOf(Effect.scoped(PostgresStateStore.make({ url: server.url })))).toMatch(/^StateUnavailable: .*fsync is off/)
      yield* set("fsync", "on")
      const options = { url: server.url, schema: freshSchema() }
      const [store, state] = [yield* PostgresEventStore.make(options), yield* PostgresStateStore.make(options)]
      yield* store.append("a-1", "noStream", [event()])
      yield* set("fsync", "off")
      // Also on connections that were open before
      yield* Effect.sleep(50)
      expect(yield* reasonOf(store.append("a-1", 0, [event()]))).toMatch(/^StoreUnavailable: .*fsync is off/)
      expect(yield* reasonOf(state.write([{ _tag: "remove", space: "s", key: "k" }]))).toMatch(/^StateUnavailable: .*fsync is off/)
      yield* set("fsync", "on")
      yield* Effect.sleep(50)
      expect((yield* store.append("a-1", 0, [event()])).revision).toBe(1)
    })
  )

  test(
    "that may lose or tear acknowledged writes causes a warning",
    Effect.gen(function* () {
      expect(yield* warnings("")).toEqual([])
      expect(yield* warnings("?options=-c%20synchronous_commit%3Doff")).toEqual([expect.stringMatching(/^Warn.*synchronous_commit is off/)])
      // Without a standby, `local` loses nothing
      expect(yield* warnings("?options=-c%20synchronous_commit%3Dlocal")).toEqual([])
      yield* set("full_page_writes", "off")
      expect(yield* warnings("")).toEqual([expect.stringMatching(/^Warn.*full_page_writes is off/)])
      yield* set("full_page_writes", "on")
      yield* set("synchronous_standby_names", "other")
      expect(yield* warnings("?options=-c%20synchronous_commit%3Dlocal")).toEqual([
        expect.stringMatching(/^Warn.*synchronous_commit is local: .* on no standby/)
      ])
      yield* Effect.scoped(
        Effect.gen(function* () {
          const db = yield* client(`${server.url}?options=-c%20synchronous_commit%3Doff`)
          yield* run(db, "ALTER SYSTEM RESET synchronous_standby_names")
          yield* run(db, "SELECT pg_reload_conf()")
        })
      )
    })
  )

  test(
    "that waits for a standby during a commit shows no event after it, and none out of order afterwards",
    Effect.gen(function* () {
      const options = { url: server.url, schema: freshSchema() }
      const [store, other] = [yield* PostgresEventStore.make(options), yield* PostgresEventStore.make(options)]
      const [first, second, third] = [event(), event(), event()]
      yield* store.append("a-1", "noStream", [first])
      const db = yield* client(server.url)
      const waits = (kind: string) =>
        until(
          `one waits for ${kind}`,
          Effect.map(run(db, `SELECT FROM pg_stat_activity WHERE ${appending(kind)}`), ({ rows }) => rows.length === 1)
        )
      yield* demandStandby
      // On disk by now, but not yet visible as committed
      const committing = yield* Effect.forkScoped(store.append("a-1", 0, [second]))
      yield* waits("SyncRep")
      const waiting = yield* Effect.forkScoped(other.append("a-2", "noStream", [third]))
      yield* waits("advisory")
      for (const one of [store, other]) {
        expect(idsOf(yield* readAll(one, EventStore.start))).toEqual(idsOf([first]))
        expect(yield* one.lastRevision("a-1")).toBe(0)
      }
      yield* run(db, "ALTER SYSTEM RESET synchronous_standby_names")
      yield* run(db, "SELECT pg_reload_conf()")
      yield* Fiber.join(committing)
      yield* Fiber.join(waiting)
      expect(idsOf(yield* readAll(store, EventStore.start))).toEqual(idsOf([first, second, third]))
    })
  )

  test(
    "that shows an event which is on no standby does not acknowledge the repeated append until the event is on one",
    Effect.gen(function* () {
      const options = { url: server.url, schema: freshSchema() }
      const store = yield* PostgresEventStore.make(options)
      const db = yield* client(server.url)
      const one = event()
      yield* demandStandby
      const given = yield* Effect.forkScoped(reasonOf(store.append("a-1", "noStream", [one])))
      const waits = until(
        "it waits for the standby",
        Effect.map(run(db, `SELECT FROM pg_stat_activity WHERE ${appending("SyncRep")}`), ({ rows }) => rows.length === 1)
      )
      yield* waits
      // The server ends the wait and makes the event visible
      yield* run(db, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${appending("SyncRep")}`)
      expect(yield* Fiber.join(given)).toMatch(/^AppendInDoubt: /)
      expect(yield* store.lastRevision("a-1")).toBe(0)
      const again = yield* Effect.forkScoped(store.append("a-1", "noStream", [one]))
      yield* waits
      yield* run(db, "ALTER SYSTEM RESET synchronous_standby_names")
      yield* run(db, "SELECT pg_reload_conf()")
      expect(yield* Fiber.join(again)).toEqual({ revision: 0, position: "0000000000000001" })
    })
  )

  test(
    "with another isolation level, read-only transactions or another encoding is refused",
    Effect.gen(function* () {
      const db = yield* client(server.url)
      for (const level of ["serializable", "repeatable read"])
        expect(yield* reasonOf(opening(`?options=-c%20default_transaction_isolation%3D${level.replace(" ", "%5C%20")}`))).toMatch(
          new RegExp(`default_transaction_isolation is ${level}: ALTER ROLE`)
        )
      expect(yield* reasonOf(opening("?options=-c%20default_transaction_read_only%3Don"))).toMatch(/is read-only/)
      yield* run(db, "CREATE DATABASE bytes ENCODING 'SQL_ASCII' TEMPLATE template0")
      const other = server.url.replace(/postgres$/, "bytes")
      expect(yield* reasonOf(Effect.scoped(PostgresEventStore.make({ url: other })))).toMatch(
        /the database is encoded in SQL_ASCII: it has to be UTF8/
      )
    })
  )

  test(
    "that is a standby is refused except for reading only; one that becomes a standby refuses appends and last revisions",
    Effect.gen(function* () {
      const options = { url: server.url, schema: freshSchema() }
      const store = yield* PostgresEventStore.make(options)
      const one = event()
      yield* store.append("a-1", "noStream", [one])
      yield* Effect.promise(server.stop)
      yield* Effect.promise(server.startAsStandby)
      expect(yield* reasonOf(store.append("a-1", 0, [event()]))).toMatch(/^StoreUnavailable: .*(read-only|standby)/)
      expect(yield* reasonOf(store.lastRevision("a-1"))).toMatch(/^StoreUnavailable: .* is a standby: it may be behind/)
      expect(yield* reasonOf(store.saveSnapshot("a-1", { revision: 0, data: "{}" }))).toMatch(/read-only/)
      expect(yield* reasonOf(Effect.scoped(PostgresEventStore.make(options)))).toMatch(/is a read-only standby: name the primary/)
      const reader = yield* PostgresEventStore.make({ ...options, readOnly: true })
      expect(idsOf(yield* readAll(reader, EventStore.start))).toEqual([one.id])
      expect(yield* reader.lastRevision("a-1")).toBe(0)
    })
  )
})
