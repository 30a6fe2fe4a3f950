/**
 * What a passkey is asked to sign: random bytes, the time of their end, and a MAC of both and of what they are for. Whoever has the master
 * key can check it, so that nothing is kept for a challenge that nobody answers. That it is signed once, the passkey's stream decides.
 */
import { hash as digest } from "node:crypto"
import type { Timestamp } from "../Timestamp.ts"
import type { RandomBytes } from "../vault/RandomBytes.ts"
import * as Token from "./Token.ts"

/** For how long a challenge can be signed: 5 minutes, in milliseconds. */
export const LIFETIME = 5 * 60_000

const NONCE = 16
const TIME = 8
const MAC = 32

/** A challenge as the log has it. */
export interface Challenge {
  /** SHA-256 of its text, base64url. */
  readonly hash: string
  readonly endsAt: Timestamp
}

/** HMAC under the host's key, base64url. */
type Hmac = (text: string) => string

/** What a challenge is for: to add a passkey in a session, or to sign in with a browser. */
export type Purpose =
  | { readonly _tag: "add"; readonly accountId: string; readonly sessionId: string }
  /** `browser`: the secret that the browser keeps. */
  | { readonly _tag: "signIn"; readonly browser: string }

const nameOf = (purpose: Purpose): string =>
  purpose._tag === "add" ? `add:${purpose.accountId}:${purpose.sessionId}` : `signIn:${purpose.browser}`

const macOf = (hmac: Hmac, head: Buffer, purpose: Purpose): string => hmac(`${head.toString("base64url")}.${nameOf(purpose)}`)

/** A new challenge, base64url. */
export const make = (hmac: Hmac, random: RandomBytes, purpose: Purpose, now: Timestamp): string => {
  const head = Buffer.alloc(NONCE + TIME)
  head.set(random(NONCE))
  head.writeBigUInt64BE(BigInt(now + LIFETIME), NONCE)
  return Buffer.concat([head, Buffer.from(macOf(hmac, head, purpose), "base64url")]).toString("base64url")
}

/** Reads a challenge. Undefined if it is not from here, or for something else. Whether it has ended is not checked. */
export const read = (hmac: Hmac, purpose: Purpose, text: string): Challenge | undefined => {
  const bytes = Buffer.from(text, "base64url")
  if (bytes.length !== NONCE + TIME + MAC) return undefined
  const head = bytes.subarray(0, NONCE + TIME)
  if (!Token.isEqual(macOf(hmac, head, purpose), bytes.subarray(NONCE + TIME).toString("base64url"))) return undefined
  return { hash: digest("sha256", text, "base64url"), endsAt: Number(head.readBigUInt64BE(NONCE)) }
}
