/**
 * A plain `node:http` server that bills its own work: Millrace as a library, without its HTTP package. With promises: `embed-promises.ts`.
 *
 *   npm run embed -w examples
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { Charge, Credits, KeyRing, MasterKey, Millrace, newRequestId, Operation, Registration } from "@millrace/core"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Effect, Exit, Layer, ManagedRuntime, Redacted, Schema } from "effect"

/** This host's operation: returns a text in capitals. */
const shout = Operation.make("text.shout", {
  summary: "Shout a text",
  price: 2,
  route: { method: "POST", path: "/shout", body: { text: Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(1_000)) } },
  success: Schema.Struct({ text: Schema.String }),
  run: ({ text }) => Effect.succeed({ data: { text: text.toUpperCase() } })
})

/** Serves `POST /shout` on a free local port until `stop`. Stores its data in `folder`. */
export const start = async (folder: string, masterKey: string) => {
  const runtime = ManagedRuntime.make(
    Millrace.layer({ operations: [shout] }).pipe(
      Layer.provideMerge(
        Layer.mergeAll(
          SqliteEventStore.layer({ filename: join(folder, "log.db") }),
          SqliteStateStore.layer({ filename: join(folder, "state.db") }),
          MasterKey.layer(masterKey)
        )
      )
    )
  )
  const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct(shout.route.body)))

  const server = createServer(async (request, response) => {
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(chunk)
    const call = Effect.gen(function* () {
      const keys = yield* KeyRing
      const charges = yield* Charge.Charge
      const { accountId } = yield* keys.authenticate(request.headers.authorization?.replace(/^Bearer /u, ""))
      const input = yield* Effect.try({
        try: () => decode(Buffer.concat(chunks).toString("utf8")),
        catch: () => ({ _tag: "BadInput" as const })
      })
      return yield* charges.run(shout, input, { accountId, requestId: yield* newRequestId })
    })
    const exit = await runtime.runPromiseExit(Effect.result(call))
    if (Exit.isFailure(exit)) return void response.writeHead(500).end()
    const result = exit.value
    if (result._tag === "Failure") {
      const status = { Unauthorized: 401, InsufficientCredits: 402, BadInput: 422 }[result.failure._tag as string] ?? 503
      return void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ error: result.failure._tag }))
    }
    const { data, billed } = result.success
    response
      .writeHead(200, { "content-type": "application/json", "x-balance": String(billed && Credits.toDecimal(billed.balance)) })
      .end(data)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/shout`,
    /** Opens an account with its sign-up credits, and issues a key for it. */
    signUp: (email: string) =>
      runtime.runPromise(
        Effect.gen(function* () {
          const registration = yield* Registration
          const keys = yield* KeyRing
          const account = yield* registration.open(email)
          yield* registration.verify(account)
          const { key } = yield* keys.issue(account)
          return { account, key: Redacted.value(key) }
        })
      ),
    stop: async () => {
      await new Promise((resolve) => server.close(resolve))
      await runtime.dispose()
    }
  }
}

if (import.meta.main) {
  const { mkdtempSync } = await import("node:fs")
  const { tmpdir } = await import("node:os")
  const { randomBytes } = await import("node:crypto")
  const host = await start(mkdtempSync(join(tmpdir(), "millrace-embed-")), randomBytes(32).toString("hex"))
  const { key } = await host.signUp("ada@example.com")
  console.log(`curl -i ${host.url} -H 'Authorization: Bearer ${key}' -d '{"text":"hello"}'`)
}
