/** A node that connects through other proxies: real ones, by every protocol, that are alive, dead, silent, or refuse its credentials. */
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Server } from "proxy-chain"
import { describe, expect } from "vitest"
import { ProxyServer } from "../../src/proxy/ProxyServer.ts"
import * as Node from "./Node.ts"
import { alive, echoed, greeted, greeter, httpUpstream, inFrance, turn, upstream, via } from "./OtherProxies.ts"
import { testing } from "./Testing.ts"

describe("a session of a place that has upstreams", () => {
  testing(
    "leaves through an HTTP proxy, or a SOCKS one that is another node, and loses nothing that comes early",
    Effect.gen(function* () {
      const { port } = yield* greeter
      const http = yield* httpUpstream("p@ss:word")
      yield* Effect.gen(function* () {
        // The other node is of DE, and connects by itself
        const behind = yield* Node.open()
        const [socks, httpNode] = [yield* Node.portOf("socks5"), yield* Node.portOf("http")]
        const upstreams = [
          upstream(`http://user:p%40ss%3Aword@127.0.0.1:${http.port}`),
          upstream(`socks5h://${behind.login}@127.0.0.1:${socks}`, { country: "IT" }),
          upstream(`http://${behind.login}@127.0.0.1:${httpNode}`, { country: "ES", region: "Galicia" })
        ]
        yield* Effect.gen(function* () {
          const [byConnect, bySocks] = [yield* Node.portOf("http"), yield* Node.portOf("socks5h")]
          for (const place of [["FR"], ["IT"], ["ES", "Galicia"]] as const)
            for (let i = 0; i < 5; i++) {
              const session = yield* Node.open("rotating", undefined, ...place)
              expect(yield* greeted(byConnect, session, `shop.test:${port}`)).toBe("welcome")
              expect(yield* echoed(yield* Node.bySocks(bySocks, session, "shop.test", port))).toBe("hello")
            }
          // It is given the address that was checked, and not the name
          expect(new Set(http.asked)).toEqual(new Set([`127.0.0.1:${port}`]))
          expect(http.asked).toHaveLength(10)
        }).pipe(via([port], upstreams, { names: { "shop.test": ["127.0.0.1"] } }))
      }).pipe(Node.at({ allowed: [port] }))
    })
  )

  testing(
    "sends plain requests with the name that the client asked for",
    Effect.gen(function* () {
      const { port } = yield* Node.webServer(({ headers }, response) => void response.end(headers.host))
      const { asked, port: at } = yield* httpUpstream()
      yield* Effect.gen(function* () {
        const session = yield* inFrance()
        const url = `http://shop.test:${port}/`
        expect(yield* Node.get(yield* Node.portOf("http"), session, url)).toEqual({ status: 200, body: `shop.test:${port}` })
        expect(asked).toEqual([`127.0.0.1:${port}`])
      }).pipe(via([port], [upstream(`http://127.0.0.1:${at}`)], { names: { "shop.test": ["127.0.0.1"] } }))
    })
  )

  testing(
    "is refused what is not public and the ports of mail, before an upstream is asked",
    Effect.gen(function* () {
      const { port } = yield* greeter
      const { asked, port: at } = yield* httpUpstream()
      const names = { "inside.test": ["127.0.0.1"], "rebinding.test": ["10.0.0.1"] }
      yield* Effect.gen(function* () {
        const session = yield* inFrance()
        const http = yield* Node.portOf("http")
        for (const host of ["127.0.0.1", "0x7f.1", "169.254.169.254", "[::1]", ...Object.keys(names)])
          expect([host, yield* Node.byConnect(http, session, `${host}:${port}`)]).toEqual([host, 403])
        for (const mail of [25, 465, 587]) expect(yield* Node.byConnect(http, session, `127.0.0.1:${mail}`)).toBe(403)
        expect(asked).toEqual([])
      }).pipe(via([25, 465, 587], [upstream(`http://127.0.0.1:${at}`)], { names }))
    })
  )

  testing(
    "leaves through each member in turn, or through the one that it keeps",
    Effect.gen(function* () {
      const { port } = yield* greeter
      const members = [yield* httpUpstream(), yield* httpUpstream(), yield* httpUpstream()]
      const upstreams = members.map(({ port }, i) => upstream(`http://127.0.0.1:${port}`, { exit: `203.0.113.${i}` }))
      const counts = () => members.map(({ asked }) => asked.length)
      yield* Effect.gen(function* () {
        const http = yield* Node.portOf("http")
        const use = (session: Parameters<typeof Node.byConnect>[1]) =>
          Effect.repeat(Effect.flatMap(Node.byConnect(http, session, `127.0.0.1:${port}`), echoed), { times: 5 })
        yield* use(yield* inFrance())
        expect(counts()).toEqual([2, 2, 2])
        yield* use(yield* inFrance("sticky", "203.0.113.1"))
        expect(counts()).toEqual([2, 8, 2])
        // Announced by another node: one of its own, but always the same
        yield* use(yield* inFrance("sticky", "198.51.100.7"))
        expect(
          counts()
            .map((count, i) => count - ([2, 8, 2][i] ?? 0))
            .sort()
        ).toEqual([0, 0, 6])
        expect((yield* ProxyServer).exits).toEqual(["203.0.113.0", "203.0.113.1", "203.0.113.2"])
      }).pipe(via([port], upstreams))
    })
  )

  testing(
    "has no exit at a node without its place, and one that connects by itself needs no pool",
    Effect.gen(function* () {
      const { port } = yield* greeter
      const { asked, port: at } = yield* httpUpstream()
      const upstreams = [upstream(`http://127.0.0.1:${at}`)]
      const attempt = Effect.flatMap(Effect.all([Node.portOf("http"), Node.open("rotating", undefined, "IT")]), ([http, session]) =>
        Node.byConnect(http, session, `127.0.0.1:${port}`)
      )
      expect(yield* attempt.pipe(via([port], upstreams))).toBe(503)
      expect(yield* Effect.flatMap(attempt, echoed).pipe(Node.at({ allowed: [port], upstreams }))).toBe("hello")
      expect(asked).toEqual([])
    })
  )
})

