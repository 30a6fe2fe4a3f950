/** A reader for simple messages: headers of one line each, a body of text, and one attachment after a line `--file name`. */
import { Effect, Layer } from "effect"
import { type Attachment, type Mailbox, type MailContent, MailReader, type Unreadable } from "../../src/inboxes/MailReader.ts"

const mailbox = (text: string): Mailbox => {
  const { address = text, name } = /^(?:(?<name>[^<]*?) *<)?(?<address>[^<>]*)>?$/u.exec(text)?.groups ?? {}
  return { name: name ?? null, address }
}

const partsOf = (raw: Uint8Array) => {
  const [head = "", ...rest] = Buffer.from(raw).toString().split("\r\n\r\n")
  const [, body = "", name, file = ""] = /^([\s\S]*?)(?:--file (\S+)\r\n([\s\S]*))?$/u.exec(rest.join("\r\n\r\n")) ?? []
  return { head, body, file: name === undefined ? undefined : { name, bytes: Buffer.from(file) } }
}

const read = (raw: Uint8Array): MailContent | Unreadable => {
  const { body, file, head } = partsOf(raw)
  if (head.startsWith("X-Broken:")) return { reason: "It is broken" }
  const headers: Record<string, ReadonlyArray<string>> = {}
  for (const line of head.split("\r\n")) {
    const name = line.slice(0, line.indexOf(":")).toLowerCase()
    headers[name] = [...(headers[name] ?? []), line.slice(line.indexOf(":") + 1).trim()]
  }
  const one = (name: string) => headers[name]?.[0]
  const from = one("from")
  const attachments: ReadonlyArray<Attachment> = file ? [{ name: file.name, contentType: "text/plain", size: file.bytes.length }] : []
  return {
    from: from === undefined ? null : mailbox(from),
    subject: one("subject") ?? null,
    hasAttachments: attachments.length > 0,
    to: (headers["to"] ?? []).map(mailbox),
    cc: [],
    replyTo: [],
    date: null,
    messageId: one("message-id") ?? null,
    text: body,
    html: null,
    headers,
    attachments
  }
}

export const layer = Layer.succeed(MailReader, {
  read: (raw) => Effect.sync(() => read(raw)),
  attachment: (raw, place) => Effect.sync(() => (place === 0 ? partsOf(raw).file?.bytes : undefined))
})

/** A message of a subject, with an attachment. */
export const message = (subject: string, text = "Hello"): Uint8Array =>
  Buffer.from(
    [
      `From: Grace Hopper <grace@example.org>`,
      `To: <tester@example.com>`,
      `Subject: ${subject}`,
      "",
      `${text}\r\n--file notes.txt\r\nnotes`
    ].join("\r\n")
  )
