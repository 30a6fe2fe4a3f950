/** The proxy node with real clients. */
import { spawnSync } from "node:child_process"
import { Effect } from "effect"
import { describe, expect } from "vitest"
import { ProxyServer } from "../../src/proxy/ProxyServer.ts"
import * as Node from "./Node.ts"
import { testing } from "./Testing.ts"

const hasCurl = spawnSync("curl", ["--version"]).status === 0

const hello = Node.webServer(({ headers, method, url }, response) => {
  response.setHeader("content-type", "application/json")
  response.end(JSON.stringify({ method, url, host: headers.host, leaked: headers["proxy-authorization"] ?? null }))
})

describe.skipIf(!hasCurl)("curl", () => {
  testing(
    "reaches a destination by every protocol, and the credentials stay at the node",
    Effect.gen(function* () {
      const { port } = yield* hello
      yield* Effect.gen(function* () {
        const { login } = yield* Node.open()
        const { endpoints } = yield* ProxyServer
        expect(endpoints.map(({ protocol }) => protocol)).toEqual(["http", "https", "socks5", "socks5h"])
        const url = `http://shop.test:${port}/a?b=c`
        for (const { port: at, protocol } of endpoints) {
          const ways = protocol.startsWith("http") ? [[], ["--proxytunnel"]] : [[]]
          for (const way of ways) {
            // With socks5, curl resolves the name
            const target = protocol === "socks5" ? url.replace("shop.test", "127.0.0.1") : url
            const proxy = `${protocol}://${login}@127.0.0.1:${at}`
            const { exit, out } = yield* Node.curl(...way, "--proxy-cacert", Node.AUTHORITY, "--proxy", proxy, target)
            const host = new URL(target).host
            expect([protocol, ...way, exit, out]).toEqual([
              protocol,
              ...way,
              0,
              JSON.stringify({ method: "GET", url: "/a?b=c", host, leaked: null })
            ])
          }
        }
      }).pipe(Node.at({ allowed: [port], names: { "shop.test": ["127.0.0.1"] } }))
    })
  )

  testing(
    "sends several plain requests over one connection to the node",
    Effect.gen(function* () {
      const { port } = yield* hello
      yield* Effect.gen(function* () {
        const { login } = yield* Node.open()
        const proxy = `http://${login}@127.0.0.1:${yield* Node.portOf("http")}`
        const urls = Array.from({ length: 15 }, (_, i) => `http://127.0.0.1:${port}/${i}`)
        const { out } = yield* Node.curl("--write-out", " %{num_connects}\\n", "--proxy", proxy, ...urls)
        const lines = out.trim().split("\n")
        expect(lines.map((line) => line.split(" ").at(-1))).toEqual(["1", ...urls.slice(1).map(() => "0")])
      }).pipe(Node.at({ allowed: [port] }))
    })
  )

  testing(
    "is refused with wrong credentials, and nothing is connected",
    Effect.gen(function* () {
      const { port, sockets } = yield* hello
      yield* Effect.gen(function* () {
        const { id, password } = yield* Node.open()
        const [http, socks] = [yield* Node.portOf("http"), yield* Node.portOf("socks5h")]
        const logins = [`${id}:wrong`, `proxy_01M7YKD46JCP6VGMKADN3JSPJP:${password}`, `nobody:${password}`]
        for (const login of logins) {
          const status = ["--write-out", "%{http_connect}%{http_code}", "--output", "/dev/null"]
          const plain = yield* Node.curl(...status, "--proxy", `http://${login}@127.0.0.1:${http}`, `http://127.0.0.1:${port}/`)
          expect(plain.out).toContain("407")
          const bySocks = yield* Node.curl("--proxy", `socks5h://${login}@127.0.0.1:${socks}`, `http://127.0.0.1:${port}/`)
          expect(bySocks.exit).toBe(97)
        }
        expect(sockets).toEqual([])
      }).pipe(Node.at({ allowed: [port] }))
    })
  )
})

