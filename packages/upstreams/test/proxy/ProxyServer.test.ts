/** The proxy node with real clients. */
import { spawnSync } from "node:child_process"
import { connect } from "node:net"
import { Effect } from "effect"
import { SocksClient } from "socks"
import { describe, expect } from "vitest"
import { ProxyServer } from "../../src/proxy/ProxyServer.ts"
import * as Node from "./Node.ts"

const hasCurl = spawnSync("curl", ["--version"]).status === 0

const hello = Node.webServer(({ headers, method, url }, response) => {
  response.setHeader("content-type", "application/json")
  response.end(JSON.stringify({ method, url, host: headers.host, leaked: headers["proxy-authorization"] ?? null }))
})

describe.skipIf(!hasCurl)("curl", () => {
  Node.testing(
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

  Node.testing(
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

  Node.testing(
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

/** Opens a tunnel by the package `socks`. */
const bySocks = (port: number, { id, password }: { readonly id: string; readonly password: string }, host: string, at: number) =>
  Effect.promise(() =>
    SocksClient.createConnection({
      proxy: { host: "127.0.0.1", port, type: 5, userId: id, password },
      command: "connect",
      destination: { host, port: at }
    }).then(
      ({ socket }) => socket,
      (error: Error) => error.message
    )
  )

/** The status of a CONNECT. */
const byConnect = (port: number, { login }: { readonly login: string }, target: string) =>
  Effect.callback<number>((resume) => {
    const socket = connect(port, "127.0.0.1", () => {
      const auth = Buffer.from(login).toString("base64")
      socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\nProxy-Authorization: Basic ${auth}\r\n\r\n`)
    })
    socket.on("error", () => {})
    socket.once("data", (answer) => {
      socket.destroy()
      resume(Effect.succeed(Number(/^HTTP\/1\.1 (\d+)/u.exec(answer.toString())?.[1])))
    })
    socket.once("close", () => resume(Effect.succeed(0)))
  })

describe("a destination", () => {
  Node.testing(
    "that is not public is refused: by literal in every notation, by name, and by rebinding",
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
          expect([host, yield* byConnect(http, session, `${host}:${port}`)]).toEqual([host, 403])
        for (const host of [...literals, ...Object.keys(names), ...v6])
          expect([host, yield* bySocks(socks, session, host, port)]).toEqual([host, expect.stringContaining("NotAllowed")])
        expect(inside.sockets).toEqual([])
        expect(yield* byConnect(http, session, `127.0.0.1:${allowed.port}`)).toBe(200)
      }).pipe(Node.at({ allowed: [allowed.port], names }))
    })
  )
})
