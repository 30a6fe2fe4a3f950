/** `MailRelay` by SMTP, with the relay of the host. Each message has a connection of its own. */
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

const reasonOf = ({ code, responseCode }: Trouble): string =>
  [code, responseCode].filter((part) => typeof part === "string" || typeof part === "number").join(" ") || "unknown"

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
    Effect.mapError((trouble: Trouble) => new MailNotSent({ reason: reasonOf(trouble) })),
    Effect.asVoid
  )
}

export const layer = ({ from, timeLimit = "15 seconds", url }: Options): Layer.Layer<MailRelay> => {
  const limit = Duration.toMillis(timeLimit)

  const deliver = ({ subject, text, to }: OutgoingMail) =>
    Effect.acquireUseRelease(
      Effect.sync(() => transportTo(url, limit)),
      (transport) =>
        Effect.tryPromise({
          // As an object, the address is not parsed as a list of addresses
          try: () =>
            transport.sendMail({ from, to: { name: "", address: to }, subject, text, headers: { "Auto-Submitted": "auto-generated" } }),
          catch: (cause) => cause as Trouble
        }),
      (transport) => Effect.sync(() => transport.close())
    )

  return Layer.succeed(MailRelay, {
    configured: Effect.void,
    send: Effect.fn("SmtpRelay.send")(function* (mail) {
      yield* deliver(mail).pipe(
        Effect.timeoutOrElse({ duration: limit, orElse: () => Effect.fail({ code: "ETIMEDOUT" }) }),
        Effect.catch((trouble: Trouble) =>
          isRefusedForGood(trouble)
            ? Effect.logWarning("The mail relay refused an address for good", { status: trouble.responseCode })
            : Effect.fail(new MailNotSent({ reason: reasonOf(trouble) }))
        )
      )
    })
  })
}
