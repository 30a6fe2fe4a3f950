/** Mails of 5 kB a second into a receiver that only counts: through the SMTP server with and without verdicts, beside `smtp-server` alone. */
import type { AddressInfo } from "node:net"
import { Worker } from "node:worker_threads"
import { Dns, MailReceiver, NotFound } from "@millrace/core"
import { MailVerdicts, SmtpServer } from "@millrace/upstreams/mail"
import { Effect, Layer } from "effect"
import { SMTPServer } from "smtp-server"
import { compare } from "./measure.ts"

const CONNECTIONS = 32
const BYTES = 5_000
const DOMAIN = "mail.example.com"
const TO = `anna@${DOMAIN}`

const load = (port: number) => (millis: number) =>
  new Promise<number>((resolve, reject) => {
    const workerData = { port, connections: CONNECTIONS, millis, to: TO, bytes: BYTES }
    const worker = new Worker(new URL("./mail-load.ts", import.meta.url), { workerData })
    worker.once("message", resolve)
    worker.once("error", reject)
  })

/** Reads each message and answers. */
const bare = Effect.acquireRelease(
  Effect.callback<SMTPServer>((resume) => {
    const server = new SMTPServer({
      disabledCommands: ["AUTH", "STARTTLS"],
      disableReverseLookup: true,
      logger: false,
      onData: (stream, _, callback) => {
        const chunks: Array<Buffer> = []
        stream.on("data", (chunk: Buffer) => chunks.push(chunk))
        stream.once("end", () => callback(null, `OK queued ${Buffer.concat(chunks).length}`))
      }
    })
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) => Effect.callback<void>((resume) => server.close(() => resume(Effect.void)))
)

const receiver = Layer.succeed(MailReceiver, { accepts: () => Effect.void, receive: () => Effect.void })

/** Of senders that have set nothing up, at once: what name servers take is not the server's. */
const emptyDns = Layer.succeed(Dns.DnsResolver, { resolve: () => Effect.fail(new NotFound({ resource: "domain" })) })

const unlimited = { connectionsPerMinute: 1e9, recipientsPerMinute: 1e9 }

const ours = (verdicts: Layer.Layer<MailVerdicts.MailVerdicts>) =>
  SmtpServer.listen({ host: "127.0.0.1", port: 0, domain: DOMAIN, limits: unlimited }).pipe(Effect.provide([receiver, verdicts]))

export const run = (options: { readonly rounds: number; readonly millis: number }) =>
  Effect.gen(function* () {
    const alone = (yield* bare).server.address() as AddressInfo
    const plain = yield* ours(MailVerdicts.layerNone)
    const checked = yield* ours(Layer.provide(MailVerdicts.layer(), emptyDns))
    const contenders = {
      "smtp-server alone": load(alone.port),
      "without verdicts": load(plain.port),
      "with verdicts": load(checked.port)
    }
    return yield* Effect.promise(() => compare(contenders, options))
  }).pipe(Effect.scoped, Effect.runPromise)
