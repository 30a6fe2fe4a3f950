/** Connections: the limit of 100 open calls, other clients of the process, leaders and followers, credentials, and closing. */
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { EventStoreDBClient, jsonEvent } from "@eventstore/db-client"
import { EventStore } from "@millrace/event-sourcing"
import { Effect, Fiber, Schema, type Scope, Stream } from "effect"
import { describe, expect, it } from "vitest"
import * as FaultProxy from "../../testing/src/FaultProxy.ts"
import { filterOf } from "../src/Selecting.ts"
import { address } from "./Node.ts"
import { fact, failsafe, followed, freshEvents, freshStream, IMPATIENT, ids, isOfFacts, openOn, readIds, sentTo } from "./Store.ts"
import { KurrentDbStandIn } from "./standin/index.ts"

const Report = Schema.fromJsonString(
  Schema.Struct({
    written: Schema.Array(Schema.String),
    log: Schema.Array(Schema.String),
    seen: Schema.Array(Schema.String),
    rejected: Schema.Int,
    ofOurs: Schema.Array(Schema.String)
  })
)

const test = (title: string, body: Effect.Effect<unknown, unknown, Scope.Scope>) =>
  it(title, () => Effect.runPromise(Effect.asVoid(Effect.scoped(body))))

describe("the limit of 100 open calls on a connection", () => {
  fact("is never reached by 500 concurrent appends and reads, which wait in a queue", ({ node, store }) =>
    Effect.gen(function* () {
      const streams = Array.from({ length: 500 }, freshStream)
      const append = (stream: (typeof streams)[number]) => store.append(stream, "noStream", freshEvents(1))
      const appended = yield* failsafe(Effect.forEach(streams, append, { concurrency: "unbounded" }))
      expect(appended.every(({ revision }) => revision === 0)).toBe(true)
      const read = yield* failsafe(Effect.forEach(streams, (stream) => readIds(store, stream), { concurrency: "unbounded" }))
      expect(read.every(({ length }) => length === 1)).toBe(true)
      expect(node.connections()).toBe(1)
      expect(node.open("Read")).toBe(0)
    })
  )

  fact("is not reached by 110 followers, which share one subscription", ({ node, store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      const all = [freshEvents(1), freshEvents(3), freshEvents(2)] as const
      yield* store.append(stream, "noStream", all[0])
      const fibers = yield* Effect.replicateEffect(Effect.forkScoped(followed(store, EventStore.start, 6)), 110)
      yield* store.append(stream, 0, all[1])
      yield* store.append(stream, 3, all[2])
      for (const fiber of fibers) expect(yield* failsafe(Fiber.join(fiber))).toEqual(ids(all.flat()))
      expect(node.open("Subscribe")).toBe(1)
      expect(node.open("Read")).toBe(0)
    })
  )

  fact("is not reached by 120 reads that are left early", ({ node, store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      yield* store.append(stream, "noStream", freshEvents(600))
      for (let i = 0; i < 120; i++) yield* Stream.runDrain(Stream.take(store.readStream(stream), 1))
      expect(node.open("Read")).toBe(0)
      expect((yield* store.append(stream, 599, freshEvents(1))).revision).toBe(600)
    })
  )

  fact("does not block the store when the host's own client has reached it", ({ node, store }) =>
    Effect.gen(function* () {
      const stream = freshStream()
      yield* store.append(stream, "noStream", freshEvents(600))
      const client = EventStoreDBClient.connectionString(node.url)
      const leaked = Array.from({ length: 100 }, () => client.subscribeToAll())
      yield* Effect.promise(() => Promise.all(leaked.map((one) => new Promise((resolve) => one.once("confirmation", resolve)))))
      expect(node.open("Subscribe")).toBe(100)
      // The 101st call on that connection hangs
      const appended = client.appendToStream(freshStream(), jsonEvent({ type: "t", data: {} })).catch((error: unknown) => error)
      const outcome = yield* Effect.promise(() => Promise.race([appended, new Promise((resolve) => setTimeout(resolve, 300, "silence"))]))
      expect(outcome).toBe("silence")
      expect((yield* failsafe(store.append(stream, 599, freshEvents(1)))).revision).toBe(600)
      // A store that is opened later does not share that connection either
      const { store: later } = yield* openOn(node.url)
      expect((yield* failsafe(later.append(stream, 600, freshEvents(1)))).revision).toBe(601)
      yield* Effect.promise(() => client.dispose())
    })
  )

  fact("leaves room for the subscription while 64 appends are unanswered", ({ db, node, store }) =>
    Effect.gen(function* () {
      let arrived = 0
      node.faults.append = (call) => {
        if (!isOfFacts(call)) return undefined
        arrived++
        return "late"
      }
      const streams = Array.from({ length: 100 }, freshStream)
      const append = (stream: (typeof streams)[number]) => store.append(stream, "noStream", freshEvents(1))
      const appending = yield* Effect.forkScoped(Effect.forEach(streams, append, { concurrency: "unbounded" }))
      yield* failsafe(Effect.repeat(Effect.sleep(5), { until: () => Effect.sync(() => arrived >= 64) }))
      let confirmed = 0
      const following = db.clients.hold((driver) =>
        driver.follow(undefined, filterOf(undefined), ({ _tag }) => {
          if (_tag === "confirmed") confirmed++
        })
      )
      yield* Effect.forkScoped(following)
      yield* failsafe(Effect.repeat(Effect.sleep(5), { until: () => Effect.sync(() => confirmed === 1) }))
      expect(arrived).toBe(64)
      node.faults.calm()
      node.faults.release()
      expect((yield* failsafe(Fiber.join(appending))).every(({ revision }) => revision === 0)).toBe(true)
    })
  )
})

