/** `MailRelay` by SMTP, with the relay of the host. Each message has a connection of its own. */
import { Readable } from "node:stream"
import { MailNotSent, MailRelay, type OutgoingMail } from "@millrace/core"
import { Duration, Effect, Layer } from "effect"
import { createTransport, type Transporter } from "nodemailer"

export interface Options {
  /**
   * `smtp://relay.example.com:587`, or `smtps:` for TLS from the first byte. With a name and a password, nothing is sent before TLS protects
   * them. The port is 587 or 465 by default.
   */
  readonly url: URL
  /** The sender's address. */
  readonly from: string
  /** For a connection and its answers: 15 seconds by default. */
  readonly timeLimit?: Duration.Input
}

const PORTS: Readonly<Record<string, number>> = { "smtp:": 587, "smtps:": 465 }

const transportTo = ({ hostname, password, port, protocol, username }: URL, timeLimit: number): Transporter =>
  createTransport({
    host: hostname.replace(/^\[(.+)\]$/u, "$1"),
    port: port === "" ? (PORTS[protocol] ?? 587) : Number(port),
    secure: protocol === "smtps:",
    ...(username === "" ? {} : { requireTLS: true, auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }),
    connectionTimeout: timeLimit,
    greetingTimeout: timeLimit,
    socketTimeout: timeLimit,
    // A message holds nothing but its text
    disableFileAccess: true,
    disableUrlAccess: true
  })

/** A failure of nodemailer. Its message quotes answers and addresses, and is shown nowhere. */
interface Trouble {
  /** Such as `ECONNECTION`, `EAUTH`, `EENVELOPE`. */
  readonly code?: unknown
  readonly command?: unknown
  readonly responseCode?: unknown
}

/** Whether the relay will never take mail to this address. */
const isRefusedForGood = ({ code, command, responseCode }: Trouble): boolean =>
  code === "EENVELOPE" && command === "RCPT TO" && typeof responseCode === "number" && responseCode >= 500

/** Whether the relay answered to the whole message that it does not take it. */
const isMessageRefused = ({ code, responseCode }: Trouble): boolean =>
  code === "EMESSAGE" && typeof responseCode === "number" && responseCode >= 400

const reasonOf = ({ code, responseCode }: Trouble): string =>
  [code, responseCode].filter((part) => typeof part === "string" || typeof part === "number").join(" ") || "unknown"

/** `hasBegun`: whether any of the message itself was handed over, so that the relay may have all of it. */
const notSent = (trouble: Trouble, hasBegun: boolean): MailNotSent =>
  new MailNotSent({
    reason: reasonOf(trouble),
    outcome: hasBegun && !isMessageRefused(trouble) ? "unknown" : "refused",
    isAddressRefused: isRefusedForGood(trouble)
  })

/**
 * Connects to a relay and signs in as a sender of mail does: EHLO, STARTTLS and AUTH, without a message. The failure names neither the name
 * nor the password.
 */
export const verify = ({ timeLimit = "15 seconds", url }: Omit<Options, "from">): Effect.Effect<void, MailNotSent> => {
  const limit = Duration.toMillis(timeLimit)
  return Effect.acquireUseRelease(
    Effect.sync(() => transportTo(url, limit)),
    (transport) => Effect.tryPromise({ try: () => transport.verify(), catch: (cause) => cause as Trouble }),
    (transport) => Effect.sync(() => transport.close())
  ).pipe(
    Effect.timeoutOrElse({ duration: limit, orElse: () => Effect.fail({ code: "ETIMEDOUT" }) }),
    Effect.mapError((trouble: Trouble) => notSent(trouble, false)),
    Effect.asVoid
  )
}

/** How far a message has come. */
class Handover {
  /** Whether any of it was handed over. The relay asks for it after it took sender and recipient. */
  hasBegun = false
  readonly #ending = new AbortController()

  get signal(): AbortSignal {
    return this.#ending.signal
  }

  /** Ends the connection. From then on nothing is handed over any more. Returns how far it has come. */
  end(): Handover {
    this.#ending.abort()
    return this
  }

  /** The message, of which nothing is read before the relay asks for it. */
  bytes(message: Readable): Readable {
    return Readable.from(this.#read(message))
  }

  async *#read(message: Readable): AsyncGenerator<Buffer> {
    this.signal.throwIfAborted()
    this.hasBegun = true
    yield* message as AsyncIterable<Buffer>
  }
}

const headersOf = ({ unsubscribe }: OutgoingMail) => ({
  "Auto-Submitted": "auto-generated",
  ...(unsubscribe === undefined
    ? {}
    : { "List-Unsubscribe": { prepared: true, value: `<${unsubscribe}>` }, "List-Unsubscribe-Post": "List-Unsubscribe=One-Click" })
})

export const layer = ({ from, timeLimit = "15 seconds", url }: Options): Layer.Layer<MailRelay> => {
  const limit = Duration.toMillis(timeLimit)

  const deliver = (mail: OutgoingMail, handover: Handover) => {
    const { messageId, subject, text, to } = mail
    const transport = transportTo(url, limit)
    transport.use("stream", ({ message }, done) => {
      const read = message.createReadStream.bind(message)
      message.createReadStream = (options) => handover.bytes(read(options)) as ReturnType<typeof read>
      done()
    })
    return transport.sendMail({
      from,
      // As an object, the address is not parsed as a list of addresses
      to: { name: "", address: to },
      subject,
      text,
      headers: headersOf(mail),
      signal: handover.signal,
      ...(messageId === undefined ? {} : { messageId: `<${messageId}>` })
    })
  }

  const send = Effect.fn("SmtpRelay.send")(function* (mail: OutgoingMail) {
    yield* Effect.acquireUseRelease(
      Effect.sync(() => new Handover()),
      (handover) =>
        Effect.tryPromise({ try: () => deliver(mail, handover), catch: (cause) => cause as Trouble }).pipe(
          Effect.timeoutOrElse({ duration: limit, orElse: () => Effect.fail({ code: "ETIMEDOUT" }) }),
          Effect.mapError((trouble: Trouble) => notSent(trouble, handover.end().hasBegun))
        ),
      (handover) => Effect.sync(() => handover.end())
    )
  })

  return Layer.succeed(MailRelay, { configured: Effect.void, send })
}
