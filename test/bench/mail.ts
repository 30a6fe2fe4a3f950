/**
 * Mails of 5 kB a second: by `smtp-server` alone, which forgets them; by the SMTP server with a receiver that forgets them; and into
 * inboxes on disk, where each is durable before it is acknowledged.
 */
import type { AddressInfo } from "node:net"
import { Worker } from "node:worker_threads"
import { MailReceiver } from "@millrace/core"
import { MailVerdicts, SmtpServer } from "@millrace/upstreams/mail"
import { Effect, Layer } from "effect"
import { SMTPServer } from "smtp-server"
import * as Inboxes from "./inboxes.ts"
import type { Load } from "./mail-load.ts"
import * as Sender from "./mail-sender.ts"
import { type Contender, compare, withFolder } from "./measure.ts"

const CONNECTIONS = 64
const DOMAIN = "mail.example.com"
const ANYONE = [`anna@${DOMAIN}`]

/** New inboxes for each second of a load. Each takes a hundred messages, so that there is room for 10,000 a second. */
const INBOXES_A_SECOND = 100

const sending = (message: string, port: number, recipients: () => Promise<ReadonlyArray<string>>): Contender => {
  const send = (workerData: Load) =>
    new Promise<number>((resolve, reject) => {
      const worker = new Worker(new URL("./mail-load.ts", import.meta.url), { workerData })
      worker.once("message", resolve)
      worker.once("error", reject)
    })
  return async (millis) => send({ port, connections: CONNECTIONS, millis, sender: Sender.SENDER, recipients: await recipients(), message })
}

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

const forgetful = Layer.succeed(MailReceiver, { accepts: () => Effect.void, receive: () => Effect.void })

// The load comes from one address, but stands for many senders
const unlimited = { connectionsOfClient: CONNECTIONS, connectionsPerMinute: 1e9, recipientsPerMinute: 1e9 }
const served = SmtpServer.listen({ host: "127.0.0.1", port: 0, domain: DOMAIN, limits: unlimited })
const checking = Layer.provide(MailVerdicts.layer(), Sender.dns)

/** The servers, by name. Each round of the last two has new inboxes, made before its clock runs. */
const contenders = Effect.fnUntraced(function* (folder: string) {
  const message = yield* Effect.promise(Sender.message)
  const alone = (yield* bare).server.address() as AddressInfo
  const verdicts = yield* Layer.build(checking)
  const inboxes = yield* Layer.build(Inboxes.layer(folder, DOMAIN))
  const plain = yield* Effect.provide(served, [forgetful, MailVerdicts.layerNone])
  const checked = yield* served.pipe(Effect.provide(verdicts), Effect.provide(forgetful))
  const kept = yield* served.pipe(Effect.provide(MailVerdicts.layerNone), Effect.provide(inboxes))
  const keptChecked = yield* served.pipe(Effect.provide(verdicts), Effect.provide(inboxes))
  const anyone = ({ port }: { readonly port: number }) => sending(message, port, async () => ANYONE)
  const toInboxes =
    ({ port }: { readonly port: number }): Contender =>
    (millis) =>
      sending(message, port, () =>
        Effect.runPromise(Effect.provide(Inboxes.open(Math.ceil((millis * INBOXES_A_SECOND) / 1_000)), inboxes))
      )(millis)
  return {
    "smtp-server alone": anyone(alone),
    "no inboxes, no verdicts": anyone(plain),
    "no inboxes, verdicts": anyone(checked),
    "inboxes on disk, no verdicts": toInboxes(kept),
    "inboxes on disk, verdicts": toInboxes(keptChecked)
  } satisfies Record<string, Contender>
})

export const run = (options: { readonly rounds: number; readonly millis: number }) =>
  withFolder((folder) =>
    contenders(folder).pipe(
      Effect.flatMap((all) => Effect.promise(() => compare(all, options))),
      Effect.scoped,
      Effect.runPromise
    )
  )
