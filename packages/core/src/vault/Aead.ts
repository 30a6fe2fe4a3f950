/** AES-256-GCM with 96-bit nonces and 128-bit tags (NIST SP 800-38D). A box is the ciphertext, then its tag. */
import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from "node:crypto"

const ALGORITHM = "aes-256-gcm"
const OPTIONS = { authTagLength: 16 }

/** Lengths in bytes. */
export const KEY = 32
export const NONCE = 12
export const TAG = OPTIONS.authTagLength

/** A key, as OpenSSL takes it: Node needs several times as long for one that is bytes. */
export type Key = KeyObject

export const keyOf = (bytes: Uint8Array): Key => createSecretKey(bytes)

/** Encrypts to a box. A nonce must be used only once with a key. */
export const encrypt = (key: Key, nonce: Uint8Array, associated: Uint8Array, plaintext: Uint8Array): Buffer => {
  const cipher = createCipheriv(ALGORITHM, key, nonce, OPTIONS).setAAD(associated)
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()])
}

/** The plaintext of a box. Undefined if the key, nonce, associated data or box differs from what was encrypted. */
export const decrypt = (key: Key, nonce: Uint8Array, associated: Uint8Array, box: Uint8Array): Buffer | undefined => {
  if (box.length < TAG) return undefined
  const split = box.length - TAG
  const decipher = createDecipheriv(ALGORITHM, key, nonce, OPTIONS).setAAD(associated).setAuthTag(box.subarray(split))
  const plaintext = decipher.update(box.subarray(0, split))
  try {
    return Buffer.concat([plaintext, decipher.final()])
  } catch {
    return undefined
  }
}
