/**
 * A token that a browser or a mail carries: the id of a stream, and a secret of 256 random bits. The log holds only a hash of the secret.
 * As text: `<id>.<secret>`, the secret in base64url.
 */
import { createHmac, hash as digest, timingSafeEqual } from "node:crypto"
import { Redacted } from "effect"
import type { RandomBytes } from "../vault/RandomBytes.ts"

/** Bytes of a secret. */
const SECRET = 32
const TOKEN = /^(?<id>[a-z]+_[0-9A-HJKMNP-TV-Z]{26})\.(?<secret>[A-Za-z0-9_-]{43})$/u
const TEXT = /^[A-Za-z0-9_-]{43}$/u

export interface Token {
  readonly id: string
  readonly secret: string
}

export const newSecret = (random: RandomBytes): string => Buffer.from(random(SECRET)).toString("base64url")

/** Whether a text has the format of a secret. */
export const isSecret = (text: string): boolean => TEXT.test(text)

export const format = ({ id, secret }: Token): Redacted.Redacted<string> => Redacted.make(`${id}.${secret}`, { label: "Token" })

/** The parts of a token whose id has this prefix, such as `ses_`; undefined when the text is none. */
export const parse = (prefix: string, text: string): Token | undefined => {
  const { id, secret } = TOKEN.exec(text)?.groups ?? {}
  return id === undefined || secret === undefined || !id.startsWith(prefix) ? undefined : { id, secret }
}

/** What the log keeps of a secret: its SHA-256, base64url. A secret of 256 random bits needs no slower hash. */
export const hashOf = (secret: string): string => digest("sha256", secret, "base64url")

/** Whether two texts are equal. Takes as long for every text of one length. */
export const isEqual = (expected: string, actual: string): boolean => {
  const [a, b] = [Buffer.from(expected), Buffer.from(actual)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** Whether a secret has this hash. */
export const matches = (hash: string, secret: string): boolean => isEqual(hash, hashOf(secret))

/** A further secret that derives from this one, for one purpose: HMAC-SHA-256, base64url. It does not reveal this one. */
export const derive = (secret: string, purpose: string): string => createHmac("sha256", secret).update(purpose).digest("base64url")
