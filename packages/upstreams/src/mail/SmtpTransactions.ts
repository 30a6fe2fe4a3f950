/** Mail transactions: RCPT TO asks the receiver, and DATA gives it the message for each recipient. */
import type { Readable } from "node:stream"
import { domainToASCII } from "node:url"
import { type InboxFull, type Incoming, MailReceiver, ReceiverUnavailable, type UnknownAddress } from "@millrace/core"
import { type Duration, Effect, Result } from "effect"
import { MailVerdicts } from "./MailVerdicts.ts"
import { digestOf, hasMessageId, QueueIds, Unacknowledged } from "./QueueIds.ts"
import { answerOf, NOT_HERE, NOT_NOW, type Refusal, refusalOf } from "./SmtpAnswers.ts"
import * as SmtpBody from "./SmtpBody.ts"

export interface TransactionOptions extends SmtpBody.BodyLimits {
  /** The domain of all inboxes. */
  readonly domain: string
  /** The time limit of each question to the receiver at RCPT TO. */
  readonly acceptLimit: Duration.Input
  /** The time limit of each delivery to the receiver. */
  readonly receiveLimit: Duration.Input
}

export interface Envelope {
  readonly sender: string | null
  readonly recipients: ReadonlyArray<string>
  readonly remoteAddress: string
  readonly helo: string
}

/** A message that each recipient's inbox has taken. */
export interface Taken {
  readonly queueId: string
  /** The sender does not know of it, because the connection ended: another attempt gets the same queue id. */
  readonly unanswered: () => void
}

export const make = Effect.fnUntraced(function* (options: TransactionOptions) {
  const receiver = yield* MailReceiver
  const verdicts = yield* MailVerdicts
  const queueIds = yield* QueueIds
  const unacknowledged = new Unacknowledged()
  const total: SmtpBody.Buffered = { bytes: 0 }
  const addressOf = addressesAt(options.domain)

  const deliver = Effect.fnUntraced(function* (raw: Buffer, { recipients, ...envelope }: Envelope): Effect.fn.Return<Taken, Refusal> {
    const digest = digestOf(envelope.sender, raw)
    const named = hasMessageId(raw)
    const queueId = named ? queueIds.of(digest) : (unacknowledged.take(digest) ?? queueIds.next())
    const unanswered = () => {
      if (!named) unacknowledged.remember(digest, queueId)
    }
    const authentication = yield* verdicts.check({ raw, ip: envelope.remoteAddress, helo: envelope.helo, sender: envelope.sender })
    const message: Incoming = { queueId, sender: envelope.sender, remoteAddress: envelope.remoteAddress, raw, authentication }
    const addresses = new Set(recipients.map((recipient) => addressOf(recipient) ?? recipient))
    const outcomes = yield* Effect.forEach(
      addresses,
      (address) => Effect.result(asked(receiver.receive(address, message), options.receiveLimit)),
      { concurrency: 8 }
    ).pipe(Effect.onInterrupt(() => Effect.sync(unanswered)))
    const refusal = answerOf(outcomes.map((outcome) => (Result.isFailure(outcome) ? outcome.failure : undefined)))
    if (refusal === undefined) return { queueId, unanswered }
    unanswered()
    return yield* Effect.fail(refusal)
  })

  return {
    /** Whether a recipient's inbox would take a message of so many bytes. */
    recipient: (address: string, bytes: number): Effect.Effect<void, Refusal> => {
      const own = addressOf(address)
      return own === undefined ? Effect.fail(NOT_HERE) : asked(receiver.accepts(own, bytes), options.acceptLimit)
    },
    /** Reads the message and gives it to the receiver. Succeeds once it is durable for each recipient. */
    message: (stream: Readable, envelope: Envelope): Effect.Effect<Taken, Refusal | "ended" | "endless"> =>
      Effect.flatMap(SmtpBody.read(stream, options, total), (body) => {
        if (Result.isFailure(body)) return Effect.fail(body.failure)
        const raw = body.success
        return Effect.ensuring(
          deliver(raw, envelope),
          Effect.sync(() => {
            total.bytes -= raw.length
          })
        )
      })
  }
})

/** A question to the receiver. A bug there loses no message: the sender tries again. */
const asked = (
  question: Effect.Effect<void, UnknownAddress | InboxFull | ReceiverUnavailable>,
  duration: Duration.Input
): Effect.Effect<void, Refusal> =>
  question.pipe(
    Effect.timeoutOrElse({ duration, orElse: () => Effect.fail(new ReceiverUnavailable({ reason: "no answer in time" })) }),
    Effect.tapError((error) => (error._tag === "ReceiverUnavailable" ? Effect.logWarning(error.message) : Effect.void)),
    Effect.mapError(refusalOf),
    Effect.catchDefect((defect) =>
      // Not the message of the defect, which may quote the mail
      Effect.andThen(
        Effect.logError(`A message could not be taken: ${defect instanceof Error ? defect.name : "a defect"}`),
        Effect.fail(NOT_NOW)
      )
    )
  )

/** An address in lower case, as the receiver knows it; undefined if its domain is another. */
const addressesAt = (domain: string) => {
  const own = domainToASCII(domain).toLowerCase()
  return (address: string): string | undefined => {
    const at = address.lastIndexOf("@")
    return domainToASCII(address.slice(at + 1)).toLowerCase() === own ? `${address.slice(0, at).toLowerCase()}@${own}` : undefined
  }
}
