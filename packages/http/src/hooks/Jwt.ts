/** Tokens that providers sign with a shared secret: RFC 7515 with HMAC, and no other algorithm. */
import { hmac, isEqual } from "./Signature.ts"

const ALGORITHMS = { HS256: "sha256", HS384: "sha384", HS512: "sha512" } as const

export type Claims = Readonly<Record<string, unknown>>

const objectOf = (part: string): Claims | undefined => {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString())
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Claims) : undefined
  } catch {
    return undefined
  }
}

/** The claims of a token with a right signature; undefined for any other text. Times are the caller's to check. */
export const verified = (token: string, secret: string): Claims | undefined => {
  const [header = "", payload = "", signature = "", ...more] = token.split(".")
  const name = objectOf(header)?.["alg"]
  const algorithm = typeof name === "string" && Object.hasOwn(ALGORITHMS, name) ? ALGORITHMS[name as keyof typeof ALGORITHMS] : undefined
  if (algorithm === undefined || more.length > 0) return undefined
  return isEqual(hmac(algorithm, secret, `${header}.${payload}`, "base64url"), signature) ? objectOf(payload) : undefined
}

/** A claim that is a number of seconds since 1970; undefined if it is none. */
export const seconds = (claims: Claims, name: string): number | undefined => {
  const value = claims[name]
  return typeof value === "number" && Number.isFinite(value) ? value : undefined
}

export const text = (claims: Claims, name: string): string | undefined => {
  const value = claims[name]
  return typeof value === "string" ? value : undefined
}
