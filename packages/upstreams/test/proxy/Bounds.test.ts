/** The bounds of a session under load: its bytes, at one node and over several, and its expiry where a tunnel stalls or is being opened. */

import type { Socket } from "node:net"
import type { Writable } from "node:stream"
import { setImmediate } from "node:timers/promises"
import { ProxyNodes, ProxySession, ProxySessions, Vault } from "@millrace/core"
import { Effect, Fiber, Layer, Metric } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import * as Node from "./Node.ts"
import { testing } from "./Testing.ts"

/** The most that one read of a socket carries. */
const READ = 64 * 1024

/** Sends for ever. */
const pour = (socket: Writable): void => {
  const chunk = Buffer.alloc(READ)
  const more = () => {
    while (!socket.destroyed && socket.write(chunk));
  }
  socket.on("drain", more)
  more()
}

const source = Effect.suspend(() => Node.tcpServer(pour))
const sink = Effect.suspend(() => Node.tcpServer((socket) => void socket.resume()))
const silent = Effect.suspend(() => Node.tcpServer((socket) => void socket.pause()))

const carried = (sessionId: string) =>
  Effect.map(
    ProxySessions.use(({ find }) => find(sessionId)),
    (found) => (found === undefined ? 0 : ProxySession.bytesOf(found.session))
  )

/** Reads what comes, and forgets it, until the tunnel is closed. */
const drained = (socket: Socket): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (socket.closed) resume(Effect.void)
    else socket.resume().once("close", () => resume(Effect.void))
  })

/** Moves the clock on, which nodes wait for that count at the same moment. */
const ticking = Effect.forever(
  Effect.andThen(
    TestClock.adjust("1 millis"),
    Effect.promise(() => setImmediate())
  )
)

const poured = (socket: Socket): Effect.Effect<void> => {
  pour(socket)
  return drained(socket)
}

describe("the bytes of a session", () => {
  // The clock stands still: nothing but the bytes themselves can end the session
  test.each([
    { kib: 1, way: "down" },
    { kib: 100, way: "up" },
    { kib: 3_000, way: "down" },
    { kib: 3_000, way: "up" }
  ] as const)("are exceeded at one node by what one read carries: $kib KiB $way", ({ kib, way }) => {
    const byteLimit = kib * 1024
    return Effect.gen(function* () {
      const { port } = yield* way === "down" ? source : sink
      yield* Effect.gen(function* () {
        const session = yield* Node.open()
        const [http, socks] = [yield* Node.portOf("http"), yield* Node.portOf("socks5")]
        // The bytes can be used up before the second one is opened
        const tunnels = [
          yield* Node.byConnect(http, session, `127.0.0.1:${port}`),
          yield* Node.bySocks(socks, session, "127.0.0.1", port)
        ].filter((tunnel) => typeof tunnel === "object")
        yield* Effect.forEach(tunnels, way === "down" ? drained : poured, { concurrency: 2 })
        yield* TestClock.adjust("6 seconds")
        const bytes = yield* carried(session.id)
        expect(bytes).toBeGreaterThanOrEqual(byteLimit)
        expect(bytes - byteLimit).toBeLessThanOrEqual(2 * READ)
      }).pipe(Node.at({ allowed: [port] }, { byteLimit }), Effect.provide(TestClock.layer()))
    }).pipe(Effect.scoped, Effect.runPromise)
  })

  testing(
    "of a plain request are bounded like those of a tunnel",
    Effect.gen(function* () {
      const { port } = yield* Node.webServer((_, response) => pour(response))
      const byteLimit = 1024 * 1024
      yield* Effect.gen(function* () {
        const session = yield* Node.open()
        yield* Node.get(yield* Node.portOf("http"), session, `http://127.0.0.1:${port}/`)
        yield* TestClock.adjust("6 seconds")
        const bytes = yield* carried(session.id)
        expect(bytes).toBeGreaterThanOrEqual(byteLimit)
        expect(bytes - byteLimit).toBeLessThanOrEqual(2 * READ)
      }).pipe(Node.at({ allowed: [port] }, { byteLimit }), Effect.provide(TestClock.layer()))
    })
  )

  testing(
    "are shared by nodes after each portion, so that three exceed the bound by a part of it and not by twice",
    Effect.gen(function* () {
      const { port } = yield* source
      const byteLimit = 64 * 1024 * 1024
      const given = { allowed: [port] }
      yield* Effect.gen(function* () {
        const host = Layer.mergeAll(ProxySessions.layer({ byteLimit }), ProxyNodes.layer).pipe(Layer.provide(Vault.Vault.layer))
        const session = yield* Node.open()
        const tunnels = [Node.opened(yield* Node.byConnect(yield* Node.portOf("http"), session, `127.0.0.1:${port}`))]
        for (let i = 0; i < 2; i++) {
          const other = yield* Layer.build(Layer.fresh(Node.serve(given)).pipe(Layer.provide(Layer.fresh(host))))
          const at = yield* Effect.provideContext(Node.portOf("http"), other)
          tunnels.push(Node.opened(yield* Node.byConnect(at, session, `127.0.0.1:${port}`)))
        }
        yield* Effect.raceFirst(Effect.forEach(tunnels, drained, { concurrency: 3 }), ticking)
        yield* TestClock.adjust("6 seconds")
        const bytes = yield* carried(session.id)
        expect(bytes).toBeGreaterThanOrEqual(byteLimit)
        // Each node: a portion, which is a 64th, that it counts, one meanwhile, and one until it looks again at what it heard of others
        expect(bytes - byteLimit).toBeLessThanOrEqual(3 * ((3 * byteLimit) / 64 + 2 * READ))
      }).pipe(Node.at(given, { byteLimit }), Effect.provide(TestClock.layer()))
    })
  )
})

