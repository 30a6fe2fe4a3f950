/** Reads messages as they came over SMTP: a port. Whoever wrote them means no good, so a message that cannot be read is a case, not an error. */
import { Context, Effect, Layer } from "effect"

export interface Mailbox {
  readonly name: string | null
  readonly address: string
}

/** A part of a message that is a file. */
export interface Attachment {
  readonly name: string | null
  /** In lower case, without parameters. */
  readonly contentType: string
  /** Bytes. */
  readonly size: number
}

/** What a list of messages shows of each. */
export interface MailSummary {
  readonly from: Mailbox | null
  readonly subject: string | null
  readonly hasAttachments: boolean
}

export interface MailContent extends MailSummary {
  readonly to: ReadonlyArray<Mailbox>
  readonly cc: ReadonlyArray<Mailbox>
  readonly replyTo: ReadonlyArray<Mailbox>
  /** Milliseconds since 1970, as the message says; null where it says none. */
  readonly date: number | null
  readonly messageId: string | null
  readonly text: string | null
  /** Sanitised: no scripts, no styles that load, no remote content. */
  readonly html: string | null
  /** Some headers by lower-case name, each value on one line. */
  readonly headers: Readonly<Record<string, ReadonlyArray<string>>>
  readonly attachments: ReadonlyArray<Attachment>
}

/** A message that broke a bound of the reader: of memory, time, parts, headers or nesting. It is kept raw. */
export interface Unreadable {
  readonly reason: string
}

export const isUnreadable = (read: object): read is Unreadable => "reason" in read

export class MailReader extends Context.Service<
  MailReader,
  {
    readonly read: (raw: Uint8Array) => Effect.Effect<MailContent | Unreadable>
    /** The bytes of an attachment, by its place in `attachments`; undefined where there is none. */
    readonly attachment: (raw: Uint8Array, place: number) => Effect.Effect<Uint8Array | undefined>
  }
>()("@millrace/core/inboxes/MailReader") {
  /** Of a host that receives no mail: it reads none. */
  static readonly none: Layer.Layer<MailReader> = Layer.succeed(MailReader, {
    read: () => Effect.succeed({ reason: "This host has no reader of mail" }),
    attachment: () => Effect.undefined
  })
}
