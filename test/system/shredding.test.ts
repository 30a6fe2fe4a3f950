/**
 * Erasing an account deletes what was sealed for it, wherever copies of that are: with every key that the files of a store and its
 * master key give away, what the log and the state keep of it opens before, and never after.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { MasterKey, Millrace, Registration } from "@millrace/core"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Effect, Layer, Redacted } from "effect"
import { expect, test } from "vitest"
import { boxesIn, filesOf, keysIn, open, windowsOf } from "./Attacker.ts"
import { millrace } from "./InProcess.ts"
import { ask, auditOf, call, GRAMMAR, Issued, newStore, Opened, readLog, serve, UNLIMITED } from "./Server.ts"

/** As a host erases an account that asks for it. */
const erase = (folder: string, account: string): Promise<void> => {
  const stores = Layer.mergeAll(
    SqliteEventStore.layer({ filename: join(folder, "millrace.db") }),
    SqliteStateStore.layer({ filename: join(folder, "millrace.state.db") }),
    MasterKey.layer(Redacted.make(readFileSync(join(folder, "master.key"), "utf8")))
  )
  return Effect.gen(function* () {
    const registration = yield* Registration
    yield* registration.erase(account, { actor: "ada", reason: "asked to be forgotten" })
  }).pipe(Effect.provide(Millrace.administration().pipe(Layer.provideMerge(stores))), Effect.runPromise)
}

test("sealed data of an account opens with the available keys before its erasure, and with none after", {
  timeout: 120_000
}, async () => {
  const { folder, url: store } = newStore()
  const email = "grace@example.com"
  const text = "A secret about a apple."
  const { account } = await ask(Opened, ["accounts", "open", "--store", store, "--email", email, "--verified"])
  const { account: other } = await ask(Opened, ["accounts", "open", "--store", store, "--email", "ada@example.com"])
  const { key } = await ask(Issued, ["keys", "issue", "--store", store, "--account", account, "--label", "laptop"])
  const server = await serve(["--store", store], { env: UNLIMITED })
  const body = JSON.stringify({ text })
  const reply = await call(`${server.url}${GRAMMAR}`, { method: "POST", key, body, headers: { "idempotency-key": "once" } })
  expect(reply.status).toBe(200)
  // Killed, so that its write-ahead logs are left as they were
  await server.kill()

  const before = filesOf(folder)
  expect(before.names).toEqual(expect.arrayContaining(["master.key", "millrace.db-wal", "millrace.state.db-wal"]))
  const events = await readLog(store)
  const sealedOf = (stream: string, type: string, field: string): string => {
    const found = events.filter((event) => event.type === type && event.stream.startsWith(stream) && typeof event.data[field] === "string")
    return String(found.at(-1)?.data[field])
  }
  const subject = `account:${account}`
  const addressOf = (account: string) => ({
    subject: `account:${account}`,
    purpose: "email",
    sealed: sealedOf(`account-${account}`, "AccountOpened", "sealedEmail")
  })
  const label = { subject, purpose: "apiKey.label", sealed: sealedOf("apiKey-", "ApiKeyIssued", "sealedLabel") }
  const keys = keysIn(before, account)
  const replies = [...boxesIn(before)].filter((sealed) => open(keys.values(), { subject, purpose: "reply", sealed }) !== undefined)

  expect(open(keys.values(), addressOf(account))).toBe(email)
  expect(open(keys.values(), label)).toBe("laptop")
  expect(replies).toHaveLength(1)
  const kept = { subject, purpose: "reply", sealed: replies[0] ?? "" }
  expect(open(keys.values(), kept)).toContain("Incorrect indefinite article")

  await erase(folder, account)

  const after = filesOf(folder)
  expect(keysIn(after, other).size).toBeGreaterThan(0)
  expect(open(keysIn(after, other).values(), addressOf(other))).toBe("ada@example.com")
  const left = [...keysIn(after, account).values(), ...keysIn(after, other).values()]
  for (const ciphertext of [addressOf(account), label, kept]) expect(open(left, ciphertext)).toBe(undefined)
  expect(open(windowsOf(after), label)).toBe(undefined)

  // Amounts and ids stay, and so do audits
  const audit = await auditOf(store)
  expect(audit.events).toBe(events.length + 1)
  const shown = await millrace(["accounts", "show", "--store", store, "--account", account])
  expect(JSON.parse(shown.stdout)).toMatchObject({ account, status: "closed", email: null, available: 199 })
  const again = await serve(["--store", store], { env: UNLIMITED })
  expect((await call(`${again.url}${GRAMMAR}`, { method: "POST", key, body, headers: { "idempotency-key": "once" } })).status).toBe(401)
})
