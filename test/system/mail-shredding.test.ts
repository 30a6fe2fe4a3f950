/**
 * What an inbox received can be read with the keys that its store has, and by nothing once the inbox is deleted or its account erased. No
 * file and no line of output has a word of it in clear.
 */
import { join } from "node:path"
import { expect, test } from "vitest"
import { boxesIn, type Files, filesOf, firstChunk, keysBelow, keysIn, open, sealedSecretOf, windowsOf } from "./Attacker.ts"
import { canary, isIn } from "./Canary.ts"
import { millrace } from "./InProcess.ts"
import { asking, DOMAIN, INBOXES, SmtpClient, senderTo } from "./Mail.ts"
import { auditOf, type Event, newStore, openAccount, readLog, type Server, serve, UNLIMITED } from "./Server.ts"

const KINDS = ["address", "label", "sender", "subject", "text", "html", "filename", "attachment"] as const

/** An inbox with a message, and the words in both that must stand nowhere. */
const fill = async (server: Server, key: string) => {
  const words: Record<string, string> = Object.fromEntries(KINDS.map((kind) => [kind, canary(kind)]))
  const { address, inbox_id } = await asking(server, key).create({ label: words["label"] ?? "" })
  const sender = senderTo(server)
  await sender.send({
    from: { name: words["sender"] ?? "", address: "shop@example.org" },
    to: address,
    subject: words["subject"] ?? "",
    text: words["text"] ?? "",
    html: `<p>${words["html"]}</p>`,
    // Longer than what is kept in the state store: this message is a blob, and the next one is not
    attachments: [{ filename: `${words["filename"]}.txt`, content: `${words["attachment"]}${" and so on".repeat(8_000)}` }]
  })
  const short = canary("short")
  await sender.send({ to: address, subject: short, text: `${short} ${short}` })
  sender.close()
  return { inbox: inbox_id, address, words: { ...words, short, address: address.slice(0, address.indexOf("@")) } as Record<string, string> }
}

type Filled = Awaited<ReturnType<typeof fill>>

const filesUnder = (files: Files, folder: string): ReadonlyArray<Buffer> => files.bytes.filter((_, i) => files.names[i]?.startsWith(folder))

/** Where the state is: a key that is no longer wrapped could be nowhere else. */
const stateOf = ({ bytes, names }: Files): Files => {
  const state = names.flatMap((name, i) => (name.includes(".state.db") ? [bytes[i] ?? Buffer.of()] : []))
  return { names: [], bytes: state }
}

/** Everything of an inbox that some key opens: what its events and the blobs hold sealed. */
const readWith = (keys: ReadonlyArray<Uint8Array>, subject: string, own: ReadonlyArray<Event>, files: Files): string => {
  const sealed = (field: string, purpose: string) =>
    own.flatMap(({ data }) => (typeof data[field] === "string" ? [open(keys, { subject, purpose, sealed: data[field] }) ?? ""] : []))
  const blobs = filesUnder(files, "blobs").map((blob) => {
    const secret = open(keys, { subject, purpose: "blob", sealed: sealedSecretOf(blob) })
    return secret === undefined ? "" : firstChunk(blob, secret)
  })
  const fields = [
    ["sealedAddress", "inbox.address"],
    ["sealedLabel", "inbox.label"],
    ["sealedSummary", "inbox.summary"]
  ] as const
  return [...fields.flatMap(([field, purpose]) => sealed(field, purpose)), ...blobs].join("\n")
}

/** What an attacker reads of inboxes of an account, by their ids. */
const readAll = (files: Files, account: string, inboxes: ReadonlyArray<string>, events: ReadonlyArray<Event>): ReadonlyArray<string> => {
  const ofAccount = keysIn(files, account)
  return inboxes.map((inbox) => {
    const subject = `inbox:${inbox}`
    const own = events.filter(({ stream }) => stream === `inbox-${inbox}`)
    const keys = keysBelow(files, account, ofAccount, subject)
    if (keys.length > 0) return readWith(keys, subject, own, files)
    const sealed = String(own[0]?.data["sealedLabel"])
    return open(windowsOf(stateOf(files)), { subject, purpose: "inbox.label", sealed }) ?? ""
  })
}

