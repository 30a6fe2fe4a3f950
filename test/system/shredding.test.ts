/**
 * Erasing an account deletes what was sealed for it, wherever copies of that are: with every key that the files of a store and its
 * master key give away, what the log and the state keep of it opens before, and never after.
 */
import { createDecipheriv, hkdfSync } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { MasterKey, Millrace, Registration } from "@millrace/core"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Effect, Layer, Redacted } from "effect"
import { expect, test } from "vitest"
import { millrace } from "./InProcess.ts"
import { ask, auditOf, call, GRAMMAR, Issued, newStore, Opened, readLog, serve, UNLIMITED } from "./Server.ts"

// An attacker's own reading of the format, not the vault's code: `v1.`, base64url of nonce, ciphertext and tag

const NONCE = 12
const TAG = 16
const KEY = 32

const decrypt = (key: Uint8Array, context: ReadonlyArray<string | null>, sealed: string): string | undefined => {
  const bytes = Buffer.from(sealed.slice("v1.".length), "base64url")
  if (bytes.length < NONCE + TAG) return undefined
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, NONCE), { authTagLength: TAG })
  decipher.setAAD(Buffer.from(JSON.stringify(["v1.", ...context]))).setAuthTag(bytes.subarray(-TAG))
  const plaintext = decipher.update(bytes.subarray(NONCE, -TAG))
  try {
    return Buffer.concat([plaintext, decipher.final()]).toString("latin1")
  } catch {
    return undefined
  }
}

const BOX = /v1\.[A-Za-z0-9_-]{38,}/gu

interface Files {
  readonly names: ReadonlyArray<string>
  readonly bytes: ReadonlyArray<Buffer>
}

const filesOf = (folder: string): Files => {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
  return { names, bytes: names.map((name) => readFileSync(join(folder, name))) }
}

/** All that could be a key to something of this account, given everything there is: wrapped, in hexadecimal, or as plain bytes. */
const keysIn = ({ bytes }: Files, account: string): ReadonlyMap<string, Uint8Array> => {
  const keys = new Map<string, Uint8Array>()
  const add = (key: Uint8Array) => keys.set(Buffer.from(key).toString("base64"), key)
  for (const file of bytes) {
    for (const [digits] of file.toString("latin1").matchAll(/[0-9a-f]{64}/giu)) {
      const master = Buffer.from(digits, "hex")
      add(master)
      const wrapping = Buffer.from(hkdfSync("sha256", master, "", "millrace/v1/wrap", KEY))
      add(wrapping)
      for (const box of bytes.flatMap((bytes) => bytes.toString("latin1").match(BOX) ?? [])) {
        const key = decrypt(wrapping, ["key", `account:${account}`, null], box)
        if (key !== undefined) add(Buffer.from(key, "latin1"))
      }
    }
  }
  return keys
}

/** Every 32 bytes in a row that stand anywhere. */
function* windowsOf({ bytes }: Files): Generator<Uint8Array> {
  for (const file of bytes) for (let at = 0; at + KEY <= file.length; at++) yield file.subarray(at, at + KEY)
}

interface Ciphertext {
  readonly purpose: string
  readonly sealed: string
}

const open = (keys: Iterable<Uint8Array>, account: string, { purpose, sealed }: Ciphertext): string | undefined => {
  for (const key of keys) {
    const text = decrypt(key, ["text", `account:${account}`, purpose], sealed)
    if (text !== undefined) return text
  }
  return undefined
}

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
  timeout: 60_000
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
  const addressOf = (account: string) => ({ purpose: "email", sealed: sealedOf(`account-${account}`, "AccountOpened", "sealedEmail") })
  const label = { purpose: "apiKey.label", sealed: sealedOf("apiKey-", "ApiKeyIssued", "sealedLabel") }
  const keys = keysIn(before, account)
  const boxes = before.bytes.flatMap((bytes) => bytes.toString("latin1").match(BOX) ?? [])
  const replies = [...new Set(boxes)].filter((sealed) => open(keys.values(), account, { purpose: "reply", sealed }) !== undefined)

  expect(open(keys.values(), account, addressOf(account))).toBe(email)
  expect(open(keys.values(), account, label)).toBe("laptop")
  expect(replies).toHaveLength(1)
  const kept = { purpose: "reply", sealed: replies[0] ?? "" }
  expect(open(keys.values(), account, kept)).toContain("Incorrect indefinite article")

  await erase(folder, account)

  const after = filesOf(folder)
  expect(keysIn(after, other).size).toBeGreaterThan(0)
  expect(open(keysIn(after, other).values(), other, addressOf(other))).toBe("ada@example.com")
  const left = [...keysIn(after, account).values(), ...keysIn(after, other).values()]
  for (const ciphertext of [addressOf(account), label, kept]) {
    expect(open(left, account, ciphertext)).toBe(undefined)
    expect(open(windowsOf(after), account, ciphertext)).toBe(undefined)
  }

  // Amounts and ids stay, and so do audits
  const audit = await auditOf(store)
  expect(audit.events).toBe(events.length + 1)
  const shown = await millrace(["accounts", "show", "--store", store, "--account", account])
  expect(JSON.parse(shown.stdout)).toMatchObject({ account, status: "closed", email: null, available: 199 })
  const again = await serve(["--store", store], { env: UNLIMITED })
  expect((await call(`${again.url}${GRAMMAR}`, { method: "POST", key, body, headers: { "idempotency-key": "once" } })).status).toBe(401)
})
