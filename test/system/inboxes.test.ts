/** Temporary mail as developers use it: a real server, its SMTP port, a real client that sends, and what is left after `kill -9`. */
import { Schema } from "effect"
import { createTransport, type SendMailOptions } from "nodemailer"
import { expect, test } from "vitest"
import { auditOf, balanceOf, type Call, call, newStore, openAccount, type Server, serve, UNLIMITED } from "./Server.ts"

const DOMAIN = "inbox.example"

const Envelope = Schema.fromJsonString(Schema.Struct({ data: Schema.Unknown }))
const Inbox = Schema.Struct({ inbox_id: Schema.String, address: Schema.String, message_count: Schema.Int })
const Messages = Schema.Struct({
  messages: Schema.Array(
    Schema.Struct({ message_id: Schema.String, subject: Schema.NullOr(Schema.String), has_attachments: Schema.Boolean })
  )
})
const Message = Schema.Struct({
  text: Schema.NullOr(Schema.String),
  html: Schema.NullOr(Schema.String),
  attachments: Schema.Array(Schema.Struct({ name: Schema.NullOr(Schema.String), size: Schema.Int, url: Schema.String }))
})

const receiving = (url: string): Promise<Server> =>
  serve(["--store", url, "--mail-domain", DOMAIN, "--smtp", "127.0.0.1:0"], { env: UNLIMITED })

/** What the API answers, in the shape that it is read in. */
const asking = (server: Server, key: string) => {
  const send = (path: string, sent: Call = {}) => call(`${server.url}/api/v1${path}`, { key, ...sent })
  const get = async <A>(shape: Schema.Codec<A, unknown>, path: string, sent: Call = {}): Promise<A> => {
    const { body, status } = await send(path, sent)
    if (status >= 300) throw new Error(`${path} answers ${status}: ${body}`)
    return Schema.decodeUnknownSync(shape)(Schema.decodeUnknownSync(Envelope)(body).data)
  }
  return { send, get }
}

const senderTo = (server: Server) => {
  const transport = createTransport({ host: "127.0.0.1", port: Number(server.smtp?.split(":").at(-1)), ignoreTLS: true, pool: true })
  return { send: (mail: SendMailOptions) => transport.sendMail({ from: "shop@example.org", ...mail }), close: () => transport.close() }
}

test("a developer creates an inbox, waits for a message, and reads it; the old address is refused", async () => {
  const { url } = newStore()
  const { account, key } = await openAccount(url, 10)
  const server = await receiving(url)
  const { get, send } = asking(server, key)
  const sender = senderTo(server)

  const { address, inbox_id } = await get(Inbox, "/temp-mail/inboxes", { method: "POST", body: JSON.stringify({ lifetime: 600 }) })
  expect(address.endsWith(`@${DOMAIN}`)).toBe(true)
  const waiting = get(Messages, `/temp-mail/inboxes/${inbox_id}/messages`, { headers: { prefer: "wait=20" } })
  await sender.send({
    to: address,
    subject: "Confirm your address",
    text: "Your code is 482 913.",
    html: `<p onclick="steal()">Your code is <b>482 913</b>.</p><script>steal()</script>`,
    attachments: [{ filename: "terms.txt", content: "Be kind." }]
  })
  const { messages } = await waiting
  expect(messages).toMatchObject([{ subject: "Confirm your address", has_attachments: true }])
  const path = `/temp-mail/inboxes/${inbox_id}/messages/${messages[0]?.message_id}`
  const { attachments, html, text } = await get(Message, path)
  expect(text).toContain("482 913")
  expect(html).toContain("<b>482 913</b>")
  expect(html).not.toContain("steal")
  expect(attachments).toMatchObject([{ name: "terms.txt", size: 8 }])
  const file = await call(new URL(attachments[0]?.url ?? "", server.url).href, { key })
  expect(file.body).toBe("Be kind.")
  expect((await send(`${path}/raw`)).body).toContain("Subject: Confirm your address")

  const rotated = await get(Inbox, `/temp-mail/inboxes/${inbox_id}/rotate`, { method: "POST" })
  expect(rotated.address).not.toBe(address)
  await expect(sender.send({ to: address, subject: "Late", text: "" })).rejects.toMatchObject({ responseCode: 550 })
  expect((await send(`/temp-mail/inboxes/${inbox_id}`, { method: "DELETE" })).status).toBeLessThan(300)
  await expect(sender.send({ to: rotated.address, subject: "Late", text: "" })).rejects.toMatchObject({ responseCode: 550 })
  expect((await send(path)).status).toBe(404)

  sender.close()
  expect((await server.stop()).code).toBe(0)
  // Two of a credit; four of a tenth of one
  expect((await balanceOf(url, account)).available).toBe(10 - 2 - 0.4)
  expect(await auditOf(url)).toMatchObject({ ok: true })
}, 60_000)

test("every message that was acknowledged before kill -9 is there afterwards, and none twice", async () => {
  const { url } = newStore()
  const { key } = await openAccount(url, 10)
  const first = await receiving(url)
  const { address, inbox_id } = await asking(first, key).get(Inbox, "/temp-mail/inboxes", { method: "POST", body: "{}" })
  const sender = senderTo(first)
  const acknowledged: Array<string> = []
  const sending = Array.from({ length: 60 }, async (_, i) => {
    const subject = `Message ${i}`
    await sender.send({ to: address, subject, text: subject })
    acknowledged.push(subject)
    if (acknowledged.length === 12) void first.kill()
  })
  await Promise.allSettled(sending)
  await first.ended
  sender.close()

  const second = await receiving(url)
  const { get } = asking(second, key)
  const { messages } = await get(Messages, `/temp-mail/inboxes/${inbox_id}/messages?per_page=100`)
  const subjects = messages.map(({ subject }) => subject)
  expect(acknowledged.length).toBeGreaterThanOrEqual(12)
  expect(acknowledged.length).toBeLessThan(60)
  expect(subjects).toEqual(expect.arrayContaining(acknowledged))
  expect(new Set(subjects).size).toBe(subjects.length)
  await second.stop()
  expect(await auditOf(url)).toMatchObject({ ok: true })
}, 60_000)
