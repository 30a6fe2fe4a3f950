/** Sends mail to people: a port. What sends it speaks SMTP with the host's relay, or prints it where there is none. */
import { Context, Effect, Layer, Schema } from "effect"

/** A message of plain text to one address. */
export interface OutgoingMail {
  /** An address in the normal form of `EmailAddress.normalise`, which cannot hold a further address or header. */
  readonly to: string
  /** One line. */
  readonly subject: string
  readonly text: string
  /** Between angle brackets, without them. A message that is sent again under its id can be told from another one. By default a new one. */
  readonly messageId?: string
  /** An address that ends mails such as this one: shown in a browser, and at once by a `POST` (RFC 8058). */
  readonly unsubscribe?: string
}

/**
 * Whether a message that was not taken may have arrived nevertheless. `refused`: it did not, and may be sent again. `unknown`: it was handed
 * over, and no answer came.
 */
export const MailOutcome = Schema.Literals(["refused", "unknown"])
export type MailOutcome = typeof MailOutcome.Type

/** The relay did not take the message now. The reason names neither the address nor a secret. */
export class MailNotSent extends Schema.TaggedError<MailNotSent>()("MailNotSent", {
  reason: Schema.String,
  /** `unknown` where nothing is said. */
  outcome: MailOutcome.pipe(Schema.withConstructorDefault(Effect.succeed("unknown"))),
  /** The relay refuses this address for good. An answer to somebody who gave the address must not depend on it. */
  isAddressRefused: Schema.Boolean.pipe(Schema.withConstructorDefault(Effect.succeed(false)))
}) {
  override get message(): string {
    return `The mail was not sent: ${this.reason}`
  }
}

/** This host sends no mail. */
export class MailNotConfigured extends Schema.TaggedError<MailNotConfigured>()("MailNotConfigured", {}) {
  override get message(): string {
    return "This host has no mail relay"
  }
}

export class MailRelay extends Context.Service<
  MailRelay,
  {
    /** Fails where the host sends no mail. */
    readonly configured: Effect.Effect<void, MailNotConfigured>
    /** Returns when the relay took the message. */
    readonly send: (mail: OutgoingMail) => Effect.Effect<void, MailNotSent | MailNotConfigured>
  }
>()("@millrace/core/accounts/MailRelay") {
  static readonly unconfigured: Layer.Layer<MailRelay> = Layer.sync(MailRelay, () => {
    const missing = Effect.fail(new MailNotConfigured())
    return { configured: missing, send: () => missing }
  })
}
