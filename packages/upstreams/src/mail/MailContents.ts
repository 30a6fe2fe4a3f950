/** Reads a message (RFC 5322, MIME) within bounds. Runs in a worker thread, because the senders of messages mean no good. */
import type { Attachment, Mailbox, MailContent, Unreadable } from "@millrace/core"
import { type Address, decodeWords, type Email } from "postal-mime"
import * as ExactParts from "./ExactParts.ts"
import { linesOf } from "./Lines.ts"
import { safeHtml } from "./SafeHtml.ts"

/** Bytes of a message. SMTP takes less. */
const MAX_BYTES = 40 * 1024 * 1024
const MAX_LINES = 1_000_000
/** Bytes of all headers of the message and its parts. */
const MAX_HEADER_BYTES = 256 * 1024
/** Parts within parts. */
const MAX_NESTING = 20
/** Messages within messages; deeper ones are attachments. */
const MAX_MESSAGES = 5
const MAX_ATTACHMENTS = 500
/** Characters of the text, and of the HTML. */
const MAX_TEXT = 4 * 1024 * 1024
/** The most addresses that a header shows. */
const MAX_ADDRESSES = 500
/** The most values of a header that are shown. */
const MAX_VALUES = 50
/** Characters of a value of one line. Longer ones are cut. */
const MAX_LINE = 2_000
const MAX_FILE_NAME = 255

/** Headers that `headers` has. */
const SHOWN: ReadonlySet<string> = new Set([
  ...["from", "sender", "reply-to", "to", "cc", "subject", "date", "message-id", "in-reply-to", "references", "return-path", "received"],
  ...["mime-version", "content-type", "content-language", "auto-submitted", "precedence", "list-id", "list-unsubscribe"],
  ...["list-unsubscribe-post", "feedback-id", "x-mailer", "x-priority", "dkim-signature", "authentication-results"]
])

export const read = async (raw: Uint8Array): Promise<MailContent | Unreadable> => {
  const email = await parse(raw)
  if ("reason" in email) return email
  const [from] = mailboxes([email.from ?? []].flat())
  return {
    from: from ?? null,
    subject: lineOrNull(email.subject),
    hasAttachments: email.attachments.length > 0,
    to: mailboxes(email.to),
    cc: mailboxes(email.cc),
    replyTo: mailboxes(email.replyTo),
    date: timeOf(email.date),
    messageId: lineOrNull(email.messageId),
    text: email.text === undefined ? null : textOf(email.text),
    html: email.html === undefined ? null : safeHtml(textOf(email.html)),
    headers: headersOf(email),
    attachments: email.attachments.map(attachmentOf)
  }
}

/** Undefined where the message has no such attachment, or cannot be read. */
export const attachment = async (raw: Uint8Array, place: number): Promise<Uint8Array | undefined> => {
  const email = await parse(raw)
  return "reason" in email ? undefined : bytesOf(email.attachments[place]?.content)
}

const parse = async (raw: Uint8Array): Promise<Email | Unreadable> => {
  if (raw.length > MAX_BYTES) return { reason: `It has more than ${MAX_BYTES} bytes` }
  if (linesOf(raw) > MAX_LINES) return { reason: `It has more than ${MAX_LINES} lines` }
  try {
    const email = await ExactParts.parse(raw, {
      maxNestingDepth: MAX_NESTING,
      maxHeadersSize: MAX_HEADER_BYTES,
      maxRfc822NestingDepth: MAX_MESSAGES,
      attachmentEncoding: "arraybuffer"
    })
    if (email.attachments.length > MAX_ATTACHMENTS) return { reason: `It has more than ${MAX_ATTACHMENTS} attachments` }
    if (Math.max(email.text?.length ?? 0, email.html?.length ?? 0) > MAX_TEXT)
      return { reason: `Its text has more than ${MAX_TEXT} characters` }
    return email
  } catch (cause) {
    return { reason: cause instanceof Error ? line(cause.message) : "It is malformed" }
  }
}

/** Control characters, line breaks of all kinds, and signs that turn the direction of writing, which make names look like others. */
const UNSEEN = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu

/** On one line, also if encoded words hide line breaks. */
const line = (text: string): string => text.slice(0, MAX_LINE).toWellFormed().replaceAll(UNSEEN, " ").trim()

const lineOrNull = (text: string | undefined): string | null => (text === undefined ? null : line(text))

const textOf = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
  text.toWellFormed().replaceAll(/[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/gu, "")

/** Groups are lists of their members. */
const mailboxes = (addresses: ReadonlyArray<Address> = []): ReadonlyArray<Mailbox> =>
  addresses
    .flatMap((address) => address.group ?? [address])
    .filter(({ address }) => address !== "")
    .slice(0, MAX_ADDRESSES)
    .map(({ name, address }) => ({ name: line(name) || null, address: line(address) }))

const timeOf = (date: string | undefined): number | null => {
  const time = Date.parse(date ?? "")
  return Number.isNaN(time) ? null : time
}

const headersOf = ({ headers }: Email): MailContent["headers"] => {
  const shown = new Map<string, Array<string>>()
  for (const { key, value } of headers) {
    if (!SHOWN.has(key)) continue
    const values = shown.get(key) ?? []
    if (values.length < MAX_VALUES) values.push(line(decodeWords(value.slice(0, MAX_LINE))))
    shown.set(key, values)
  }
  return Object.fromEntries(shown)
}

const TYPE = /^[a-z0-9!#$&^_.+-]{1,64}\/[a-z0-9!#$&^_.+-]{1,64}$/u

const attachmentOf = ({ filename, mimeType, content }: Email["attachments"][number]): Attachment => ({
  name: fileName(filename ?? ""),
  contentType: TYPE.test(mimeType) ? mimeType : "application/octet-stream",
  size: bytesOf(content)?.length ?? 0
})

/** Without a path. */
const fileName = (name: string): string | null => {
  const last = line(name).split(/[/\\]/u).at(-1)?.trim().slice(0, MAX_FILE_NAME).toWellFormed() ?? ""
  return last === "" || last === "." || last === ".." ? null : last
}

const bytesOf = (content: ArrayBuffer | Uint8Array | string | undefined): Uint8Array | undefined => {
  if (content === undefined || content instanceof Uint8Array) return content
  return typeof content === "string" ? Buffer.from(content) : new Uint8Array(content)
}
