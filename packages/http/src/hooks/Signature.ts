/** What the signatures of providers have in common: a request as it was signed, and comparisons in constant time. */
import { createHmac, hash, timingSafeEqual } from "node:crypto"

/** A request to a hook, as it came. */
export interface SignedRequest {
  /** The addresses under which the provider may have called: the public one, or those that `Host` allows. */
  readonly urls: ReadonlyArray<string>
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Uint8Array
  /** The parameters of a form, in their order; none for another body. */
  readonly form: ReadonlyArray<readonly [name: string, value: string]>
  /** Seconds since 1970. */
  readonly now: number
}

/** Compares in a time that does not depend on where two texts differ. */
export const isEqual = (a: string, b: string): boolean => {
  const [one, other] = [a, b].map((text) => Buffer.from(hash("sha256", text, "hex"), "hex"))
  return one !== undefined && other !== undefined && timingSafeEqual(one, other)
}

export const hmac = (
  algorithm: "sha1" | "sha256" | "sha384" | "sha512",
  key: string,
  text: string,
  encoding: "base64" | "base64url" = "base64"
): string => createHmac(algorithm, key).update(text).digest(encoding)

export const sha256 = (data: string | Uint8Array): string => hash("sha256", data, "hex")

/** The values of each parameter, by name in the order of UTF-16 units. */
export const byName = (pairs: Iterable<readonly [string, string]>): ReadonlyArray<readonly [string, ReadonlyArray<string>]> => {
  const values = new Map<string, Array<string>>()
  for (const [name, value] of pairs) values.set(name, [...(values.get(name) ?? []), value])
  return [...values].sort(([a], [b]) => (a < b ? -1 : 1))
}
