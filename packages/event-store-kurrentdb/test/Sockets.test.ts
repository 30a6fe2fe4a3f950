/** Nodes that never answer or stop answering: the number of open sockets is bounded, and closing the store closes all of them. */
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { once } from "node:events"
import { connect, createServer, Socket } from "node:net"
import { ChannelCredentials } from "@grpc/grpc-js"
import { EventStore } from "@millrace/event-sourcing"
import { Effect, type Scope, Stream } from "effect"
import { describe, expect, it } from "vitest"
import * as FaultProxy from "../../testing/src/FaultProxy.ts"
import { Sockets } from "../src/eventstoredb/Sockets.ts"
import { failsafe, freshEvents, freshStream, ids, openOn, patiently, readIds, settle } from "./Store.ts"
import { KurrentDbStandIn } from "./standin/index.ts"

const test = (title: string, body: Effect.Effect<unknown, unknown, Scope.Scope>) =>
  it(title, () => Effect.runPromise(Effect.asVoid(Effect.scoped(body))))

const DEADLINE = 250

interface Counted {
  readonly open: () => number
  readonly made: () => number
}

/** Counts the sockets that this process opens to a port from now on. */
const socketsTo = (port: number): Effect.Effect<Counted, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const open = new Set<Socket>()
        let made = 0
        const hear = (message: unknown) => {
          if (typeof message !== "object" || message === null || !("socket" in message) || !(message.socket instanceof Socket)) return
          const { socket } = message
          socket.once("connect", () => {
            if (socket.remotePort !== port || socket.destroyed) return
            made++
            open.add(socket)
            socket.once("close", () => open.delete(socket))
          })
        }
        subscribe("net.client.socket", hear)
        return { hear, open: () => open.size, made: () => made }
      }),
      ({ hear }) => Effect.sync(() => unsubscribe("net.client.socket", hear))
    ),
    ({ open, made }) => ({ open, made })
  )

/** A server that accepts connections and never answers. */
const silent = Effect.gen(function* () {
  const accepted = new Set<Socket>()
  const server = createServer((socket) => {
    accepted.add(socket.resume())
    socket.on("close", () => accepted.delete(socket)).on("error", () => {})
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => once(server.listen(0, "127.0.0.1"), "listening")),
    () =>
      Effect.sync(() => {
        for (const socket of accepted) socket.destroy()
        server.close()
      })
  )
  const address = server.address()
  return { port: typeof address === "object" && address !== null ? address.port : 0, accepted: () => accepted.size }
})

const reaches = (is: () => boolean) => failsafe(Effect.repeat(Effect.andThen(Effect.sleep(5), Effect.sync(is)), { until: (now) => now }))

const becomes = (count: () => number, wanted: number) => reaches(() => count() === wanted)

/** Repeats each kind of call to a node that does not answer. Returns how each call failed, and how many clients were made. */
const askInVain = (connection: string, rounds: number) =>
  Effect.gen(function* () {
    const { db, store } = yield* openOn(connection, { deadline: DEADLINE })
    const stream = freshStream()
    const told: Array<string> = []
    for (let round = 0; round < rounds; round++) {
      const asked = [
        store.append(stream, "noStream", freshEvents(1)),
        store.lastRevision(stream),
        Stream.runDrain(store.readAll(EventStore.start)),
        Stream.runDrain(store.subscribe(EventStore.start))
      ]
      for (const { _tag } of yield* failsafe(Effect.all(asked.map(Effect.flip), { concurrency: "unbounded" }))) told.push(_tag)
    }
    return { told, clients: (yield* db.status).renewals + 1 }
  })

describe("a node that accepts connections and never answers", () => {
  for (const [what, options] of [
    ["without TLS", "?tls=false"],
    ["with TLS", "?tlsVerifyCert=false"]
  ] as const)
    test(
      `${what}: each client opens at most one socket, and closing the store closes all of them`,
      Effect.gen(function* () {
        const node = yield* silent
        const sockets = yield* socketsTo(node.port)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const { clients, told } = yield* askInVain(`kurrentdb://localhost:${node.port}${options}`, 5)
            expect(new Set(told)).toEqual(new Set(["AppendInDoubt", "StoreUnavailable"]))
            expect(clients).toBeGreaterThan(1)
            expect(sockets.made()).toBeGreaterThan(0)
            expect(sockets.made()).toBeLessThanOrEqual(clients)
            // An older client is closed as soon as its calls have ended
            yield* reaches(() => sockets.open() <= 1)
          })
        )
        yield* becomes(sockets.open, 0)
        yield* becomes(node.accepted, 0)
      })
    )

  test(
    "as one of several seeds: another seed names the leader without delay, and the silent connection is closed",
    Effect.gen(function* () {
      const node = yield* silent
      const leader = yield* KurrentDbStandIn.serve()
      const sockets = yield* socketsTo(node.port)
      const connection = `kurrentdb://127.0.0.1:${node.port},127.0.0.1:${leader.port}?tls=false&gossipTimeout=60`
      const { store } = yield* openOn(connection, { deadline: 2_000 })
      expect((yield* store.append(freshStream(), "noStream", freshEvents(1))).revision).toBe(0)
      // Zero if the leader answers before this connection is made
      expect(sockets.made()).toBeLessThanOrEqual(1)
      yield* becomes(node.accepted, 0)
      yield* becomes(sockets.open, 0)
    })
  )

  test(
    "as every seed: no seed is asked after the store was closed",
    Effect.gen(function* () {
      const nodes = [yield* silent, yield* silent] as const
      const sockets = [yield* socketsTo(nodes[0].port), yield* socketsTo(nodes[1].port)]
      const connection = `kurrentdb://127.0.0.1:${nodes[0].port},127.0.0.1:${nodes[1].port}?tls=false&gossipTimeout=1&discoveryInterval=10`
      yield* Effect.scoped(askInVain(connection, 5))
      // Longer than the pause between two attempts
      yield* Effect.sleep(100)
      for (const { made, open } of sockets) {
        expect(made()).toBeGreaterThan(0)
        yield* becomes(open, 0)
      }
      for (const { accepted } of nodes) yield* becomes(accepted, 0)
    })
  )
})

