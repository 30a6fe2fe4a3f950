/** A bucket of a real S3-compatible server on loopback, behind a door at which a test can see, hold up and answer what is asked. */
import { mkdtemp, readdir, rm } from "node:fs/promises"
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Queue } from "effect"
import S3rver from "s3rver"

/** Answers instead of the server, and says so. */
export type Door = (request: IncomingMessage, response: ServerResponse) => boolean

const BUCKET = "blobs"

export const open = (door: Door = () => false) =>
  Effect.gen(function* () {
    const directory = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "millrace-s3-"))),
      (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
    )
    const server = yield* Effect.acquireRelease(
      Effect.sync(() => new S3rver({ address: "127.0.0.1", port: 0, silent: true, directory, configureBuckets: [{ name: BUCKET }] })),
      (server) => Effect.promise(() => server.close())
    )
    const { port } = yield* Effect.promise(() => server.run())
    const asked: Array<string> = []
    const arrived = yield* Queue.unbounded<string>()
    const abandoned = yield* Queue.unbounded<string>()
    let current = door

    const proxy = yield* Effect.acquireRelease(
      Effect.callback<ReturnType<typeof createServer>>((resume) => {
        const proxy = createServer((request, response) => {
          const line = `${request.method} ${(request.url ?? "").replace(/uploadId=[0-9a-f]+/u, "uploadId")}`
          asked.push(line)
          Queue.offerUnsafe(arrived, line)
          response.once("close", () => {
            if (!response.writableFinished) Queue.offerUnsafe(abandoned, line)
          })
          if (current(request, response)) return void request.resume()
          const { method, url: path, headers } = request
          const onward = forward({ port, method, path, headers, agent: false }, (answer) => {
            response.writeHead(answer.statusCode ?? 500, answer.headers)
            answer.pipe(response)
          })
          onward.on("error", () => response.destroy())
          response.on("close", () => onward.destroy())
          request.pipe(onward)
        }).listen(0, "127.0.0.1", () => resume(Effect.succeed(proxy)))
      }),
      (proxy) =>
        Effect.callback<void>((resume) => {
          proxy.close(() => resume(Effect.void))
          proxy.closeAllConnections()
        })
    )
    const address = proxy.address()
    const url = new URL(`http://127.0.0.1:${typeof address === "object" ? address?.port : 0}/${BUCKET}`)
    return {
      url,
      asked,
      arrivals: Queue.take(arrived),
      left: Queue.take(abandoned),
      use: (next: Door) => {
        current = next
      },
      /** Where the server keeps its objects. */
      directory: join(directory, BUCKET),
      /** What there is, as the server keeps it. */
      objects: Effect.promise(async () =>
        (await readdir(join(directory, BUCKET)).catch(() => []))
          .filter((name) => name.endsWith("_object"))
          .map((name) => name.replace(/\._S3rver_object$/u, ""))
      )
    }
  })
