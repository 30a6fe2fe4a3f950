/** Mail through the server as it comes: two processes on one store, of which one receives and the other is asked; and an abrupt end. */
import { once } from "node:events"
import { connect } from "node:net"
import { expect, test } from "vitest"
import { auditOf, call, newStore, openAccount, readLog, serve, temporaryFolder } from "./Server.ts"

const DOMAIN = "mail.example.com"

/** Says each line to an SMTP server after the answer to the line before. Returns the codes of the answers. */
const converse = async (smtp: string | undefined, lines: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const [host = "", port = ""] = smtp?.split(":") ?? []
  const socket = connect({ host, port: Number(port) })
  await once(socket, "connect")
  const codes: Array<string> = []
  let rest = ""
  const ended = once(socket, "close")
  socket.setEncoding("utf8").on("data", (text: string) => {
    rest += text
    const whole = rest.split("\r\n").slice(0, -1)
    rest = rest.slice(rest.lastIndexOf("\r\n") + 2)
    for (const line of whole.filter((line) => line[3] === " ")) {
      codes.push(line.slice(0, 3))
      const next = lines[codes.length - 1]
      if (next === undefined) socket.end()
      else socket.write(`${next}\r\n`)
    }
  })
  await ended
  return codes
}

const mail = (address: string, subject: string) => [
  "EHLO client.example.org",
  "MAIL FROM:<grace@example.org>",
  `RCPT TO:<${address}>`,
  "DATA",
  `From: Grace Hopper <grace@example.org>\r\nTo: <${address}>\r\nSubject: ${subject}\r\n\r\nYour code is 123456\r\n.`
]

test("mail that one process receives wakes a caller at another, and outlives the one that received it", { timeout: 60_000 }, async () => {
  const { url: store } = newStore()
  const { key } = await openAccount(store, 100)
  const args = ["--store", store, "--mail-domain", DOMAIN, "--blobs", temporaryFolder(), "--dns-servers", "127.0.0.1:1"]
  const asked = await serve(args)
  const receiving = await serve([...args, "--smtp", "127.0.0.1:0"])
  expect(asked.smtp).toBeUndefined()

  const api = `${asked.url}/api/v1/temp-mail/inboxes`
  const { data: inbox } = JSON.parse((await call(api, { method: "POST", key, body: "{}" })).body)
  expect(inbox.address).toMatch(/^[a-z-]{24}@mail\.example\.com$/u)
  const waiting = fetch(`${api}/${inbox.inbox_id}/messages`, { headers: { authorization: `Bearer ${key}`, prefer: "wait=50" } })
  const before = Date.now()
  expect(await converse(receiving.smtp, mail(inbox.address, "Welcome"))).toEqual(["220", "250", "250", "250", "354", "250"])
  const { messages } = JSON.parse(await (await waiting).text()).data
  expect(Date.now() - before).toBeLessThan(40_000)
  expect(messages).toMatchObject([{ subject: "Welcome", from: { name: "Grace Hopper", address: "grace@example.org" } }])

  // What was acknowledged is there, whatever happens to the process
  expect(await converse(receiving.smtp, mail(inbox.address, "Last words"))).toHaveLength(6)
  await receiving.kill()
  const read = async (path: string) => JSON.parse((await call(`${api}/${inbox.inbox_id}${path}`, { key })).body).data
  expect((await read("/messages")).messages.map(({ subject }: { subject: string }) => subject)).toEqual(["Last words", "Welcome"])
  expect(await read(`/messages/${messages[0].message_id}`)).toMatchObject({ text: expect.stringContaining("123456"), unreadable: null })

  const again = await serve([...args, "--smtp", "127.0.0.1:0"])
  const { data: rotated } = JSON.parse((await call(`${api}/${inbox.inbox_id}/rotate`, { method: "POST", key, body: "{}" })).body)
  expect(await converse(again.smtp, mail(inbox.address, "Old").slice(0, 3))).toEqual(["220", "250", "250", "550"])
  expect(await converse(again.smtp, mail(rotated.address, "New").slice(0, 3))).toEqual(["220", "250", "250", "250"])
  expect((await again.stop()).code).toBe(0)
  expect((await asked.stop()).code).toBe(0)
  await auditOf(store)
  expect((await readLog(store)).filter(({ type }) => type === "MessageReceived")).toHaveLength(2)
})

test("mail without a domain is refused at the start, in a sentence", async () => {
  const refused = serve(["--store", "memory:", "--smtp", "127.0.0.1:0"])
  await expect(refused).rejects.toThrow("--smtp and --smtp-tls need --mail-domain")
})
