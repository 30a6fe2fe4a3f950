/** Proxy sessions at nodes: their bounds, their end, and what is counted. */
import { connect } from "node:net"
import { ProxyNodes, ProxySession, ProxySessions, Vault } from "@millrace/core"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { ProxyServer } from "../../src/proxy/ProxyServer.ts"
import * as Node from "./Node.ts"
import { testing } from "./Testing.ts"

/** Sends back what it gets, and ends when its client has ended. */
const echo = Node.tcpServer((socket) => void socket.pipe(socket))

const traffic = (sessionId: string) =>
  Effect.flatMap(ProxySessions, ({ find }) => find(sessionId)).pipe(
    Effect.map((found) => (found === undefined ? undefined : { status: found.session.status, ...ProxySession.trafficOf(found.session) }))
  )

describe("a tunnel", () => {
  testing(
    "carries bytes both ways, to the last, when one side ends first",
    Effect.gen(function* () {
      const { port } = yield* echo
      yield* Effect.gen(function* () {
        const session = yield* Node.open()
        const text = "0123456789".repeat(100_000)
        for (const tunnel of [
          yield* Node.byConnect(yield* Node.portOf("http"), session, `127.0.0.1:${port}`),
          yield* Node.bySocks(yield* Node.portOf("socks5"), session, "127.0.0.1", port)
        ]) {
          const socket = Node.opened(tunnel)
          const received = yield* Effect.forkChild(Node.closed(socket), { startImmediately: true })
          socket.end(text)
          expect((yield* Fiber.join(received)) === text).toBe(true)
        }
      }).pipe(Node.at({ allowed: [port] }))
    })
  )

  testing(
    "is closed at the expiry of its session, within a second, and nothing is opened any more",
    Effect.gen(function* () {
      const { port } = yield* echo
      yield* Effect.gen(function* () {
        const session = yield* Node.open()
        const [http, socks] = [yield* Node.portOf("http"), yield* Node.portOf("socks5")]
        const tunnels = [
          Node.opened(yield* Node.byConnect(http, session, `127.0.0.1:${port}`)),
          Node.opened(yield* Node.bySocks(socks, session, "127.0.0.1", port))
        ]
        for (const tunnel of tunnels) {
          tunnel.write("hello")
          expect(yield* Node.next(tunnel)).toBe("hello")
        }
        yield* TestClock.adjust("59 seconds")
        expect(tunnels.map(({ destroyed }) => destroyed)).toEqual([false, false])
        yield* TestClock.adjust("2 seconds")
        yield* Effect.forEach(tunnels, Node.closed)
        expect(yield* Node.byConnect(http, session, `127.0.0.1:${port}`)).toBe(407)
        expect(yield* Node.bySocks(socks, session, "127.0.0.1", port)).toContain("Authentication failed")
        yield* TestClock.adjust("6 seconds")
        expect(yield* traffic(session.id)).toEqual({ status: "open", sent: 10, received: 10, connections: 2 })
      }).pipe(Node.at({ allowed: [port] }, { lifetime: "1 minute" }), Effect.provide(TestClock.layer()))
    })
  )

  testing(
    "is closed when the bytes of its session are used up, which ends the session",
    Effect.gen(function* () {
      const { port } = yield* echo
      yield* Effect.gen(function* () {
        const session = yield* Node.open()
        const http = yield* Node.portOf("http")
        const tunnel = Node.opened(yield* Node.byConnect(http, session, `127.0.0.1:${port}`))
        tunnel.write("x".repeat(600))
        let received = 0
        while (received < 600) received += (yield* Node.next(tunnel)).length
        yield* TestClock.adjust("1 second")
        yield* Node.closed(tunnel)
        expect(yield* Node.byConnect(http, session, `127.0.0.1:${port}`)).toBe(429)
        yield* TestClock.adjust("6 seconds")
        expect(yield* traffic(session.id)).toEqual({ status: "ended", sent: 600, received: 600, connections: 1 })
        expect(yield* Node.byConnect(http, session, `127.0.0.1:${port}`)).toBe(407)
      }).pipe(Node.at({ allowed: [port] }, { byteLimit: 1_000 }), Effect.provide(TestClock.layer()))
    })
  )
})

