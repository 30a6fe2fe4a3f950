/** Sends mail to people: a port. What sends it speaks SMTP with the host's relay, or prints it where there is none. */
import { Context, Effect, Layer, Schema } from "effect"

/** A message of plain text to one address. */
export interface OutgoingMail {
  /** An address in the normal form of `EmailAddress.normalise`, which cannot hold a further address or header. */
  readonly to: string
  /** One line. */
  readonly subject: string
  readonly text: string
}

/** The relay did not take the message now. The reason names neither the address nor a secret. */
export class MailNotSent extends Schema.TaggedError<MailNotSent>()("MailNotSent", { reason: Schema.String }) {
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
    /**
     * Returns when the relay took the message. An address that the relay refuses for good is logged and counts as taken: the answer to a
     * caller must not depend on the address.
     */
    readonly send: (mail: OutgoingMail) => Effect.Effect<void, MailNotSent | MailNotConfigured>
  }
>()("@millrace/core/accounts/MailRelay") {
  static readonly unconfigured: Layer.Layer<MailRelay> = Layer.sync(MailRelay, () => {
    const missing = Effect.fail(new MailNotConfigured())
    return { configured: missing, send: () => missing }
  })
}
