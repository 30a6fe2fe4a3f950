/** The form of sealed texts and wrapped keys: `v1.`, then base64url of a nonce and what AES-GCM made of the text. */
import * as Aead from "./Aead.ts"
import type { RandomBytes } from "./RandomBytes.ts"

const VERSION = "v1."
const NONCE_CHARS = 16

/** The associated data that binds a box to its subject and purpose. JSON keeps the parts apart. */
export const context = (kind: "text" | "key", ...parts: ReadonlyArray<string | null>): Buffer =>
  Buffer.from(JSON.stringify([VERSION, kind, ...parts]))

export const unbox = (key: Aead.Key, associated: Uint8Array, text: string): Buffer | undefined => {
  const digits = text.slice(VERSION.length)
  const bytes = Buffer.from(digits, "base64url")
  // Node ignores invalid digits, and the unused bits of the last digit
  if (!text.startsWith(VERSION) || digits.length < NONCE_CHARS || bytes.toString("base64url") !== digits) return undefined
  return Aead.decrypt(key, bytes.subarray(0, Aead.NONCE), associated, bytes.subarray(Aead.NONCE))
}

export const box = (random: RandomBytes, key: Aead.Key, associated: Uint8Array, plaintext: Uint8Array): string => {
  const nonce = random(Aead.NONCE)
  return VERSION + Buffer.concat([nonce, Aead.encrypt(key, nonce, associated, plaintext)]).toString("base64url")
}
