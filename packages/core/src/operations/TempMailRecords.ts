/** What callers see of inboxes and their messages: the shapes, and how they are filled. */
import { Schema } from "effect"
import type { Listed, Shown } from "../inboxes/Inboxes.ts"
import { Authentication, Mailbox } from "../inboxes/Letters.ts"
import { isUnreadable, type MailContent, type Unreadable } from "../inboxes/MailReader.ts"
import { toIso } from "../Timestamp.ts"
import * as ApiPath from "./ApiPath.ts"

export const InboxData = Schema.Struct({
  inbox_id: Schema.String,
  address: Schema.String,
  label: Schema.NullOr(Schema.String),
  /** ISO 8601, UTC. */
  created_at: Schema.String,
  /** From this instant on the inbox is gone. ISO 8601, UTC. */
  expires_at: Schema.String,
  message_count: Schema.Int
})

export const summary = {
  message_id: Schema.String,
  /** As the message says, which anybody can write. Null where it says none, or cannot be read. */
  from: Schema.NullOr(Mailbox),
  subject: Schema.NullOr(Schema.String),
  /** ISO 8601, UTC. */
  received_at: Schema.String,
  /** Bytes, as it came. */
  size: Schema.Int,
  has_attachments: Schema.Boolean
}

const AttachmentData = Schema.Struct({
  name: Schema.NullOr(Schema.String),
  content_type: Schema.String,
  /** Bytes. */
  size: Schema.Int,
  /** The path of its bytes. */
  url: ApiPath.mark(Schema.String)
})

export const MessageData = Schema.Struct({
  ...summary,
  to: Schema.Array(Mailbox),
  cc: Schema.Array(Mailbox),
  reply_to: Schema.Array(Mailbox),
  text: Schema.NullOr(Schema.String),
  /** Sanitised: without scripts and without remote content. */
  html: Schema.NullOr(Schema.String),
  /** Some headers, by their names in lower case. */
  headers: Schema.Record(Schema.String, Schema.Array(Schema.String)),
  /** Results such as `pass`, `fail` and `none`; null for what was not checked. */
  authentication: Authentication,
  attachments: Schema.Array(AttachmentData),
  /** Why the message cannot be shown; null if it can. Its bytes are at `raw_url` in any case. */
  unreadable: Schema.NullOr(Schema.String),
  /** The path of the message as it came. */
  raw_url: ApiPath.mark(Schema.String)
})

export const inboxData = ({ address, createdAt, expiresAt, inboxId, label, messages }: Shown): typeof InboxData.Type => ({
  inbox_id: inboxId,
  address,
  label,
  created_at: toIso(createdAt),
  expires_at: toIso(expiresAt),
  message_count: messages
})

export const summaryData = ({ messageId, receivedAt, size, summary }: Listed) => ({
  message_id: messageId,
  from: summary.from,
  subject: summary.subject,
  received_at: toIso(receivedAt),
  size,
  has_attachments: summary.hasAttachments
})

const NOTHING_READ: MailContent = {
  from: null,
  subject: null,
  hasAttachments: false,
  to: [],
  cc: [],
  replyTo: [],
  date: null,
  messageId: null,
  text: null,
  html: null,
  headers: {},
  attachments: []
}

export const messageData = (inboxId: string, message: Listed & { readonly content: MailContent | Unreadable }): typeof MessageData.Type => {
  const { content, messageId } = message
  const { attachments, cc, headers, html, replyTo, text, to } = isUnreadable(content) ? NOTHING_READ : content
  const path = `/temp-mail/inboxes/${inboxId}/messages/${messageId}`
  return {
    ...summaryData(message),
    to,
    cc,
    reply_to: replyTo,
    text,
    html,
    headers,
    authentication: message.summary.authentication,
    attachments: attachments.map(({ contentType, name, size }, place) => ({
      name,
      content_type: contentType,
      size,
      url: `${path}/attachments/${place + 1}`
    })),
    unreadable: isUnreadable(content) ? content.reason : null,
    raw_url: `${path}/raw`
  }
}
