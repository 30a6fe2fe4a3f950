/** A node that connects through other proxies which speak TLS. */
import { readFileSync } from "node:fs"
import type { Socket } from "node:net"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { ProxySession, ProxySessions } from "@millrace/core"
import { Effect, Exit, Scope } from "effect"
import { afterAll, beforeAll, describe, expect } from "vitest"
import * as SelfSigned from "../mail/SelfSigned.ts"
import * as Node from "./Node.ts"
import { alive, echoed, greeted, greeter, httpUpstream, inFrance, upstream, via } from "./OtherProxies.ts"
import { testing } from "./Testing.ts"

const own = getCACertificates("default")
// As NODE_EXTRA_CA_CERTS does
beforeAll(() => setDefaultCACertificates([...own, readFileSync(Node.AUTHORITY, "utf8")]))
afterAll(() => setDefaultCACertificates(own))

/** Sends bytes, and closes the socket when as many have come back: `https` servers of Node allow no half-closed connections. */
const returned = (socket: Socket, size: number) =>
  Effect.callback<void>((resume) => {
    let received = 0
    socket.once("close", () => resume(Effect.void))
    socket.on("data", ({ length }: Buffer) => {
      received += length
      if (received >= size) socket.destroy()
    })
    socket.write(Buffer.alloc(size, "x"))
  })

describe("an upstream that speaks TLS", () => {
  testing(
    "carries tunnels of HTTP and of SOCKS, by its address or by its name, and loses nothing that comes early",
    Effect.gen(function* () {
      const { port } = yield* greeter
      const { asked, port: at } = yield* httpUpstream("secret", Node.loopback)
      const upstreams = [upstream(`https://user:secret@127.0.0.1:${at}`), upstream(`https://user:secret@localhost:${at}`)]
      yield* Effect.gen(function* () {
        const [byConnect, bySocks, session] = [yield* Node.portOf("http"), yield* Node.portOf("socks5h"), yield* inFrance()]
        for (let i = 0; i < 4; i++) {
          expect(yield* greeted(byConnect, session, `shop.test:${port}`)).toBe("welcome")
          expect(yield* echoed(yield* Node.bySocks(bySocks, session, "shop.test", port))).toBe("hello")
        }
        expect(asked).toEqual(Array.from({ length: 8 }, () => `127.0.0.1:${port}`))
      }).pipe(via([port], upstreams, { names: { "shop.test": ["127.0.0.1"] } }))
    })
  )

  testing(
    "carries plain requests",
    Effect.gen(function* () {
      const { port } = yield* Node.webServer(({ headers }, response) => void response.end(headers.host))
      const { asked, port: at } = yield* httpUpstream(undefined, Node.loopback)
      yield* Effect.gen(function* () {
        const session = yield* inFrance()
        const answer = yield* Node.get(yield* Node.portOf("http"), session, `http://shop.test:${port}/`)
        expect(answer).toEqual({ status: 200, body: `shop.test:${port}` })
        expect(asked).toEqual([`127.0.0.1:${port}`])
      }).pipe(via([port], [upstream(`https://127.0.0.1:${at}`)], { names: { "shop.test": ["127.0.0.1"] } }))
    })
  )

  testing(
    "carries a megabyte in both directions, of which the bytes of the client are counted, and not those of TLS",
    Effect.gen(function* () {
      const size = 1_000_000
      const { port } = yield* Node.tcpServer((socket) => void socket.pipe(socket))
      const { port: at } = yield* httpUpstream(undefined, Node.loopback)
      yield* Effect.gen(function* () {
        const session = yield* inFrance()
        // The node writes its last counts when it closes
        yield* Effect.gen(function* () {
          const socket = Node.opened(yield* Node.byConnect(yield* Node.portOf("http"), session, `127.0.0.1:${port}`))
          yield* returned(socket, size)
        }).pipe(Effect.provide(Node.serve({ allowed: [port], country: undefined, upstreams: [upstream(`https://127.0.0.1:${at}`)] })))
        const found = yield* ProxySessions.use(({ find }) => find(session.id))
        expect(ProxySession.trafficOf(found?.session ?? { traffic: {} })).toEqual({ sent: size, received: size, connections: 1 })
      }).pipe(Effect.provide(Node.log()))
    })
  )

  testing(
    "is left out with a certificate of nobody, of another name, or none, and is sent no credentials; the next one serves",
    Effect.gen(function* () {
      const { port } = yield* greeter
      const unknown = yield* httpUpstream("secret", SelfSigned.make())
      const plain = yield* httpUpstream("secret")
      const other = yield* httpUpstream("secret", Node.loopback)
      const good = yield* httpUpstream("secret", Node.loopback)
      const upstreams = [unknown, plain].map(({ port }) => upstream(`https://user:secret@127.0.0.1:${port}`))
      // Loopback, but not an address of the certificate
      upstreams.push(upstream(`https://user:secret@127.0.0.2:${other.port}`))
      upstreams.push(upstream(`https://user:secret@127.0.0.1:${good.port}`))
      yield* Effect.gen(function* () {
        expect(yield* alive).toEqual([["FR", 1]])
        const [http, session] = [yield* Node.portOf("http"), yield* inFrance()]
        for (let i = 0; i < 4; i++) expect(yield* echoed(yield* Node.byConnect(http, session, `127.0.0.1:${port}`))).toBe("hello")
        expect(good.asked).toHaveLength(4)
        for (const { asked } of [unknown, plain, other]) expect(asked).toEqual([])
      }).pipe(via([port], upstreams))
    })
  )

  testing(
    "that goes down is skipped at the next connection, for the next of its pool; without another there is no exit",
    Effect.gen(function* () {
      const { port } = yield* greeter
      const good = yield* httpUpstream(undefined, Node.loopback)
      const lives = yield* Scope.make()
      const mortal = yield* Scope.provide(httpUpstream(undefined, Node.loopback), lives)
      const upstreams = [
        upstream(`https://127.0.0.1:${mortal.port}`),
        upstream(`https://127.0.0.1:${good.port}`),
        upstream(`https://127.0.0.1:${mortal.port}`, { country: "IT" })
      ]
      yield* Effect.gen(function* () {
        const [http, session, lonely] = [yield* Node.portOf("http"), yield* inFrance(), yield* Node.open("rotating", undefined, "IT")]
        const connect = (login: typeof session) => Node.byConnect(http, login, `127.0.0.1:${port}`)
        for (const login of [session, session, lonely]) expect(yield* echoed(yield* connect(login))).toBe("hello")
        expect([mortal.asked.length, good.asked.length]).toEqual([2, 1])
        yield* Scope.close(lives, Exit.void)
        for (let i = 0; i < 4; i++) expect(yield* echoed(yield* connect(session))).toBe("hello")
        expect(good.asked).toHaveLength(5)
        expect(yield* connect(lonely)).toBe(503)
      }).pipe(via([port], upstreams))
    })
  )
})