describe("a session", () => {
  testing(
    "has no more connections at once than it may, also while they are being opened",
    Effect.gen(function* () {
      const { port } = yield* echo
      yield* Effect.gen(function* () {
        const session = yield* Node.open()
        const http = yield* Node.portOf("http")
        const connectOne = Node.byConnect(http, session, `127.0.0.1:${port}`)
        const all = yield* Effect.all([connectOne, connectOne, connectOne, connectOne], { concurrency: 4 })
        const tunnels = all.filter((tunnel) => typeof tunnel === "object")
        expect(all.filter((tunnel) => typeof tunnel !== "object")).toEqual([429, 429])
        tunnels[0]?.end()
        yield* Effect.forEach(tunnels.slice(0, 1), Node.closed)
        yield* Effect.repeat(connectOne, { until: (tunnel) => typeof tunnel === "object", times: 100 })
      }).pipe(Node.at({ allowed: [port] }, { connectionLimit: 2 }))
    })
  )

  testing(
    "is served by every node on the log, is counted over all of them, and ends at all of them at once",
    Effect.gen(function* () {
      const { port } = yield* echo
      const given = { allowed: [port] }
      yield* Effect.gen(function* () {
        // Another process: its own services and node, on the same stores
        const host = Layer.fresh(Layer.mergeAll(ProxySessions.layer({ byteLimit: 1_000 }), ProxyNodes.layer)).pipe(
          Layer.provide(Vault.Vault.layer)
        )
        const second = yield* Layer.build(Layer.fresh(Node.serve(given)).pipe(Layer.provide(host)))
        const session = yield* Node.open()
        const one = Node.opened(yield* Node.byConnect(yield* Node.portOf("http"), session, `127.0.0.1:${port}`))
        const at = yield* Effect.provideContext(Node.portOf("socks5"), second)
        const other = Node.opened(yield* Node.bySocks(at, session, "127.0.0.1", port))
        for (const tunnel of [one, other]) {
          tunnel.write("x".repeat(300))
          let received = 0
          while (received < 300) received += (yield* Node.next(tunnel)).length
        }
        expect(yield* ProxyNodes.use(({ list }) => list)).toHaveLength(2)
        // Neither knows yet that the bytes are used up: the counts tell
        yield* TestClock.adjust("6 seconds")
        yield* Effect.forEach([one, other], Node.closed)
        expect(yield* traffic(session.id)).toEqual({ status: "ended", sent: 600, received: 600, connections: 2 })
      }).pipe(Node.at(given, { byteLimit: 1_000 }), Effect.provide(TestClock.layer()))
    })
  )

  testing(
    "is closed when an administrator ends the session, which admits nothing from then on",
    Effect.gen(function* () {
      const { port } = yield* echo
      yield* Effect.gen(function* () {
        const [session, http] = [yield* Node.open(), yield* Node.portOf("http")]
        const connect = Node.byConnect(http, session, `127.0.0.1:${port}`)
        const tunnel = Node.opened(yield* connect)
        tunnel.write("hello")
        expect(yield* Node.next(tunnel)).toBe("hello")
        yield* ProxySessions.use(({ end }) => end(session.id))
        expect(yield* Node.closed(tunnel)).toBe("")
        expect(yield* connect).toBe(407)
      }).pipe(Node.at({ allowed: [port] }))
    })
  )

  testing(
    "is counted to the last byte when its node stops, which closes its tunnels and forgets the node",
    Effect.gen(function* () {
      const { port } = yield* echo
      yield* Effect.gen(function* () {
        const session = yield* Node.open()
        const tunnel = yield* Effect.gen(function* () {
          const tunnel = Node.opened(yield* Node.byConnect(yield* Node.portOf("http"), session, `127.0.0.1:${port}`))
          tunnel.write("hello")
          expect(yield* Node.next(tunnel)).toBe("hello")
          expect(yield* ProxyNodes.use(({ list }) => list)).toHaveLength(1)
          return tunnel
        }).pipe(Effect.provide(Node.serve({ allowed: [port] })))
        yield* Node.closed(tunnel)
        expect(yield* traffic(session.id)).toEqual({ status: "open", sent: 5, received: 5, connections: 1 })
        expect(yield* ProxyNodes.use(({ list }) => list)).toEqual([])
      }).pipe(Effect.provide(Node.log()))
    })
  )

  testing(
    "that is sticky leaves from one address, and one that rotates from each in turn",
    Effect.gen(function* () {
      const { from, port } = yield* echo
      const exits = ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
      yield* Effect.gen(function* () {
        const http = yield* Node.portOf("http")
        for (const session of [yield* Node.open("sticky", "127.0.0.3"), yield* Node.open("rotating")])
          for (let i = 0; i < 3; i++) Node.opened(yield* Node.byConnect(http, session, `127.0.0.1:${port}`)).destroy()
        expect([from.slice(0, 3), from.slice(3).sort()]).toEqual([["127.0.0.3", "127.0.0.3", "127.0.0.3"], exits])
        expect((yield* ProxyServer).exits).toEqual(exits)
      }).pipe(Node.at({ allowed: [port], exits }))
    })
  )
})

