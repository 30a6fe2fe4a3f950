/**
 * An API key: a secret that authenticates an account, with scopes and an expiry. The key contains the id of its stream, so no index is
 * needed. The log holds only a hash of the secret. Stream `apiKey-{keyId}`.
 *
 * `mr_live_<keyId>_<secret><checksum>`: the key id is a ULID in lower case, the secret 30 digits of base 62 (178 random bits), the checksum
 * 6 more, the CRC-32 of all before it. The checksum reveals a typing error without a read of the store, and a leaked key to a scanner.
 */
import { hash as digest, timingSafeEqual } from "node:crypto"
import { crc32 } from "node:zlib"
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Redacted, Result, Schema } from "effect"
import { Timestamp } from "../Timestamp.ts"
import type { RandomBytes } from "../vault/RandomBytes.ts"

// the key as text

const PREFIX = "mr_live_"
const SECRET = 30
const CHECKSUM = 6
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const KEY = /^mr_live_(?<keyId>[0-9a-hjkmnp-tv-z]{26})_(?<secret>[0-9A-Za-z]{30})(?<checksum>[0-9A-Za-z]{6})$/u
const ID = /^[0-9a-hjkmnp-tv-z]{26}$/u

/** The parts of a key. The secret is shown once, to its owner, and stored nowhere. */
export interface Parts {
  readonly keyId: string
  readonly secret: string
}

