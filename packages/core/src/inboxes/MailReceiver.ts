/** Takes messages for inboxes. SMTP servers ask it at RCPT TO, and give it what came after DATA. */
import { Context, type Effect, Schema } from "effect"

/** No inbox has this address now: it was never given, was rotated away, deleted, or has expired. */
export class UnknownAddress extends Schema.TaggedError<UnknownAddress>()("UnknownAddress", {}) {
  override get message(): string {
    return "No inbox has this address"
  }
}

/** The inbox has as many messages, or bytes, as it may have. */
export class InboxFull extends Schema.TaggedError<InboxFull>()("InboxFull", {}) {
  override get message(): string {
    return "The inbox is full"
  }
}

/** A store does not answer now. The message was not taken, or it is in doubt: the sender tries again, under the same ids. */
export class ReceiverUnavailable extends Schema.TaggedError<ReceiverUnavailable>()("ReceiverUnavailable", { reason: Schema.String }) {
  override get message(): string {
    return `Messages cannot be taken now: ${this.reason}`
  }
}

/** Results such as `pass`, `fail` and `none`, of RFC 8601. Null where it was not checked. */
export interface Authentication {
  readonly spf: string | null
  readonly dkim: string | null
  readonly dmarc: string | null
  readonly arc: string | null
}

/** A message as it came. */
export interface Incoming {
  /** Unique to the transaction, the same for all its recipients. */
  readonly queueId: string
  /** Of MAIL FROM; null for a bounce. */
  readonly sender: string | null
  /** Where it came from, for the log of the server only. */
  readonly remoteAddress: string
  readonly raw: Uint8Array
  readonly authentication: Authentication
}

export class MailReceiver extends Context.Service<
  MailReceiver,
  {
    /** Whether a message of so many bytes would be taken now. */
    readonly accepts: (address: string, bytes: number) => Effect.Effect<void, UnknownAddress | InboxFull | ReceiverUnavailable>
    /** Takes a message for one address. It is durable when this succeeds. Taking it again under its queue id changes nothing. */
    readonly receive: (address: string, message: Incoming) => Effect.Effect<void, UnknownAddress | InboxFull | ReceiverUnavailable>
  }
>()("@millrace/core/inboxes/MailReceiver") {}
