/**
 * Megabits a second through one tunnel of a proxy node, beside `proxy-chain` alone and no proxy at all. Client, node and destination share one
 * process, which is what makes it slow: the ratios count.
 */
import { connect, type Socket } from "node:net"
import { Effect, type Scope } from "effect"
import { Server } from "proxy-chain"
import * as Node from "../../packages/upstreams/test/proxy/Node.ts"
import { type Contender, compare } from "./measure.ts"

const CHUNK = Buffer.alloc(64 * 1024)

/** Sends for ever. */
const pour = (socket: Socket): void => {
  const more = () => {
    while (!socket.destroyed && socket.write(CHUNK));
  }
  socket.on("drain", more)
  more()
}

const proxyChain: Effect.Effect<number, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(async () => {
    const server = new Server({ host: "127.0.0.1", port: 0, prepareRequestFunction: () => ({}) })
    await server.listen()
    return server
  }),
  (server) => Effect.promise(() => server.close(true))
).pipe(Effect.map(({ port }) => port))

/** Bytes that come in so many milliseconds, as megabits a second. */
const receive = (socket: Socket, millis: number): Promise<number> =>
  new Promise((resolve) => {
    let bytes = 0
    const began = performance.now()
    socket.on("data", ({ length }) => {
      bytes += length
    })
    setTimeout(() => {
      socket.destroy()
      resolve((bytes * 8) / 1_000 / (performance.now() - began))
    }, millis)
  })

const through =
  (open: Effect.Effect<Socket | string | number>): Contender =>
  async (millis) =>
    await receive(Node.opened(await Effect.runPromise(open)), millis)

export const run = (options: { readonly rounds: number; readonly millis: number }) =>
  Effect.gen(function* () {
    const { port } = yield* Node.tcpServer(pour)
    const alone = yield* proxyChain
    const compared = Effect.gen(function* () {
      const session = yield* Node.open()
      const [http, socks] = [yield* Node.portOf("http"), yield* Node.portOf("socks5")]
      return yield* Effect.promise(() =>
        compare(
          {
            "proxy-chain alone": through(Node.byConnect(alone, session, `127.0.0.1:${port}`)),
            "a node, by CONNECT": through(Node.byConnect(http, session, `127.0.0.1:${port}`)),
            "a node, by SOCKS 5": through(Node.bySocks(socks, session, "127.0.0.1", port)),
            "no proxy": through(Effect.sync(() => connect(port, "127.0.0.1")))
          },
          options
        )
      )
    })
    const rows = yield* compared.pipe(Node.at({ allowed: [port] }, { byteLimit: Number.MAX_SAFE_INTEGER }))
    return Object.entries(rows).map(([way, { rate, ratio }]) => ({ way, "Mbit/s": rate, ratio }))
  }).pipe(Effect.scoped, Effect.runPromise)
