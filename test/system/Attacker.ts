/**
 * An attacker who has every file of a store and its master key, and reads the format by himself: `v1.`, then base64url of nonce,
 * ciphertext and tag.
 */
import { createDecipheriv, hkdfSync } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"

const NONCE = 12
const TAG = 16
const KEY = 32

const unlock = (key: Uint8Array, nonce: Uint8Array, associated: Uint8Array, box: Uint8Array): Buffer | undefined => {
  if (box.length < TAG) return undefined
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG }).setAAD(associated).setAuthTag(box.subarray(-TAG))
  const plaintext = decipher.update(box.subarray(0, -TAG))
  try {
    return Buffer.concat([plaintext, decipher.final()])
  } catch {
    return undefined
  }
}

const decrypt = (key: Uint8Array, context: ReadonlyArray<string | null>, sealed: string): Buffer | undefined => {
  const bytes = Buffer.from(sealed.slice("v1.".length), "base64url")
  return unlock(key, bytes.subarray(0, NONCE), Buffer.from(JSON.stringify(["v1.", ...context])), bytes.subarray(NONCE))
}

const BOX = /v1\.[A-Za-z0-9_-]{38,}/gu

export interface Files {
  readonly names: ReadonlyArray<string>
  readonly bytes: ReadonlyArray<Buffer>
}

export const filesOf = (folder: string): Files => {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
  return { names, bytes: names.map((name) => readFileSync(join(folder, name))) }
}

/** Everything sealed that stands anywhere. */
export const boxesIn = ({ bytes }: Files): ReadonlySet<string> =>
  new Set(bytes.flatMap((bytes) => bytes.toString("latin1").match(BOX) ?? []))

type Keys = ReadonlyMap<string, Uint8Array>

/** All that could be a key to something of this account, given everything there is: wrapped, in hexadecimal, or as plain bytes. */
export const keysIn = (files: Files, account: string): Keys => {
  const keys = new Map<string, Uint8Array>()
  const add = (key: Uint8Array) => keys.set(Buffer.from(key).toString("base64"), key)
  const boxes = boxesIn(files)
  const digits = new Set(files.bytes.flatMap((file) => file.toString("latin1").match(/[0-9a-f]{64}/giu) ?? []))
  for (const text of digits) {
    const master = Buffer.from(text, "hex")
    add(master)
    const wrapping = Buffer.from(hkdfSync("sha256", master, "", "millrace/v1/wrap", KEY))
    add(wrapping)
    for (const box of boxes) {
      const key = decrypt(wrapping, ["key", `account:${account}`, null], box)
      if (key !== undefined) add(key)
    }
  }
  return keys
}

/** The keys of something of an account, such as `inbox:inbox_...`, that the account's keys unwrap. */
export const keysBelow = (files: Files, account: string, keys: Keys, subject: string): ReadonlyArray<Uint8Array> =>
  [...keys.values()].flatMap((key) => [...boxesIn(files)].flatMap((box) => decrypt(key, ["key", subject, `account:${account}`], box) ?? []))

/** Every 32 bytes in a row that stand anywhere: one of a subject's ciphertexts shows whether its key is among them. */
export function* windowsOf({ bytes }: Files): Generator<Uint8Array> {
  for (const file of bytes) for (let at = 0; at + KEY <= file.length; at++) yield file.subarray(at, at + KEY)
}

interface Ciphertext {
  /** Whose key seals it. */
  readonly subject: string
  readonly purpose: string
  readonly sealed: string
}

/** What is sealed, in latin1; undefined if none of the keys opens it. */
export const open = (keys: Iterable<Uint8Array>, { purpose, sealed, subject }: Ciphertext): string | undefined => {
  for (const key of keys) {
    const text = decrypt(key, ["text", subject, purpose], sealed)
    if (text !== undefined) return text.toString("latin1")
  }
  return undefined
}

/** The secret at the end of a blob, as it is sealed. */
export const sealedSecretOf = (blob: Buffer): string => /v1\.[A-Za-z0-9_-]+(?=.{2}MRB1$)/su.exec(blob.toString("latin1"))?.[0] ?? ""

/** The first chunk of a blob, given its secret in latin1. */
export const firstChunk = (blob: Buffer, secret: string): string => {
  const stored = blob.subarray(0, Math.min(64 * 1024 + TAG, blob.length - sealedSecretOf(blob).length - 6))
  return unlock(Buffer.from(secret, "latin1").subarray(0, KEY), Buffer.alloc(NONCE), Buffer.of(), stored)?.toString("latin1") ?? ""
}