const checksum = (text: string): string => {
  let rest = crc32(text)
  let digits = ""
  while (digits.length < CHECKSUM) {
    digits = BASE62.charAt(rest % 62) + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}

/** Whether a text has the format of a key id. */
export const isId = (text: string): boolean => ID.test(text)

/** A new secret. Bytes from 248 on are drawn again, so that each digit is equally likely. */
export const newSecret = (random: RandomBytes): string => {
  let secret = ""
  while (secret.length < SECRET)
    for (const byte of random(SECRET)) if (byte < 248 && secret.length < SECRET) secret += BASE62.charAt(byte % 62)
  return secret
}

export const format = ({ keyId, secret }: Parts): Redacted.Redacted<string> => {
  const text = `${PREFIX}${keyId}_${secret}`
  return Redacted.make(text + checksum(text), { label: "ApiKey" })
}

/** The parts of a key; undefined when the text is no key. */
export const parse = (text: string): Parts | undefined => {
  const { keyId, secret, checksum: sum } = KEY.exec(text)?.groups ?? {}
  if (keyId === undefined || secret === undefined || checksum(text.slice(0, -CHECKSUM)) !== sum) return undefined
  return { keyId, secret }
}

/** What the log keeps of a secret: its SHA-256, base64url. A secret of 178 random bits needs no slower hash. */
export const hashOf = (secret: string): string => digest("sha256", secret, "base64url")

// events

/** What a key may be used for. Everything else is denied. */
export const Scope = Schema.Literals(["read", "operations", "keys", "billing"])
export type Scope = typeof Scope.Type

/** Reading and billed operations; neither payments nor further keys. */
export const DEFAULT_SCOPES: ReadonlyArray<Scope> = ["read", "operations"]

export const ApiKeyEvent = Schema.TaggedUnion({
  ApiKeyIssued: {
    accountId: Schema.String,
    /** SHA-256 of the secret, base64url. */
    hash: Schema.String,
    scopes: Schema.Array(Scope),
    expiresAt: Schema.NullOr(Timestamp),
    /** Sealed by the vault under the account's key. */
    sealedLabel: Schema.NullOr(Schema.String)
  },
  ApiKeyRevoked: {},
  /** Another key takes its place. Both can be used until this one ends, at `endsAt` or at its own expiry, whichever comes first. */
  ApiKeyRotated: { endsAt: Timestamp, successor: Schema.String }
})
export type ApiKeyEvent = typeof ApiKeyEvent.Type

type Issued = Omit<Extract<ApiKeyEvent, { readonly _tag: "ApiKeyIssued" }>, "_tag">

// state

/** `successor`: the id of the key that takes its place, if it was rotated. */
export type ApiKey = { readonly status: "absent" } | ({ readonly status: "issued" | "revoked"; readonly successor?: string } & Issued)

const evolve = (key: ApiKey, event: ApiKeyEvent): ApiKey => {
  switch (event._tag) {
    case "ApiKeyIssued": {
      const { _tag: _, ...issued } = event
      return key.status === "absent" ? { status: "issued", ...issued } : key
    }
    case "ApiKeyRevoked":
      return key.status === "absent" ? key : { ...key, status: "revoked" }
    case "ApiKeyRotated": {
      if (key.status === "absent") return key
      return { ...key, expiresAt: Math.min(key.expiresAt ?? event.endsAt, event.endsAt), successor: event.successor }
    }
  }
}

export const ApiKey: Decider<ApiKey, ApiKeyEvent> = {
  category: "apiKey",
  codec: EventCodec.make(ApiKeyEvent),
  initial: { status: "absent" },
  evolve
}

/** A key that was issued and not revoked. */
export type Usable = Extract<ApiKey, { readonly status: "issued" | "revoked" }> & { readonly status: "issued" }

/** Whether a key is neither revoked nor expired. */
export const isUsable = (key: ApiKey, now: Timestamp): key is Usable =>
  key.status === "issued" && (key.expiresAt === null || now < key.expiresAt)

/** Whether a secret is the key's, and the key is neither revoked nor expired. */
export const admits = (key: ApiKey, secret: string, now: Timestamp): key is Usable => {
  if (key.status === "absent") return false
  const expected = Buffer.from(key.hash)
  const actual = Buffer.from(hashOf(secret))
  const isSame = actual.length === expected.length && timingSafeEqual(actual, expected)
  return isSame && isUsable(key, now)
}

// decisions

export class ApiKeyNotFound extends Schema.TaggedError<ApiKeyNotFound>()("ApiKeyNotFound", { keyId: Schema.String }) {
  override get message(): string {
    return `The account has no key ${this.keyId}`
  }
}

/** The key would have expired before it is issued. */
export class ExpiryPast extends Schema.TaggedError<ExpiryPast>()("ExpiryPast", { expiresAt: Schema.Int }) {
  override get message(): string {
    return "The expiry lies in the past"
  }
}

/** Issues a key under an unused id. `ExpiryPast` if it would have expired already. */
export const issue =
  (issued: Issued) =>
  (key: ApiKey, now: Timestamp): Decision<ApiKeyEvent, ExpiryPast> => {
    if (key.status !== "absent") throw new Error("A key id exists already")
    if (issued.expiresAt !== null && issued.expiresAt <= now) return Result.fail(new ExpiryPast({ expiresAt: issued.expiresAt }))
    return Result.succeed([{ _tag: "ApiKeyIssued", ...issued }])
  }

/** The longest time for which a rotated key can still be used, milliseconds. */
export const LONGEST_OVERLAP = 7 * 24 * 3_600_000

/**
 * Replaces a key by another, and lets it end after `overlap` milliseconds. Repeating it with the same successor decides nothing. A key that
 * was revoked, has ended, was rotated already, or is another account's is not found.
 */
export const rotate =
  (keyId: string, accountId: string, successor: string, overlap: number) =>
  (key: ApiKey, now: Timestamp): Decision<ApiKeyEvent, ApiKeyNotFound> => {
    if (key.status !== "absent" && key.successor === successor && key.accountId === accountId) return Result.succeed([])
    return isUsable(key, now) && key.accountId === accountId && key.successor === undefined
      ? Result.succeed([{ _tag: "ApiKeyRotated", endsAt: now + overlap, successor }])
      : Result.fail(new ApiKeyNotFound({ keyId }))
  }

/** Revokes a key for ever. Another account's key is not found. */
export const revoke =
  (keyId: string, accountId: string) =>
  (key: ApiKey): Decision<ApiKeyEvent, ApiKeyNotFound> => {
    if (key.status === "absent" || key.accountId !== accountId) return Result.fail(new ApiKeyNotFound({ keyId }))
    return Result.succeed(key.status === "revoked" ? [] : [{ _tag: "ApiKeyRevoked" }])
  }