describe("a destination", () => {
  testing(
    "that is not public is refused: by literal in every notation, and by name",
    Effect.gen(function* () {
      const inside = yield* Node.webServer((_, response) => void response.end("secret"))
      const { port } = inside
      const allowed = yield* hello
      const names = { "inside.test": ["127.0.0.1"], "metadata.test": ["169.254.169.254"], "lan.test": ["10.0.0.1"] }
      yield* Effect.gen(function* () {
        const session = yield* Node.open()
        const [http, socks] = [yield* Node.portOf("http"), yield* Node.portOf("socks5h")]
        const literals = ["127.0.0.1", "127.1", "0x7f.1", "0177.0.0.1", "2130706433", "0.0.0.0", "169.254.169.254", "10.0.0.1"]
        const v6 = ["::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "64:ff9b::7f00:1", "fe80::1", "fd00::1"]
        for (const host of [...literals, ...Object.keys(names), ...v6.map((address) => `[${address}]`)])
          expect([host, yield* Node.byConnect(http, session, `${host}:${port}`)]).toEqual([host, 403])
        for (const host of [...literals, ...Object.keys(names), ...v6])
          expect([host, yield* Node.bySocks(socks, session, host, port)]).toEqual([host, expect.stringContaining("NotAllowed")])
        expect(inside.sockets).toEqual([])
        Node.opened(yield* Node.byConnect(http, session, `127.0.0.1:${allowed.port}`)).destroy()
      }).pipe(Node.at({ allowed: [allowed.port], names }))
    })
  )

  testing(
    "is resolved once for each connection, which goes to the address that was checked",
    Effect.gen(function* () {
      const { port, sockets } = yield* hello
      // What an attacker's name server says: first what is allowed, then what is not, and in the end what is allowed again
      const names = { "rebinding.test": ["127.0.0.1", "10.0.0.1", "127.0.0.1"] }
      yield* Effect.gen(function* () {
        const session = yield* Node.open()
        const [http, socks] = [yield* Node.portOf("http"), yield* Node.portOf("socks5h")]
        Node.opened(yield* Node.byConnect(http, session, `rebinding.test:${port}`)).destroy()
        expect(yield* Node.byConnect(http, session, `rebinding.test:${port}`)).toBe(403)
        Node.opened(yield* Node.bySocks(socks, session, "rebinding.test", port)).destroy()
        expect(sockets).toHaveLength(2)
      }).pipe(Node.at({ allowed: [port], names }))
    })
  )

  testing(
    "that a redirect names is checked like any other",
    Effect.gen(function* () {
      const inside = yield* Node.webServer((_, response) => void response.end("secret"))
      const { port } = yield* Node.webServer((_, response) => {
        response.writeHead(302, { location: `http://127.0.0.1:${inside.port}/` }).end()
      })
      yield* Effect.gen(function* () {
        const { login } = yield* Node.open()
        const proxy = `http://${login}@127.0.0.1:${yield* Node.portOf("http")}`
        const { out } = yield* Node.curl("--location", "--proxy", proxy, `http://127.0.0.1:${port}/`)
        expect([out, inside.sockets]).toEqual(["This destination is not allowed", []])
      }).pipe(Node.at({ allowed: [port] }))
    })
  )

  testing(
    "that is a mail server is refused wherever it is, and one that refuses or does not exist is told apart",
    Effect.gen(function* () {
      const closed = yield* Effect.scoped(hello)
      yield* Effect.gen(function* () {
        const session = yield* Node.open()
        const [http, socks] = [yield* Node.portOf("http"), yield* Node.portOf("socks5h")]
        for (const port of [25, 465, 587]) {
          expect(yield* Node.byConnect(http, session, `127.0.0.1:${port}`)).toBe(403)
          expect(yield* Node.bySocks(socks, session, "127.0.0.1", port)).toContain("NotAllowed")
        }
        expect(yield* Node.byConnect(http, session, `127.0.0.1:${closed.port}`)).toBe(502)
        expect(yield* Node.bySocks(socks, session, "127.0.0.1", closed.port)).toContain("ConnectionRefused")
        expect(yield* Node.bySocks(socks, session, "nobody.test", 80)).toContain("NotAllowed")
      }).pipe(Node.at({ allowed: [25, 465, 587, closed.port] }))
    })
  )
})