describe("a member", () => {
  testing(
    "that is dead is skipped and not counted, and comes back when it answers again",
    Effect.gen(function* () {
      const { port } = yield* greeter
      const good = yield* httpUpstream()
      const dead = yield* Effect.scoped(httpUpstream())
      const upstreams = [good, dead].map(({ port }) => upstream(`http://127.0.0.1:${port}`))
      yield* Effect.gen(function* () {
        expect(yield* alive).toEqual([["FR", 1]])
        const [http, session] = [yield* Node.portOf("http"), yield* inFrance()]
        const use = Effect.flatMap(Node.byConnect(http, session, `127.0.0.1:${port}`), echoed)
        for (let i = 0; i < 4; i++) expect(yield* use).toBe("hello")
        expect(good.asked).toHaveLength(4)
        const again = new Server({ host: "127.0.0.1", port: dead.port, prepareRequestFunction: () => ({}) })
        yield* Effect.acquireRelease(
          Effect.promise(() => again.listen()),
          () => Effect.promise(() => again.close(true))
        )
        yield* Effect.repeat(Effect.andThen(TestClock.adjust("1 second"), Effect.andThen(turn, alive)), {
          until: ([first]) => first?.[1] === 2,
          times: 200
        })
        for (let i = 0; i < 4; i++) expect(yield* use).toBe("hello")
        expect(good.asked).toHaveLength(6)
      }).pipe(via([port], upstreams), Effect.provide(TestClock.layer()))
    })
  )

  testing(
    "that refuses the credentials, or speaks another protocol, is left out, and the next one serves",
    Effect.gen(function* () {
      const { port } = yield* greeter
      const good = yield* httpUpstream("secret")
      const other = yield* Node.tcpServer((socket) => void socket.end("220 mail.test ESMTP\r\n"))
      const upstreams = [
        upstream(`http://user:wrong@127.0.0.1:${good.port}`),
        upstream(`http://127.0.0.1:${other.port}`),
        upstream(`socks5://127.0.0.1:${other.port}`),
        upstream(`http://user:secret@127.0.0.1:${good.port}`)
      ]
      yield* Effect.gen(function* () {
        const [http, session] = [yield* Node.portOf("http"), yield* inFrance()]
        for (let i = 0; i < 3; i++) expect(yield* echoed(yield* Node.byConnect(http, session, `127.0.0.1:${port}`))).toBe("hello")
        // The wrong credentials were sent once
        expect(good.asked).toHaveLength(4)
      }).pipe(via([port], upstreams))
    })
  )

  testing(
    "that takes requests and never answers costs a client the time for connecting, and is left out after three",
    Effect.gen(function* () {
      const { port } = yield* greeter
      const silent = yield* Node.tcpServer(() => {})
      yield* Effect.gen(function* () {
        const [http, session] = [yield* Node.portOf("http"), yield* inFrance()]
        const statuses = []
        for (let i = 0; i < 4; i++) statuses.push(yield* Node.byConnect(http, session, `127.0.0.1:${port}`))
        expect(statuses).toEqual([504, 504, 504, 503])
      }).pipe(via([port], [upstream(`socks5://127.0.0.1:${silent.port}`)], { connectTimeout: 100 }))
    })
  )

  testing(
    "whose destination fails stays alive",
    Effect.gen(function* () {
      const { port } = yield* greeter
      const gone = yield* Effect.scoped(greeter)
      const { port: at } = yield* httpUpstream()
      yield* Effect.gen(function* () {
        const [http, session] = [yield* Node.portOf("http"), yield* inFrance()]
        for (let i = 0; i < 5; i++) expect(yield* Node.byConnect(http, session, `127.0.0.1:${gone.port}`)).toBe(502)
        expect(yield* echoed(yield* Node.byConnect(http, session, `127.0.0.1:${port}`))).toBe("hello")
      }).pipe(via([port, gone.port], [upstream(`http://127.0.0.1:${at}`)]))
    })
  )
})

testing(
  "a node does not start with an upstream of its own place, or one that is no proxy",
  Effect.gen(function* () {
    for (const [url, country] of [
      ["http://127.0.0.1:1", "DE"],
      ["ftp://127.0.0.1:1", "FR"]
    ] as const) {
      const error = yield* Effect.flip(ProxyServer.pipe(Node.at({ allowed: [], upstreams: [upstream(url, { country })] })))
      expect(error.message).toContain(`${url} is`)
    }
  })
)
