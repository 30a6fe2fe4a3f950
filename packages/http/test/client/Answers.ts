/** A server of a test's own: a gateway perhaps, or one that is newer or older than this. */
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo, Server } from "node:net"
import { Effect, type Scope } from "effect"

/** Listens for as long as the scope is open. */
export const listening = (server: Server, close: () => void): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      server.listen(0, "127.0.0.1")
      await once(server, "listening")
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    }),
    () =>
      Effect.promise(async () => {
        close()
        await new Promise((resolve) => server.close(resolve))
      })
  )

/** Status, headers, body. */
export type Answer = readonly [status: number, headers: Readonly<Record<string, string>>, body: string]

/** Gives its answers one after the other, and remembers what it was asked. */
export const answering = Effect.fnUntraced(function* (answers: ReadonlyArray<Answer>) {
  const asked: Array<{ readonly key: unknown; readonly body: string }> = []
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Array<Buffer> = []
    for await (const chunk of incoming) chunks.push(chunk)
    const [status, headers, body] = answers[asked.length] ?? [500, {}, "no more"]
    asked.push({ key: incoming.headers["idempotency-key"], body: Buffer.concat(chunks).toString() })
    outgoing.writeHead(status, headers).end(body)
  })
  const baseUrl = yield* listening(server, () => server.closeAllConnections())
  return { baseUrl, asked }
})

export const error = (code: string): string => JSON.stringify({ error: { code, message: "It says so.", request_id: "req" } })

/** Of `grammar.check`. */
export const success = JSON.stringify({ status: "success", data: { matches: [], more: 1 }, added: true, request: { id: "req" } })