fact(
  "a call that never ends fails at the store's deadline, even if its caller is uninterruptible",
  ({ db }) =>
    Effect.gen(function* () {
      const fault = yield* failsafe(Effect.uninterruptible(Effect.flip(db.clients.call(() => Effect.never))))
      expect(fault.kind).toBe("noAnswer")
      const calls = Array.from({ length: 100 }, () => Effect.flip(db.clients.call(() => Effect.never)))
      const faults = yield* failsafe(Effect.all(calls, { concurrency: "unbounded" }))
      for (const { kind } of faults) expect(["noAnswer", "unreachable"]).toContain(kind)
    }),
  IMPATIENT
)

describe("a client of the host that is disposed under load", () => {
  it("breaks another client of the host, but no append, read or follower of the store", () =>
    Effect.gen(function* () {
      const child = fileURLToPath(new URL("HostClient.ts", import.meta.url))
      const connection = yield* address
      const { stdout } = yield* failsafe(
        Effect.promise(() => promisify(execFile)(process.execPath, ["--conditions=@millrace/source", child, connection]))
      )
      const report = Schema.decodeUnknownSync(Report)(stdout)
      expect(report.ofOurs).toEqual([])
      expect(report.written.length).toBeGreaterThan(100)
      expect(report.log.toSorted()).toEqual(report.written.toSorted())
      expect(report.seen).toEqual(report.log)
      // Shows that the third client did break
      expect(report.rejected).toBeGreaterThan(0)
    }).pipe(Effect.scoped, Effect.runPromise))
})

describe("a server that fails to list its features", () => {
  fact("still gets appends, because the store does not ask for the list", ({ node, store }) =>
    Effect.gen(function* () {
      node.faults.features = () => ({ code: 2, details: "boom" })
      const stream = freshStream()
      expect((yield* store.append(stream, "noStream", freshEvents(1))).revision).toBe(0)
      expect((yield* store.append(stream, 0, freshEvents(1))).revision).toBe(1)
      expect(node.calls("GetSupportedMethods")).toBe(0)
    })
  )
})

describe("a cluster", () => {
  test(
    "is reached through any seed or follower, which names the leader",
    Effect.gen(function* () {
      const leader = yield* KurrentDbStandIn.serve()
      const followers = [yield* KurrentDbStandIn.serve({ leader }), yield* KurrentDbStandIn.serve({ leader })]
      const sent = sentTo(leader)
      const seeds = [...followers, leader].map(({ host, port }) => `${host}:${port}`).join(",")
      for (const connection of [
        `kurrentdb://${seeds}?tls=false`,
        `esdb+discover://127.0.0.1:${followers[0]?.port}?tls=false`,
        `kurrentdb://127.0.0.1:${followers[1]?.port}?tls=false`
      ]) {
        const { store } = yield* openOn(connection)
        const stream = freshStream()
        expect((yield* failsafe(store.append(stream, "noStream", freshEvents(2)))).revision).toBe(1)
        expect(yield* store.lastRevision(stream)).toBe(1)
      }
      expect(sent).toHaveLength(3)
    })
  )

  test(
    "is reached while one of its seeds is down",
    Effect.gen(function* () {
      const leader = yield* KurrentDbStandIn.serve()
      const gone = yield* KurrentDbStandIn.serve({ leader })
      yield* gone.kill
      const { store } = yield* openOn(`kurrentdb://127.0.0.1:${gone.port},127.0.0.1:${leader.port}?tls=false`)
      expect((yield* failsafe(store.append(freshStream(), "noStream", freshEvents(1)))).revision).toBe(0)
    })
  )
})

describe("a search for the leader without limits", () => {
  test(
    "finds it at the first attempt",
    Effect.gen(function* () {
      const leader = yield* KurrentDbStandIn.serve()
      const follower = yield* KurrentDbStandIn.serve({ leader })
      const seeds = `127.0.0.1:${follower.port},127.0.0.1:${leader.port}`
      for (const option of ["maxDiscoverAttempts", "gossipTimeout", "discoveryInterval"]) {
        const { store } = yield* openOn(`kurrentdb://${seeds}?tls=false&${option}=-1`)
        expect((yield* failsafe(store.append(freshStream(), "noStream", freshEvents(1)))).revision).toBe(0)
      }
    })
  )

  test(
    "goes on until there is one",
    Effect.gen(function* () {
      const gone = yield* KurrentDbStandIn.serve()
      yield* gone.kill
      const { store } = yield* openOn(`kurrentdb://127.0.0.1:${gone.port},127.0.0.1:1?tls=false&maxDiscoverAttempts=-1&discoveryInterval=1`)
      const append = yield* Effect.forkChild(store.append(freshStream(), "noStream", freshEvents(1)))
      // Longer than the ten attempts of the default take
      yield* Effect.sleep(250)
      yield* KurrentDbStandIn.serve({ port: gone.port })
      expect((yield* failsafe(Fiber.join(append))).revision).toBe(0)
    })
  )
})

