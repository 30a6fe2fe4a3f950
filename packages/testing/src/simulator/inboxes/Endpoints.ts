/** Temporary mail at simulated hosts: its operations with their prices, its domain, and a reader of the messages that senders write here. */
import { type MailContent, MailReader, type Operation, TempMail } from "@millrace/core"
import { Effect, Layer } from "effect"
import type { Message } from "../Records.ts"

export const DOMAIN = "inbox.example"

/** The operations, with their first prices in thousandths of a credit. */
export const OFFERS: ReadonlyArray<{ readonly operation: Operation.Any; readonly price: number }> = [
  { operation: TempMail.create, price: 1_000 },
  { operation: TempMail.read, price: 0 },
  { operation: TempMail.listMessages, price: 100 },
  { operation: TempMail.readMessage, price: 100 },
  { operation: TempMail.rotate, price: 1_000 },
  { operation: TempMail.remove, price: 0 }
]

/** The message as it comes over SMTP. */
export const rawOf = ({ address, subject, text }: Message): Uint8Array =>
  Buffer.from(`From: <sender@example.org>\r\nTo: <${address}>\r\nSubject: ${subject}\r\n\r\n${text}`)

const contentOf = (raw: Uint8Array): MailContent => {
  const [head = "", text = ""] = Buffer.from(raw).toString().split("\r\n\r\n")
  const headers = Object.fromEntries(
    head.split("\r\n").map((line) => {
      const [name = "", value = ""] = line.split(": ")
      return [name.toLowerCase(), [value]]
    })
  )
  const nothing = { hasAttachments: false, to: [], cc: [], replyTo: [], date: null, messageId: null, html: null, attachments: [] }
  return { ...nothing, from: { name: null, address: "sender@example.org" }, subject: headers["subject"]?.[0] ?? null, text, headers }
}

/** Reads what {@link rawOf} writes. The real reader has threads of its own, which no simulation has. */
export const reader: Layer.Layer<MailReader> = Layer.succeed(MailReader, {
  read: (raw) => Effect.sync(() => contentOf(raw)),
  attachment: () => Effect.undefined
})
