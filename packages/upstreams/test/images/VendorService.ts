/** A vendor's server on loopback, of which a test says how it answers: it takes files, too, and keeps what it was asked. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Effect, Queue } from "effect"

export interface Asked {
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage["headers"]
  readonly body: Buffer
}

export type Answer = (response: ServerResponse, asked: Asked) => unknown

export const json =
  (body: unknown, status = 200): Answer =>
  (response) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))

export const bytes =
  (body: Uint8Array, type = "image/png"): Answer =>
  (response) =>
    response.writeHead(200, { "content-type": type }).end(body)

/** The JSON of a request. */
export const jsonOf = ({ body }: Asked): Record<string, unknown> => JSON.parse(body.toString())

/** The fields of a form. */
export const formOf = ({ body, headers }: Asked): Promise<FormData> =>
  new Response(new Uint8Array(body), { headers: { "content-type": headers["content-type"] ?? "" } }).formData()

/** A body of so many bytes, of which no more are made than are taken. */
export const flood =
  (size: number): Answer =>
  (response) => {
    response.writeHead(200, { "content-type": "application/json" })
    const piece = Buffer.alloc(64 * 1024, " ")
    let left = size
    const more = () => {
      while (left > 0 && !response.destroyed) {
        left -= piece.length
        if (!response.write(piece)) return
      }
      response.end()
    }
    response.on("drain", more)
    more()
  }

/** Serves while the scope is open. `arrivals` gives each request in turn, `left` those that the client left before their answer's end. */
export const serve = (answer: Answer) =>
  Effect.gen(function* () {
    const requests: Array<Asked> = []
    const arrived = yield* Queue.unbounded<Asked>()
    const abandoned = yield* Queue.unbounded<string>()
    const server = yield* Effect.acquireRelease(
      Effect.callback<ReturnType<typeof createServer>>((resume) => {
        const server = createServer(async (request, response) => {
          const { pathname: path, searchParams: query } = new URL(request.url ?? "", "http://localhost")
          response.once("close", () => {
            if (!response.writableFinished) Queue.offerUnsafe(abandoned, path)
          })
          const pieces: Array<Buffer> = []
          for await (const piece of request) pieces.push(piece)
          const asked = { method: request.method ?? "", path, query, headers: request.headers, body: Buffer.concat(pieces) }
          requests.push(asked)
          Queue.offerUnsafe(arrived, asked)
          answer(response, asked)
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
    return { url: new URL(`http://127.0.0.1:${port}`), requests, arrivals: Queue.take(arrived), left: Queue.take(abandoned) }
  })

/** Answers that are none, whatever is asked; `good` is one that would do. */
export const faults = (good: unknown): ReadonlyArray<readonly [string, Answer]> => {
  const text = JSON.stringify(good)
  return [
    ["401", json({ error: { code: "invalid_api_key", message: "no" } }, 401)],
    ["404", json({ detail: "Not Found" }, 404)],
    ["422", json({ detail: [{ loc: ["body", "prompt"], msg: "field required", type: "value_error.missing" }] }, 422)],
    ["429", (response) => response.writeHead(429, { "retry-after": "30" }).end('{"error":{"code":"rate_limit_exceeded"}}')],
    ["500", json({ error: "OutOfMemoryError", detail: "", body: "", errors: "CUDA out of memory" }, 500)],
    ["503 in HTML", (response) => response.writeHead(503, { "content-type": "text/html" }).end("<h1>Service Unavailable</h1>")],
    ["a redirect", (response) => response.writeHead(302, { location: "/elsewhere" }).end()],
    ["HTML", (response) => response.writeHead(200, { "content-type": "text/html" }).end("<html></html>")],
    ["nothing", (response) => response.writeHead(200).end()],
    ["another shape", json([1, 2, 3])],
    ["half of it", (response) => response.writeHead(200).end(text.slice(0, text.length / 2))],
    [
      "less than it says",
      (response) => response.writeHead(200, { "content-length": text.length + 10 }).write(text, () => response.destroy())
    ],
    ["a closed connection", (response) => response.destroy()],
    ["200 MB", flood(200 * 1024 * 1024)]
  ]
}

/** Answers that do not come. */
export const hangs: ReadonlyArray<readonly [string, Answer]> = [
  ["before its headers", () => undefined],
  ["after its headers", (response) => response.writeHead(200).flushHeaders()],
  ["within its body", (response) => response.writeHead(200).write('{"')]
]
