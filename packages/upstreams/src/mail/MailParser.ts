/** `MailReader` in worker threads of this process, with bounds on memory and time. The first message starts a thread, in about a tenth of a second. */
import { type MailContent, MailReader, type Unreadable, type UpstreamUnavailable } from "@millrace/core"
import { type Duration, Effect, Layer, Schema } from "effect"
import * as Batches from "../shared/Batches.ts"
import * as WorkerPool from "../shared/WorkerPool.ts"
import type { MailReply, MailRequest } from "./MailWorker.ts"

export interface Options {
  /** Threads; 1 by default. */
  readonly threads?: number
  /** The time limit of a message; 10 seconds by default. */
  readonly timeLimit?: Duration.Input
  /** The most memory that reading a message may take for objects, in MiB; 256 by default. Bytes of attachments do not count. */
  readonly memory?: number
  /** A thread that is idle for this long is ended; 1 minute by default. */
  readonly idleLimit?: Duration.Input
}

/** The worker's file has the extension of this one: `.ts` in the repository, `.js` in a published package. */
const SCRIPT = new URL(import.meta.url.endsWith(".ts") ? "./MailWorker.ts" : "./MailWorker.js", import.meta.url)

const Mailbox = Schema.Struct({ name: Schema.NullOr(Schema.String), address: Schema.String })

const Content: Schema.Decoder<MailContent> = Schema.Struct({
  from: Schema.NullOr(Mailbox),
  subject: Schema.NullOr(Schema.String),
  hasAttachments: Schema.Boolean,
  to: Schema.Array(Mailbox),
  cc: Schema.Array(Mailbox),
  replyTo: Schema.Array(Mailbox),
  date: Schema.NullOr(Schema.Number),
  messageId: Schema.NullOr(Schema.String),
  text: Schema.NullOr(Schema.String),
  html: Schema.NullOr(Schema.String),
  headers: Schema.Record(Schema.String, Schema.Array(Schema.String)),
  attachments: Schema.Array(Schema.Struct({ name: Schema.NullOr(Schema.String), contentType: Schema.String, size: Schema.Int }))
})

const Reply: Schema.Decoder<MailReply> = Schema.Union([
  Schema.Struct({ read: Schema.Union([Content, Schema.Struct({ reason: Schema.String })]) }),
  Schema.Struct({ bytes: Schema.NullOr(Schema.Uint8Array) })
])

/** Messages that a thread gets at once. Bytes of the largest that shares its turn with others. */
const AT_ONCE = 32
const SMALL = 64 * 1024

/**
 * Reads one message after another in each thread. A message that breaks a bound is unreadable; one that would break the memory or the time
 * ends its thread, which is replaced, and those that shared its turn are read again, each by itself. A thread that cannot start is a defect.
 */
export const layer = ({
  threads = 1,
  timeLimit = "10 seconds",
  memory = 256,
  idleLimit = "1 minute"
}: Options = {}): Layer.Layer<MailReader> =>
  Layer.effect(
    MailReader,
    Effect.gen(function* () {
      const workers = yield* WorkerPool.make<ReadonlyArray<MailRequest>, ReadonlyArray<MailReply>>({
        upstream: "mail reader",
        script: SCRIPT,
        reply: Schema.Array(Reply),
        threads,
        timeLimit,
        idleLimit,
        resourceLimits: { maxOldGenerationSizeMb: memory, maxYoungGenerationSizeMb: 32 },
        // Whoever asks has taken the message already, so it waits for its turn
        waitLimit: "Infinity",
        accountLimit: Number.POSITIVE_INFINITY,
        queueLimit: Number.POSITIVE_INFINITY
      })
      const send = yield* Batches.make({
        send: (requests: ReadonlyArray<MailRequest>) => Effect.map(workers.ask("mail", [requests]), ([replies = []]) => replies),
        lanes: threads,
        count: AT_ONCE,
        isLarge: ({ raw }) => raw.length > SMALL
      })
      const ask = (request: MailRequest) =>
        send(request).pipe(
          Effect.catch((error: UpstreamUnavailable) => (error.isolated ? Effect.succeed(broken(error)) : Effect.die(error)))
        )
      return {
        read: Effect.fn("MailParser.read")(function* (raw) {
          const reply = yield* ask({ raw })
          return "read" in reply ? reply.read : yield* Effect.die("the mail reader gave no content")
        }),
        attachment: Effect.fn("MailParser.attachment")(function* (raw, attachment) {
          const reply = yield* ask({ raw, attachment })
          return "bytes" in reply ? (reply.bytes ?? undefined) : undefined
        })
      }
    })
  )

const broken = ({ reason }: UpstreamUnavailable): { readonly read: Unreadable } => ({
  read: { reason: `Reading it was stopped: ${reason}` }
})