describe("a client", () => {
  testing(
    "that says nothing, or not all, is disconnected after the time for a handshake",
    Effect.gen(function* () {
      yield* Effect.gen(function* () {
        const [http, socks] = [yield* Node.portOf("http"), yield* Node.portOf("socks5")]
        const starts: ReadonlyArray<readonly [number, ReadonlyArray<number> | string]> = [
          [http, ""],
          [http, "CONNECT example.com:443 HTTP/1.1\r\nHost:"],
          [http, [0x16, 3, 1]],
          [socks, ""],
          [socks, [5, 2, 0]],
          [socks, [5, 1, 2, 1, 200, 65]]
        ]
        for (const [port, bytes] of starts) {
          const socket = connect(port, "127.0.0.1", () => socket.write(typeof bytes === "string" ? bytes : Uint8Array.from(bytes)))
          socket.on("error", () => {})
          yield* Node.closed(socket)
        }
      }).pipe(Node.at({ allowed: [], handshakeTimeout: 30 }))
    })
  )

  testing(
    "that speaks another protocol is refused, and the node goes on",
    Effect.gen(function* () {
      const { port: target } = yield* echo
      yield* Effect.gen(function* () {
        const [http, socks] = [yield* Node.portOf("http"), yield* Node.portOf("socks5")]
        const session = yield* Node.open()
        const auth = [1, session.id.length, ...Buffer.from(session.id), session.password.length, ...Buffer.from(session.password)]
        const wrong: ReadonlyArray<readonly [number, ReadonlyArray<number>, ReadonlyArray<number>]> = [
          [socks, [4, 1, 0, 80, 127, 0, 0, 1, 0], []],
          // No method but "none", and no method at all
          [socks, [5, 1, 0], [5, 0xff]],
          [socks, [5, 0], [5, 0xff]],
          [socks, [5, 1, 2, 2, 0, 0], [5, 2, 1, 1]],
          [socks, [5, 1, 2, 1, 0, 0], [5, 2, 1, 1]],
          // Bind, UDP, and an address of no type
          [socks, [5, 1, 2, ...auth, 5, 2, 0, 1, 127, 0, 0, 1, 0, 80], [5, 2, 1, 0, 5, 7, 0, 1, 0, 0, 0, 0, 0, 0]],
          [socks, [5, 1, 2, ...auth, 5, 3, 0, 1, 127, 0, 0, 1, 0, 80], [5, 2, 1, 0, 5, 7, 0, 1, 0, 0, 0, 0, 0, 0]],
          [socks, [5, 1, 2, ...auth, 5, 1, 0, 9, 0, 80], [5, 2, 1, 0, 5, 8, 0, 1, 0, 0, 0, 0, 0, 0]],
          // An empty name
          [socks, [5, 1, 2, ...auth, 5, 1, 0, 3, 0, 0, 80], [5, 2, 1, 0, 5, 2, 0, 1, 0, 0, 0, 0, 0, 0]]
        ]
        for (const [port, sent, answer] of wrong) {
          const socket = connect(port, "127.0.0.1", () => socket.write(Uint8Array.from(sent)))
          socket.on("error", () => {}).setEncoding("latin1")
          expect([sent, [...Buffer.from(yield* Node.closed(socket), "latin1")]]).toEqual([sent, answer])
        }
        const garbled = connect(http, "127.0.0.1", () => garbled.write("\0\0\0 nothing\r\n\r\n"))
        expect(yield* Node.closed(garbled.on("error", () => {}))).toContain("HTTP/1.1 400")
        Node.opened(yield* Node.bySocks(socks, session, "127.0.0.1", target)).destroy()
      }).pipe(Node.at({ allowed: [target] }))
    })
  )
})