describe("a session that expires", () => {
  testing(
    "closes a tunnel that stalls, in either direction, and one that still delivers",
    Effect.gen(function* () {
      const [{ port: fast }, { port: slow }] = [yield* source, yield* silent]
      const done = yield* Node.tcpServer((socket) => void socket.end(Buffer.alloc(8 * 1024 * 1024)))
      yield* Effect.gen(function* () {
        const session = yield* Node.open()
        const http = yield* Node.portOf("http")
        const tunnel = (port: number) => Effect.map(Node.byConnect(http, session, `127.0.0.1:${port}`), Node.opened)
        const [unread, unsent, delivering] = [yield* tunnel(fast), yield* tunnel(slow), yield* tunnel(done.port)]
        for (const socket of [unread, delivering]) socket.pause()
        pour(unsent)
        yield* TestClock.adjust("61 seconds")
        yield* Effect.forEach([unread, unsent, delivering], drained, { concurrency: 3 })
      }).pipe(Node.at({ allowed: [fast, slow, done.port] }, { lifetime: "1 minute" }), Effect.provide(TestClock.layer()))
    })
  )

  testing(
    "closes a client whose connection is being opened, which then leads nowhere",
    Effect.gen(function* () {
      const { port, sockets } = yield* source
      const resolving = Promise.withResolvers<void>()
      yield* Effect.gen(function* () {
        const session = yield* Node.open()
        const opening = yield* Effect.forkChild(Node.byConnect(yield* Node.portOf("http"), session, `slow.test:${port}`))
        yield* Effect.promise(() => resolving.promise)
        yield* TestClock.adjust("61 seconds")
        expect(yield* Fiber.join(opening)).toBe(0)
        expect(sockets).toEqual([])
      }).pipe(
        Node.at({ allowed: [port], resolving: () => resolving.resolve() }, { lifetime: "1 minute" }),
        Effect.provide(TestClock.layer())
      )
    })
  )
})

testing(
  "the metrics of a node have the bytes and connections of its sessions, also of those that have ended",
  Effect.gen(function* () {
    const { port } = yield* Node.tcpServer((socket) => void socket.pipe(socket))
    yield* Effect.gen(function* () {
      const session = yield* Node.open()
      const tunnel = Node.opened(yield* Node.byConnect(yield* Node.portOf("http"), session, `127.0.0.1:${port}`))
      tunnel.write("hello")
      expect(yield* Node.next(tunnel)).toBe("hello")
      const shown = Effect.map(Metric.snapshot, (metrics) =>
        metrics
          .filter(({ id }) => id.startsWith("millrace.proxy."))
          .map(({ attributes, id, state }) => [
            id,
            attributes?.["direction"],
            "count" in state ? state.count : "value" in state && state.value
          ])
      )
      const made = [
        ["millrace.proxy.bytes", "sent", 5],
        ["millrace.proxy.bytes", "received", 5],
        ["millrace.proxy.connections", undefined, 1]
      ]
      expect(yield* shown).toEqual([...made, ["millrace.proxy.connections.open", undefined, 1]])
      yield* TestClock.adjust("70 seconds")
      yield* Node.closed(tunnel)
      yield* TestClock.adjust("10 seconds")
      expect(yield* shown).toEqual([...made, ["millrace.proxy.connections.open", undefined, 0]])
    }).pipe(
      Node.at({ allowed: [port] }, { lifetime: "1 minute" }),
      Effect.provide(TestClock.layer()),
      Effect.provideService(Metric.MetricRegistry, new Map())
    )
  })
)