describe("a client", () => {
  const file = (name: string) => fileURLToPath(new URL(`tls/${name}.pem`, import.meta.url))
  const pem = (name: string) => readFileSync(file(name), "utf8")
  const tls = { certificate: pem("node"), key: pem("node-key") }
  const trusting = `tlsCaFile=${encodeURIComponent(file("authority"))}`

  test(
    "is authenticated by user and password over TLS",
    Effect.gen(function* () {
      const node = yield* KurrentDbStandIn.serve({ tls, users: { "m ill": "p@ss:w0rd" } })
      const { store } = yield* openOn(`kurrentdb://m%20ill:p%40ss%3Aw0rd@localhost:${node.port}?${trusting}`)
      expect((yield* failsafe(store.append(freshStream(), "noStream", freshEvents(1)))).revision).toBe(0)
      const stranger = yield* openOn(`kurrentdb://m%20ill:wrong@localhost:${node.port}?${trusting}`)
      const refused = yield* failsafe(Effect.flip(stranger.store.append(freshStream(), "noStream", freshEvents(1))))
      expect(refused._tag).toBe("StoreUnavailable")
    })
  )

  test(
    "is authenticated by a certificate",
    Effect.gen(function* () {
      const node = yield* KurrentDbStandIn.serve({ tls: { ...tls, clients: pem("authority") } })
      const certificate = `userCertFile=${encodeURIComponent(file("user"))}&userKeyFile=${encodeURIComponent(file("user-key"))}`
      const { store } = yield* openOn(`esdb://localhost:${node.port}?${trusting}&${certificate}`)
      expect((yield* failsafe(store.append(freshStream(), "noStream", freshEvents(1)))).revision).toBe(0)
      const stranger = yield* openOn(`esdb://localhost:${node.port}?${trusting}`)
      const refused = yield* failsafe(Effect.exit(stranger.store.append(freshStream(), "noStream", freshEvents(1))))
      expect(refused._tag).toBe("Failure")
    })
  )

  test(
    "refuses a node with an untrusted certificate, unless tlsVerifyCert is false",
    Effect.gen(function* () {
      const node = yield* KurrentDbStandIn.serve({ tls })
      const wary = yield* openOn(`kurrentdb://localhost:${node.port}`)
      expect((yield* failsafe(Effect.flip(wary.store.append(freshStream(), "noStream", freshEvents(1)))))._tag).toBe("StoreUnavailable")
      const careless = yield* openOn(`kurrentdb://localhost:${node.port}?tlsVerifyCert=false`)
      expect((yield* failsafe(careless.store.append(freshStream(), "noStream", freshEvents(1)))).revision).toBe(0)
    })
  )
})

describe("pings of a connection", () => {
  for (const [what, options] of [
    ["are off when their interval is -1", "keepAliveInterval=-1&keepAliveTimeout=20"],
    ["may be answered at any time when their timeout is -1", "keepAliveInterval=20&keepAliveTimeout=-1"]
  ] as const)
    test(
      what,
      Effect.gen(function* () {
        const node = yield* KurrentDbStandIn.serve()
        const proxy = yield* FaultProxy.make(node.port)
        const { db, store } = yield* openOn(`kurrentdb://127.0.0.1:${proxy.port}?tls=false&${options}`)
        // The answer comes long after a ping would have been given up
        proxy.set({ down: { _tag: "delay", millis: 200 } })
        expect((yield* store.append(freshStream(), "noStream", freshEvents(1))).revision).toBe(0)
        expect((yield* db.status).renewals).toBe(0)
      })
    )
})

describe("closing the store", () => {
  test(
    "waits until the appends under way are answered",
    Effect.gen(function* () {
      const node = yield* KurrentDbStandIn.serve()
      const stream = freshStream()
      const batch = freshEvents(1)
      let arrived = 0
      node.faults.append = (call) => {
        if (!isOfFacts(call)) return undefined
        arrived++
        return "late"
      }
      const appending = yield* Effect.scoped(
        Effect.gen(function* () {
          const { store } = yield* openOn(node.url)
          const fiber = yield* Effect.forkDetach(store.append(stream, "noStream", batch), { startImmediately: true })
          yield* failsafe(Effect.repeat(Effect.sleep(5), { until: () => Effect.sync(() => arrived === 1) }))
          yield* Effect.forkDetach(
            Effect.delay(
              Effect.sync(() => node.faults.release()),
              100
            )
          )
          return fiber
        })
      )
      expect((yield* failsafe(Fiber.join(appending))).revision).toBe(0)
      const gone = Effect.repeat(
        Effect.delay(
          Effect.sync(() => node.connections()),
          5
        ),
        { until: (open) => open === 0 }
      )
      yield* failsafe(gone)
    })
  )
})
