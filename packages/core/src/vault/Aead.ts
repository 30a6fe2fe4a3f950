/** AES-256-GCM with 96-bit nonces and 128-bit tags (NIST SP 800-38D). A box is the ciphertext, then its tag. */
import { createCipheriv, createDecipheriv } from "node:crypto"

const ALGORITHM = "aes-256-gcm"
const OPTIONS = { authTagLength: 16 }

/** Bytes. */
export const KEY = 32
export const NONCE = 12
export const TAG = OPTIONS.authTagLength

/** A nonce serves once for each key. */
export const encrypt = (key: Uint8Array, nonce: Uint8Array, associated: Uint8Array, plaintext: Uint8Array): Buffer => {
  const cipher = createCipheriv(ALGORITHM, key, nonce, OPTIONS).setAAD(associated)
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()])
}

/** Undefined when anything of it is not as it was. */
export const decrypt = (key: Uint8Array, nonce: Uint8Array, associated: Uint8Array, box: Uint8Array): Buffer | undefined => {
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
