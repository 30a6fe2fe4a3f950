/** Backups of a store with inboxes: their mail can be read after a restore, and what was deleted or has expired since comes back told, or not. */
import { readdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { changed } from "./Changes.ts"
import { millrace } from "./InProcess.ts"
import { asking, DOMAIN, INBOXES, Message, Messages, SmtpClient, senderTo } from "./Mail.ts"
import { ask, auditOf, call, newStore, openAccount, Restored, readLog, type Server, serve, temporaryFolder, UNLIMITED } from "./Server.ts"

/** An inbox may live for a second. */
const start = (store: string, ...args: ReadonlyArray<string>): Promise<Server> =>
  serve(
    [...args, "--store", store, "--mail-domain", DOMAIN, "--smtp", "127.0.0.1:0", "--dns-servers", "127.0.0.1:1"],
    changed([["inboxes/Inbox.ts", "minimum: 60", "minimum: 1"]], { env: UNLIMITED })
  )

/** Longer than what is kept in the state store: the message is a blob. */
const TERMS = "Be kind. ".repeat(8_000)

const deliver = async (server: Server, to: string, subject: string): Promise<void> => {
  const sender = senderTo(server)
  await sender.send({ to, subject, text: `This is ${subject}.`, attachments: [{ filename: "terms.txt", content: TERMS }] })
  sender.close()
}

/** All that an account reads of the newest message of an inbox. */
const readNewest = async (server: Server, key: string, inbox: string) => {
  const { get, send } = asking(server, key)
  const { messages } = await get(Messages, `${INBOXES}/${inbox}/messages`)
  const path = `${INBOXES}/${inbox}/messages/${messages[0]?.message_id}`
  const message = await get(Message, path)
  const attachment = await call(new URL(message.attachments[0]?.url ?? "", server.url).href, { key })
  return {
    subjects: messages.map(({ subject }) => subject),
    text: message.text,
    attachment: attachment.body,
    raw: (await send(`${path}/raw`)).body
  }
}

test("a restore brings mail back, whole; what was deleted or has expired since comes back only where nobody said so, and that is told", {
  timeout: 120_000
}, async () => {
  const { file, folder, url } = newStore()
  const [own, others] = [await openAccount(url, 100), await openAccount(url, 100)]
  const first = await start(url)
  const { create } = asking(first, own.key)
  const [kept, deleted, expired] = [await create({ label: "kept" }), await create(), await create({ lifetime: 5 })]
  const erased = await asking(first, others.key).create()
  for (const [i, { address }] of [kept, deleted, expired, erased].entries()) await deliver(first, address, `Message ${i}`)
  const before = await readNewest(first, own.key, kept.inbox_id)
  expect(before).toMatchObject({ subjects: ["Message 0"], attachment: TERMS })

  // Stopped, so that the backup has no lease of a process that is gone: a restored host would wait for its end
  await first.stop()
  const blobs = readdirSync(join(folder, "blobs")).sort()
  const backup = join(temporaryFolder(), "backup")
  expect((await millrace(["backup", "--store", url, "--to", backup])).code).toBe(0)
  const server = await start(url)
  expect((await asking(server, own.key).send(`${INBOXES}/${deleted.inbox_id}`, { method: "DELETE" })).status).toBe(200)
  const erase = ["accounts", "erase", "--store", url, "--account", others.account, "--confirm", others.account]
  expect((await millrace(erase)).code).toBe(0)
  const haveEnded = async () => {
    const log = await readLog(url)
    const has = (inbox: string, end: string) => log.some(({ stream, type }) => stream === `inbox-${inbox}` && type === end)
    return has(expired.inbox_id, "InboxExpired") && has(erased.inbox_id, "InboxDeleted")
  }
  while (!(await haveEnded())) await new Promise((resolve) => setTimeout(resolve, 100))
  await server.kill()

  const key = ["--master-key", join(folder, "master.key")]
  const restore = (target: string, ...from: ReadonlyArray<string>) =>
    ask(Restored, ["restore", "--from", backup, "--store", target, ...key, ...from])
  const readable = ({ reconcile }: typeof Restored.Type) => reconcile.find(({ what }) => what === "inboxes that can be read")

  // The state of the store that is replaced knows all that ended since
  const target = newStore()
  const restored = await restore(target.url, "--erased", `${file.replace(/\.db$/u, "")}.state.db`)
  expect(restored.ok).toBe(true)
  // The expired one ends by its time, before it is asked for
  expect([...restored.refused].sort()).toEqual(
    [`account:${others.account}`, `inbox:${deleted.inbox_id}`, `inbox:${erased.inbox_id}`].sort()
  )
  expect(readable(restored)?.count).toBe(1)
  expect(readdirSync(join(target.folder, "blobs")).sort()).toEqual(blobs)
  const again = await start(target.url)
  const client = await SmtpClient.open(again)
  for (const { address } of [deleted, expired, erased]) expect(await client.recipient(address)).toBe("550")
  for (const { inbox_id } of [deleted, expired])
    expect((await asking(again, own.key).send(`${INBOXES}/${inbox_id}/messages`)).status).toBe(404)
  expect((await asking(again, others.key).send(INBOXES, { method: "POST", body: "{}" })).status).toBe(401)
  expect(await readNewest(again, own.key, kept.inbox_id)).toEqual(before)
  await deliver(again, kept.address, "After the restore")
  expect(await asking(again, own.key).subjects(kept.inbox_id)).toEqual(["After the restore", "Message 0"])
  expect((await again.stop()).code).toBe(0)
  expect(await auditOf(target.url)).toMatchObject({ ok: true })

  // The register of erasures knows accounts only: the inbox that was deleted can be read again, which is told, and the expired one cannot
  const told = newStore()
  const half = await restore(told.url, "--erased", join(folder, "erasures.jsonl"))
  expect(half.refused).toEqual([`account:${others.account}`])
  expect(readable(half)).toMatchObject({ count: 2, advice: expect.stringContaining("--erased") })
  const state = await millrace(["audit", "--store", told.url])
  expect(JSON.parse(state.stdout).keys).toMatchObject({ erasedAccounts: 1, destroyed: 2 })
  const third = await start(told.url)
  expect(await asking(third, own.key).subjects(deleted.inbox_id)).toEqual(["Message 1"])
  expect((await asking(third, own.key).send(`${INBOXES}/${expired.inbox_id}`)).status).toBe(404)
  // The files of the erased and of the expired are removed
  while (readdirSync(join(told.folder, "blobs")).length > 2) await new Promise((resolve) => setTimeout(resolve, 50))
  expect((await third.stop()).code).toBe(0)
})

test("a backup has the mail of a store whose blobs are elsewhere, and a restore puts it elsewhere", { timeout: 120_000 }, async () => {
  const { folder, url } = newStore()
  const { key } = await openAccount(url, 100)
  const [blobs, others] = [join(temporaryFolder(), "mail"), join(temporaryFolder(), "deep", "mail")]
  const server = await start(url, "--blobs", blobs)
  const { address, inbox_id } = await asking(server, key).create()
  await deliver(server, address, "Elsewhere")
  const before = await readNewest(server, key, inbox_id)
  await server.stop()

  const backup = join(temporaryFolder(), "backup")
  expect((await millrace(["backup", "--store", url, "--to", backup, "--blobs", blobs])).code).toBe(0)
  const restore = (target: string, place: string) => {
    const restore = ["restore", "--from", backup, "--none-erased", "--master-key", join(folder, "master.key")]
    return millrace([...restore, "--store", target, "--blobs", place])
  }
  // Nothing is written over the blobs of another store, nor left of the attempt
  const target = newStore()
  expect((await restore(target.url, blobs)).stderr).toContain(`${blobs} is there already`)
  expect(readdirSync(target.folder)).toEqual([])
  expect((await restore(target.url, others)).code).toBe(0)
  expect([readdirSync(others), readdirSync(dirname(others))]).toEqual([readdirSync(blobs), ["mail"]])
  expect(readdirSync(target.folder).sort()).toEqual(["master.key", "millrace.db", "millrace.state.db"])
  const again = await start(target.url, "--blobs", others)
  expect(await readNewest(again, key, inbox_id)).toEqual(before)
  expect((await again.stop()).code).toBe(0)
})