test(
  "a socket that connects after its client was closed is destroyed at once",
  Effect.gen(function* () {
    const node = yield* silent
    const sockets = new Sockets(ChannelCredentials.createInsecure())
    const connector = sockets._createSecureConnector({ path: `127.0.0.1:${node.port}` }, {})
    sockets.close()
    const late = connect(node.port, "127.0.0.1")
    yield* Effect.promise(() => once(late, "connect"))
    yield* Effect.promise(() => connector.connect(late))
    expect(late.destroyed).toBe(true)
    yield* becomes(node.accepted, 0)
  })
)

describe("an established connection that falls silent", () => {
  for (const [what, faults] of [
    ["in both directions", { up: { _tag: "blackHole" }, down: { _tag: "blackHole" } }],
    ["towards the node", { up: { _tag: "blackHole" } }],
    ["from the node", { down: { _tag: "blackHole" } }],
    ["half open", { up: { _tag: "halfOpen" } }]
  ] as const)
    test(
      `${what}: is replaced by a fresh one; no event is lost or doubled, and no socket stays open`,
      Effect.gen(function* () {
        const node = yield* KurrentDbStandIn.serve()
        const proxy = yield* FaultProxy.make(node.port)
        const sockets = yield* socketsTo(proxy.port)
        const stream = freshStream()
        const [first, second, third] = [freshEvents(1), freshEvents(2), freshEvents(1)]
        const written = yield* Effect.scoped(
          Effect.gen(function* () {
            const { store } = yield* openOn(`kurrentdb://127.0.0.1:${proxy.port}?tls=false`, { deadline: DEADLINE })
            let hasFollowed = false
            const follow = Stream.runForEach(store.subscribe(EventStore.start), ({ events }) =>
              Effect.sync(() => {
                hasFollowed ||= ids(events).includes(first[0].id)
              })
            )
            yield* Effect.forkScoped(patiently(follow))
            yield* failsafe(settle(store, stream, "noStream", first))
            yield* reaches(() => hasFollowed)
            proxy.set(faults)
            expect((yield* failsafe(Effect.flip(store.append(stream, 0, second))))._tag).toBe("AppendInDoubt")
            proxy.set()
            expect((yield* failsafe(settle(store, stream, 0, second))).revision).toBe(2)
            expect((yield* failsafe(settle(store, stream, 2, third))).revision).toBe(3)
            expect(yield* failsafe(patiently(readIds(store, stream)))).toEqual(ids([...first, ...second, ...third]))
            return ids([...first, ...second, ...third])
          })
        )
        expect(node.log.visible(stream).map(({ id }) => id)).toEqual(written)
        expect(sockets.made()).toBeGreaterThan(1)
        yield* becomes(sockets.open, 0)
      })
    )
})

test(
  "closing ends soon although a node never answers, and appends after it are refused",
  Effect.gen(function* () {
    const node = yield* silent
    const sockets = yield* socketsTo(node.port)
    const late = yield* failsafe(
      Effect.scoped(
        Effect.gen(function* () {
          const { store } = yield* openOn(`kurrentdb://127.0.0.1:${node.port}?tls=false`, { deadline: 1_000 })
          yield* Effect.forkDetach(Effect.exit(store.append(freshStream(), "noStream", freshEvents(1))), { startImmediately: true })
          // Made rather than open, because on a busy machine the append may have ended by then
          yield* reaches(() => sockets.made() > 0)
          return store.append(freshStream(), "noStream", freshEvents(1))
        })
      )
    )
    yield* becomes(sockets.open, 0)
    expect((yield* Effect.flip(late))._tag).toBe("StoreUnavailable")
    expect(sockets.made()).toBe(1)
    yield* becomes(node.accepted, 0)
  })
)
