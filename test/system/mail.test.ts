/** Mail through the server as it comes: two processes on one store, of which one receives and the other is asked; and an abrupt end. */
import { expect, test } from "vitest"
import { asking, DOMAIN, INBOXES, Message, Messages, SmtpClient, senderTo } from "./Mail.ts"
import { auditOf, newStore, openAccount, readLog, serve, temporaryFolder } from "./Server.ts"

test("mail that one process receives wakes a caller at another, and outlives the one that received it", { timeout: 120_000 }, async () => {
  const { url: store } = newStore()
  const { key } = await openAccount(store, 100)
  const args = ["--store", store, "--mail-domain", DOMAIN, "--blobs", temporaryFolder(), "--dns-servers", "127.0.0.1:1"]
  const asked = await serve(args)
  const receiving = await serve([...args, "--smtp", "127.0.0.1:0"])
  expect(asked.smtp).toBeUndefined()

  const { create, get, rotate, subjects } = asking(asked, key)
  const { address, inbox_id } = await create()
  expect(address).toMatch(/^[a-z-]{24}@inbox\.example$/u)
  const path = `${INBOXES}/${inbox_id}/messages`
  const waiting = get(Messages, path, { headers: { prefer: "wait=50" } })
  const sender = senderTo(receiving)
  const text = "Your code is 123456"
  await sender.send({ to: address, subject: "Welcome", text })
  const before = Date.now()
  const { messages } = await waiting
  expect(Date.now() - before).toBeLessThan(40_000)
  expect(messages).toMatchObject([{ subject: "Welcome" }])

  // What was acknowledged is there, whatever happens to the process
  await sender.send({ to: address, subject: "Last words", text })
  sender.close()
  await receiving.kill()
  expect(await subjects(inbox_id)).toEqual(["Last words", "Welcome"])
  expect(await get(Message, `${path}/${messages[0]?.message_id}`)).toMatchObject({ text: expect.stringContaining("123456") })

  const again = await serve([...args, "--smtp", "127.0.0.1:0"])
  const rotated = await rotate(inbox_id)
  const client = await SmtpClient.open(again)
  expect(await client.recipient(address)).toBe("550")
  expect(await client.recipient(rotated.address)).toBe("250")
  await client.close()
  expect((await again.stop()).code).toBe(0)
  expect((await asked.stop()).code).toBe(0)
  await auditOf(store)
  expect((await readLog(store)).filter(({ type }) => type === "MessageReceived")).toHaveLength(2)
})

test("mail without a domain is refused at the start, in a sentence", async () => {
  const refused = serve(["--store", "memory:", "--smtp", "127.0.0.1:0"])
  await expect(refused).rejects.toThrow("--smtp and --smtp-tls need --mail-domain")
})
