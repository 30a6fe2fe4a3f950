/** A real HTTP server on loopback, answering as a test tells it, and the ways in which servers fail. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { gzipSync } from "node:zlib"
import { Effect, Queue } from "effect"

export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  readonly body: string
}

export type Answer = (response: ServerResponse, request: Received) => void

export const json =
  (body: unknown, status = 200): Answer =>
  (response) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
  }

/** Serves while the scope is open. `received` gives each request in turn; `abandoned` each that the client left without its end. */
export const serve = (answer: Answer) =>
  Effect.gen(function* () {
    const received = yield* Queue.unbounded<Received>()
    const abandoned = yield* Queue.unbounded<void>()
    const server = yield* Effect.acquireRelease(
      Effect.callback<ReturnType<typeof createServer>>((resume) => {
        const server = createServer(async (request, response) => {
          response.once("close", () => {
            if (!response.writableFinished) Queue.offerUnsafe(abandoned, undefined)
          })
          let body = ""
          for await (const chunk of request.setEncoding("utf8")) body += chunk
          const seen = { method: request.method ?? "", path: request.url ?? "", headers: request.headers, body }
          Queue.offerUnsafe(received, seen)
          answer(response, seen)
        }).listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) =>
        Effect.callback<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
    )
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    return { url: new URL(`http://127.0.0.1:${port}`), received: Queue.take(received), abandoned: Queue.take(abandoned) }
  })

/** An address where nothing listens. */
export const nobody = Effect.map(Effect.scoped(serve(json({}))), ({ url }) => url)

/** Failures that show at once, whatever is asked; `good` is a body the client would take. */
export const faults = (good: unknown, byteLimit: number): ReadonlyArray<readonly [string, Answer]> => {
  const text = JSON.stringify(good)
  return [
    ["400", json({ error: "bad" }, 400)],
    ["403", json({}, 403)],
    ["429", json(good, 429)],
    ["500 with a good body", json(good, 500)],
    ["503 without a body", (response) => response.writeHead(503).end()],
    ["201 with a good body", json(good, 201)],
    ["a redirect", (response) => response.writeHead(302, { location: "/elsewhere" }).end()],
    ["no body", (response) => response.writeHead(200).end()],
    ["something that is not JSON", (response) => response.writeHead(200).end("<html></html>")],
    ["half a JSON", (response) => response.writeHead(200).end(text.slice(0, text.length / 2))],
    ["JSON of another shape", json([1, 2, 3])],
    ["null", json(null)],
    [
      "a body cut off before its length",
      (response) => response.writeHead(200, { "content-length": text.length + 10 }).write(text, () => response.destroy())
    ],
    ["a connection closed without a word", (response) => response.destroy()],
    ["a body too large", (response) => response.writeHead(200).end(text.padEnd(byteLimit + 1))],
    ["a body without an end", (response) => forever(response)],
    ["a body that is small until it is decompressed", zipped(text.padEnd(2 * byteLimit))]
  ]
}

const zipped =
  (text: string): Answer =>
  (response) =>
    response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" }).end(gzipSync(text))

const forever = (response: ServerResponse): void => {
  const piece = " ".repeat(4096)
  const more = () => {
    while (!response.destroyed && response.write(piece));
  }
  response.on("drain", more)
  more()
}

/** Failures that are none until the client's patience ends. */
export const hangs = (good: unknown): ReadonlyArray<readonly [string, Answer]> => [
  ["before its headers", () => undefined],
  ["after its headers", (response) => response.writeHead(200).flushHeaders()],
  ["within its body", (response) => response.writeHead(200).write(JSON.stringify(good).slice(0, -1))]
]
