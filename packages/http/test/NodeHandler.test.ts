/** Mounted in servers of others: earlier body parsers, cut paths, streams, and clients that stop reading. */

import { once } from "node:events"
import { createServer, type IncomingMessage, type RequestListener } from "node:http"
import { Effect, type Scope } from "effect"
import { describe, expect } from "vitest"
import { toNodeHandler } from "../src/index.ts"
import { eventually, host, send, testing } from "./Host.ts"

/** A server around a listener, for as long as the scope is open. */
const serve = (listener: RequestListener): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const server = createServer(listener).listen(0, "127.0.0.1")
        await once(server, "listening")
        return server
      }),
      (server) =>
        Effect.promise(async () => {
          server.closeAllConnections()
          await new Promise((resolve) => server.close(resolve))
        })
    ),
    (server) => {
      const address = server.address()
      return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`
    }
  )

const bytesOf = async (incoming: IncomingMessage): Promise<Buffer> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of incoming) chunks.push(chunk)
  return Buffer.concat(chunks)
}

describe("behind an earlier body parser", () => {
  const parsers: Record<string, (bytes: Buffer) => unknown> = {
    "that made an object": (bytes) => JSON.parse(bytes.toString()),
    "that made text": (bytes) => bytes.toString(),
    "that made bytes": (bytes) => bytes
  }
  for (const [name, parse] of Object.entries(parsers)) {
    testing(
      name,
      Effect.gen(function* () {
        const { handler, account } = yield* host()
        const { bearer } = yield* account()
        const listener = toNodeHandler(handler.handle)
        const url = yield* serve(async (incoming, outgoing) => {
          listener(Object.assign(incoming, { body: parse(await bytesOf(incoming)) }), outgoing)
        })
        const request = { method: "POST", headers: { ...bearer, "idempotency-key": "k" }, body: { text: "Añb" } }
        const first = yield* Effect.promise(() => send(`${url}/api/v1/grammar/check`, request))
        expect([first.status, first.json]).toMatchObject([200, { request: { input: { text: "Añb" } } }])
        const again = yield* Effect.promise(() => send(`${url}/api/v1/grammar/check`, request))
        expect([again.body, again.headers["idempotent-replayed"]]).toEqual([first.body, "true"])
      })
    )
  }

  testing(
    "that read the body and kept nothing, the request has no body",
    Effect.gen(function* () {
      const { handler, account } = yield* host()
      const { bearer } = yield* account()
      const listener = toNodeHandler(handler.handle)
      const url = yield* serve(async (incoming, outgoing) => {
        await bytesOf(incoming)
        listener(incoming, outgoing)
      })
      const { status, json } = yield* Effect.promise(() =>
        send(`${url}/api/v1/grammar/check`, { method: "POST", headers: bearer, body: { text: "a" } })
      )
      expect([status, json]).toMatchObject([422, { error: { message: "text: is required" } }])
    })
  )
})

describe("mounted", () => {
  testing(
    "at a cut path, uses the original path and the address that a proxy reports",
    Effect.gen(function* () {
      const { handler, account } = yield* host({ authFailures: 1 })
      const { bearer } = yield* account()
      const listener = toNodeHandler(handler.handle, { address: ({ headers }) => String(headers["x-client"]) })
      const url = yield* serve((incoming, outgoing) => {
        const originalUrl = incoming.url
        incoming.url = "/cut"
        listener(Object.assign(incoming, { originalUrl }), outgoing)
      })
      const ask = (headers: Record<string, string>) =>
        Effect.promise(async () => (await send(`${url}/api/v1/bin/457173`, { headers })).status)
      expect(yield* ask(bearer)).toBe(200)
      expect(yield* ask({ "x-client": "192.0.2.1" })).toBe(401)
      expect(yield* ask({ "x-client": "192.0.2.1" })).toBe(429)
      expect(yield* ask({ "x-client": "192.0.2.2" })).toBe(401)
    })
  )
})

describe("a client that disconnects in the turn in which its request arrived", () => {
  testing(
    "is not charged, and its call does not begin",
    Effect.gen(function* () {
      const { balance, handler, account } = yield* host()
      const { accountId, bearer } = yield* account()
      const { direct } = handler.handle
      let calls = 0
      const counted: typeof direct = (...of) => {
        calls++
        return direct?.(...of)
      }
      const listener = toNodeHandler(Object.assign(handler.handle, { direct: counted }))
      let leaves = true
      const url = yield* serve((incoming, outgoing) => {
        listener(incoming, outgoing)
        if (leaves) incoming.socket.destroy()
      })
      const ask = () => Effect.promise(async () => send(`${url}/api/v1/bin/457173`, { headers: bearer }).catch(() => undefined))
      const before = yield* balance(accountId)
      expect(yield* ask()).toBeUndefined()
      leaves = false
      expect(yield* ask()).toMatchObject({ status: 200, headers: { "x-credits-charged": "0.5" } })
      expect(calls).toBe(1)
      expect((yield* balance(accountId)).available).toBe(before.available - 500)
    })
  )
})

describe("a handler that a host wrapped", () => {
  testing(
    "gets web requests, refuses a body that is too large, and serves the next request",
    Effect.gen(function* () {
      const { handler, account } = yield* host()
      const { bearer } = yield* account()
      const seen: Array<string> = []
      const listener = toNodeHandler((request, peer) => {
        seen.push(`${request.method} ${new URL(request.url).pathname} ${peer?.address}`)
        return handler.handle(request, peer)
      })
      const url = yield* serve(listener)
      const body = (text: string) => new Blob([JSON.stringify({ text })]).stream()
      const check = (text: string) =>
        Effect.promise(() => fetch(`${url}/api/v1/grammar/check`, { method: "POST", headers: bearer, body: body(text), duplex: "half" }))
      expect((yield* check("x".repeat(1_500_000))).status).toBe(413)
      const checked = yield* check("Oh")
      expect(yield* Effect.promise(() => checked.json())).toMatchObject({ data: { matches: [{ offset: 0 }] } })
      // No web request can be a TRACE
      expect((yield* Effect.promise(() => send(`${url}/health`, { method: "TRACE" }))).status).toBe(400)
      expect(seen).toEqual(["POST /api/v1/grammar/check 127.0.0.1", "POST /api/v1/grammar/check 127.0.0.1"])
    })
  )
})

describe("an answer", () => {
  testing(
    "is streamed part by part, and a failure differs from its end",
    Effect.gen(function* () {
      const parts = ["one ", "two ", "three"]
      const url = yield* serve(
        toNodeHandler(async ({ url }) => {
          let sent = 0
          const isBroken = url.endsWith("/broken")
          const body = new ReadableStream<Uint8Array>({
            pull: (controller) => {
              const part = parts[sent++]
              if (part !== undefined) return controller.enqueue(Buffer.from(part))
              if (isBroken) controller.error(new Error("broken"))
              else controller.close()
            }
          })
          return new Response(body, {
            status: 206,
            headers: [
              ["set-cookie", "a=1"],
              ["set-cookie", "b=2"]
            ]
          })
        })
      )
      const whole = yield* Effect.promise(() => send(url))
      expect([whole.status, whole.body, whole.headers["set-cookie"]]).toEqual([206, "one two three", ["a=1", "b=2"]])
      expect(yield* Effect.promise(() => send(`${url}/broken`).catch((error: NodeJS.ErrnoException) => error.code))).toBe("ECONNRESET")
    })
  )

  testing(
    "stops being produced when the client stops reading",
    Effect.gen(function* () {
      const seen = { pulled: 0, cancelled: false, aborted: false }
      const url = yield* serve(
        toNodeHandler(async ({ signal }) => {
          signal.addEventListener("abort", () => {
            seen.aborted = true
          })
          return new Response(
            new ReadableStream<Uint8Array>({
              pull: (controller) => {
                seen.pulled++
                controller.enqueue(new Uint8Array(64 * 1024))
              },
              cancel: () => {
                seen.cancelled = true
              }
            })
          )
        })
      )
      const abort = new AbortController()
      const reading = fetch(url, { signal: abort.signal })
      const response = yield* Effect.promise(() => reading)
      yield* Effect.promise(async () => (await response.body?.getReader().read())?.value)
      abort.abort()
      yield* eventually(
        Effect.sync(() => ({ ...seen })),
        ({ cancelled, aborted }) => cancelled && aborted
      )
      // A few megabytes of buffers, not all there is
      expect(seen.pulled).toBeLessThan(1_000)
    })
  )

  testing(
    "to HEAD has headers and no body",
    Effect.gen(function* () {
      const { call } = yield* host()
      const [get, head] = [yield* call("/ready"), yield* call("/ready", { method: "HEAD" })]
      expect([head.status, head.body, head.headers["content-length"]]).toEqual([200, "", get.headers["content-length"]])
    })
  )
})
