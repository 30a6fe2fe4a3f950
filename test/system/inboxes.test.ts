/** Temporary mail as developers use it: a real server, its SMTP port, and a real client that sends. */
import { expect, test } from "vitest"
import { asking, DOMAIN, Inbox, Message, Messages, senderTo } from "./Mail.ts"
import { auditOf, balanceOf, call, newStore, openAccount, readLog, type Server, serve, UNLIMITED } from "./Server.ts"

const receiving = (url: string): Promise<Server> =>
  serve(["--store", url, "--mail-domain", DOMAIN, "--smtp", "127.0.0.1:0"], { env: UNLIMITED })

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
  // The move names the call that paid for it
  const log = await readLog(url)
  const hold = log.find(({ data, type }) => type === "CreditReserved" && data["operation"] === "inbox.rotate")
  const moves = log.filter(({ type }) => type === "InboxRotated")
  expect(moves.map(({ metadata }) => metadata["$correlationId"])).toEqual([hold?.data["requestId"]])
}, 60_000)
