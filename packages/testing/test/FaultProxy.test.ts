/** The proxy, between sockets of this process: what arrives, in which order, and who is told of what. */
import { once } from "node:events"
import { connect, createServer, type Socket } from "node:net"
import { FaultProxy } from "@millrace/testing"
import { Effect, type Scope } from "effect"
import { describe, expect, it } from "vitest"

interface End {
  readonly socket: Socket
  readonly heard: () => string
  /** `end` for a good-bye, a code for anything else, nothing while it stands. */
  readonly over: () => string | undefined
}

const endOf = (socket: Socket): End => {
  let heard = ""
  let over: string | undefined
  socket.on("data", (bytes) => {
    heard += bytes.toString()
  })
  socket.on("end", () => {
    over ??= "end"
  })
  socket.on("error", (error) => {
    over = "code" in error ? String(error.code) : error.message
  })
  return { socket, heard: () => heard, over: () => over }
}

const until = (is: () => boolean) =>
  Effect.timeoutOrElse(Effect.repeat(Effect.andThen(Effect.sleep(2), Effect.sync(is)), { until: (held) => held }), {
    duration: "10 seconds",
    orElse: () => Effect.die(new Error("It does not come to be"))
  })

interface Connected {
  readonly proxy: FaultProxy.FaultProxy
  readonly client: End
  readonly server: End
  /** Another connection. */
  readonly again: Effect.Effect<{ readonly client: End; readonly server: End }>
}

/** Something to connect to, and both ends of a connection by way of a proxy. */
const listening = Effect.gen(function* () {
  const listener = createServer({ allowHalfOpen: true })
  const sockets: Array<Socket> = []
  yield* Effect.acquireRelease(
    Effect.promise(() => once(listener.listen(0, "127.0.0.1"), "listening")),
    () =>
      Effect.sync(() => {
        for (const socket of sockets) socket.destroy()
        listener.close()
      })
  )
  const address = listener.address()
  const by = (proxy: FaultProxy.FaultProxy) =>
    Effect.promise(async () => {
      const socket = connect({ port: proxy.port, host: "127.0.0.1", allowHalfOpen: true })
      const client = endOf(socket)
      const [accepted] = await once(listener, "connection")
      sockets.push(socket, accepted)
      return { client, server: endOf(accepted) }
    })
  return { by, port: typeof address === "object" && address !== null ? address.port : 0 }
})

const connected: Effect.Effect<Connected, FaultProxy.NotListening, Scope.Scope> = Effect.gen(function* () {
  const { by, port } = yield* listening
  const proxy = yield* FaultProxy.make(port)
  return { proxy, again: by(proxy), ...(yield* by(proxy)) }
})

const test = (title: string, body: (connected: Connected) => Effect.Effect<unknown>) =>
  it(title, () => Effect.runPromise(Effect.asVoid(Effect.scoped(Effect.flatMap(connected, body)))))

describe.each(["up", "down"] as const)("%s", (direction) => {
  const along = ({ client, server }: Pick<Connected, "client" | "server">) =>
    direction === "up" ? { from: client, to: server } : { from: server, to: client }

  test("without faults it passes all bytes and the end of one direction while the other goes on", (all) =>
    Effect.gen(function* () {
      const { from, to } = along(all)
      const much = "x".repeat(3_000_000)
      from.socket.end(much)
      yield* until(() => to.over() === "end")
      expect(to.heard() === much).toBe(true)
      to.socket.end("answer")
      yield* until(() => from.heard() === "answer" && from.over() === "end")
      expect(all.proxy.struck()).toBe(0)
      yield* until(() => all.proxy.connections() === 0)
    }))

  test("delay: bytes arrive later and in order, also bytes that were sent after the delay had ended", (all) =>
    Effect.gen(function* () {
      const { from, to } = along(all)
      all.proxy.set({ [direction]: { _tag: "delay", millis: 60 } })
      const began = performance.now()
      from.socket.write("a")
      yield* Effect.sleep(20)
      expect(to.heard()).toBe("")
      all.proxy.set()
      from.socket.end("b")
      yield* until(() => to.over() === "end")
      expect(to.heard()).toBe("ab")
      expect(performance.now() - began).toBeGreaterThan(58)
    }))

  test("reset: bytes are dropped and both ends see a reset, for the given number of strikes", (all) =>
    Effect.gen(function* () {
      const { from, to } = along(all)
      all.proxy.set({ [direction]: { _tag: "reset" } }, 1)
      from.socket.write("a")
      yield* until(() => from.over() === "ECONNRESET" && to.over() === "ECONNRESET")
      expect([to.heard(), all.proxy.struck()]).toEqual(["", 1])
      const next = along(yield* all.again)
      next.from.socket.write("b")
      yield* until(() => next.to.heard() === "b")
    }))

  test("cut: the given number of bytes arrive, then both ends see a reset", (all) =>
    Effect.gen(function* () {
      const { from, to } = along(all)
      from.socket.write("before ")
      yield* until(() => to.heard() === "before ")
      all.proxy.set({ [direction]: { _tag: "cut", after: 5 } })
      from.socket.write("123")
      yield* until(() => to.heard() === "before 123")
      from.socket.write("456")
      yield* until(() => from.over() === "ECONNRESET" && to.over() === "ECONNRESET")
      expect([to.heard(), all.proxy.struck()]).toEqual(["before 12345", 1])
    }))

  test("half open: the receiver sees a reset, the sender sees nothing and gets no more bytes", (all) =>
    Effect.gen(function* () {
      const { from, to } = along(all)
      all.proxy.set({ [direction]: { _tag: "halfOpen" } })
      from.socket.write("a")
      yield* until(() => to.over() === "ECONNRESET")
      all.proxy.set()
      from.socket.write("b")
      const next = along(yield* all.again)
      next.from.socket.write("c")
      yield* until(() => next.to.heard() === "c")
      expect([from.over(), from.heard(), to.heard()]).toEqual([undefined, "", ""])
    }))

  test("black hole: neither bytes nor the end of the connection arrive, and neither end notices", (all) =>
    Effect.gen(function* () {
      const { from, to } = along(all)
      all.proxy.set({ [direction]: { _tag: "blackHole" } })
      from.socket.write("a")
      yield* until(() => all.proxy.struck() === 1)
      all.proxy.set()
      from.socket.end("b")
      to.socket.write("the other way")
      yield* until(() => from.heard() === "the other way")
      expect([from.over(), to.over(), to.heard()]).toEqual([undefined, undefined, ""])
    }))
})

test("reset() and the end of the scope reset open connections at once", ({ proxy, client, server, again }) =>
  Effect.gen(function* () {
    expect(proxy.connections()).toBe(1)
    proxy.reset()
    yield* until(() => client.over() === "ECONNRESET" && server.over() === "ECONNRESET")
    yield* until(() => proxy.connections() === 0)
    yield* again
    expect(proxy.connections()).toBe(1)
  }))

it("closes with its scope, with all connections", () =>
  Effect.gen(function* () {
    const { by, port } = yield* listening
    const { ends, proxied } = yield* Effect.scoped(
      Effect.gen(function* () {
        const proxy = yield* FaultProxy.make(port)
        return { ends: yield* by(proxy), proxied: proxy.port }
      })
    )
    yield* until(() => ends.client.over() === "ECONNRESET" && ends.server.over() === "ECONNRESET")
    const refused = connect(proxied, "127.0.0.1")
    const [error] = yield* Effect.promise(() => once(refused, "error"))
    expect(error).toMatchObject({ code: "ECONNREFUSED" })
  }).pipe(Effect.scoped, Effect.runPromise))