test("mail opens with the available keys until its inbox is deleted or its account erased, and stands in clear nowhere", {
  timeout: 120_000
}, async () => {
  const { folder, url } = newStore()
  const { account, key } = await openAccount(url, 10)
  const args = ["--store", url, "--mail-domain", DOMAIN, "--smtp", "127.0.0.1:0", "--dns-servers", "127.0.0.1:1", "--log-level", "trace"]
  const server = await serve(args, { env: UNLIMITED })
  const inboxes: Array<Filled> = []
  const seen: Array<Files> = []

  /** What an attacker reads of each inbox now; and no word is in clear. */
  const attack = async (): Promise<ReadonlyArray<string>> => {
    const files = filesOf(folder)
    seen.push(files)
    return readAll(
      files,
      account,
      inboxes.map(({ inbox }) => inbox),
      await readLog(url)
    )
  }
  const wordsIn = (read: string, { words }: Filled) => KINDS.filter((kind) => isIn(words[kind] ?? "", Buffer.from(read, "latin1")))

  for (const _ of [1, 2]) inboxes.push(await fill(server, key))
  const [gone, erased] = inboxes
  if (gone === undefined || erased === undefined) throw new Error("There are two")
  const before = await attack()
  expect(seen[0]?.names).toEqual(expect.arrayContaining(["millrace.db-wal", "millrace.state.db-wal"]))
  expect(inboxes.map((inbox, i) => wordsIn(before[i] ?? "", inbox))).toEqual([KINDS, KINDS])

  // One is deleted: the other opens as before
  expect((await asking(server, key).send(`${INBOXES}/${gone.inbox}`, { method: "DELETE" })).status).toBe(200)
  const after = await attack()
  expect(inboxes.map((inbox, i) => wordsIn(after[i] ?? "", inbox))).toEqual([[], KINDS])
  expect(filesUnder(seen[1] ?? filesOf(folder), "blobs")).toHaveLength(1)

  // The account is erased, while a message is on its way
  const client = await SmtpClient.open(server)
  expect(await client.begin(erased.address)).toBe("354")
  const erase = ["accounts", "erase", "--store", url, "--account", account, "--confirm", account]
  expect((await millrace(erase)).code).toBe(0)
  expect(await client.ask(`Subject: ${erased.words["subject"]}\r\n\r\nLate\r\n.`)).toBe("550")
  expect(await client.recipient(erased.address)).toBe("550")
  expect((await asking(server, key).send(`${INBOXES}/${erased.inbox}`)).status).toBe(401)
  while (filesUnder(filesOf(folder), "blobs").length > 0) await new Promise((resolve) => setTimeout(resolve, 50))
  await server.kill()
  const last = await attack()
  expect(inboxes.map((inbox, i) => wordsIn(last[i] ?? "", inbox))).toEqual([[], []])
  expect((await readLog(url)).filter(({ type }) => type === "InboxDeleted")).toHaveLength(2)

  const told = await Promise.all(
    [["events"], ["journal", "--format", "jsonl"], ["audit"]].map(async (args) => {
      const { stderr, stdout } = await millrace([...args, "--store", url])
      return Buffer.from(stdout + stderr)
    })
  )
  const written = [...seen.flatMap(({ bytes }) => bytes), ...told, Buffer.from(server.stdout + server.stderr)]
  expect(isIn(gone.inbox, Buffer.concat(written))).toBe(true)
  for (const { words } of inboxes)
    for (const [kind, word] of Object.entries(words)) expect(written.some((bytes) => isIn(word, bytes)) ? kind : "").toBe("")
  expect(boxesIn(filesOf(folder)).size).toBeGreaterThan(0)
  expect(filesOf(folder).names).toContain(join("erasures.jsonl"))
  await auditOf(url)
})
