import { Effect, Redacted } from "effect"
import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { at, given } from "../../../testing/src/GivenWhenThen.ts"
import {
  ApiKey,
  ApiKeyNotFound,
  admits,
  ExpiryPast,
  format,
  hashOf,
  isId,
  issue,
  newSecret,
  parse,
  revoke,
  rotate
} from "../../src/accounts/ApiKey.ts"
import { newKeyId } from "../../src/Ids.ts"
import { check } from "../vault/Property.ts"

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

const digits = (alphabet: string, length: number) =>
  fc.array(fc.constantFrom(...alphabet), { minLength: length, maxLength: length }).map((all) => all.join(""))
const parts = fc.record({ keyId: digits("0123456789abcdefghjkmnpqrstvwxyz", 26), secret: digits(BASE62, 30) })

const KEY_ID = "01arz3ndektsv4rrffq69g5fav"
const SECRET = "0123456789ABCDEFGHIJabcdefghij"
const text = Redacted.value(format({ keyId: KEY_ID, secret: SECRET }))

describe("a key as text", () => {
  test("has its recorded format", () => {
    expect(text).toBe(`mr_live_${KEY_ID}_${SECRET}36M2Wl`)
    expect(hashOf(SECRET)).toBe("eUQExdhSJnGEqstHInY6zAxuFEY3oUoqskRUkh-02w0")
  })

  test("parses into the parts that it was formatted from", () => {
    check(
      fc.property(parts, (key) => {
        const text = Redacted.value(format(key))
        expect(text).toMatch(/^mr_live_[0-9a-z]{26}_[0-9A-Za-z]{36}$/u)
        expect(parse(text)).toEqual(key)
      })
    )
  })

  test("is rejected with any typing error: a character changed, missing, doubled or swapped", () => {
    for (let i = 0; i < text.length; i++) {
      const [before, here = "", next = "", after] = [text.slice(0, i), text[i], text[i + 1], text.slice(i + 1)]
      for (const other of `${BASE62}_- `) if (other !== here) expect(parse(before + other + after)).toBeUndefined()
      expect(parse(before + after)).toBeUndefined()
      expect(parse(before + here + here + after)).toBeUndefined()
      if (next !== here && next !== "") expect(parse(before + next + here + text.slice(i + 2))).toBeUndefined()
    }
  })

  test("is rejected in any other format", () => {
    check(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (other) => void expect(parse(other)).toBeUndefined()),
      1_000
    )
    for (const other of ["", ` ${text}`, `${text}\n`, text.toUpperCase(), text.replace("live", "test")])
      expect(parse(other)).toBeUndefined()
  })

  test("is redacted when it is printed", () => {
    expect(`${format({ keyId: KEY_ID, secret: SECRET })}${JSON.stringify(format({ keyId: KEY_ID, secret: SECRET }))}`).not.toContain("0123")
  })
})

describe("a new secret", () => {
  test("has 30 digits, each equally likely", () => {
    const counts = new Map<string, number>()
    // Four bytes for each digit; the other eight are drawn again
    for (let byte = 0; byte < 256; byte++) {
      let calls = 0
      const secret = newSecret((size) => new Uint8Array(size).fill(++calls === 1 ? byte : 0))
      expect(secret).toMatch(/^(?<digit>[0-9A-Za-z])\k<digit>{29}$/u)
      expect(calls).toBe(byte < 248 ? 1 : 2)
      if (calls === 1) counts.set(secret.charAt(0), (counts.get(secret.charAt(0)) ?? 0) + 1)
    }
    expect([...counts.keys()].sort().join("")).toBe(BASE62)
    expect(new Set(counts.values())).toEqual(new Set([4]))
  })

  test("draws again instead of using bytes that would make some digits more likely", () => {
    let calls = 0
    const random = (size: number) => new Uint8Array(size).fill(++calls < 4 ? 255 : 10)
    expect(newSecret(random)).toBe("A".repeat(30))
  })
})

describe("the stream of a key", () => {
  const issued = {
    accountId: "acc_1",
    hash: hashOf(SECRET),
    scopes: ["read", "operations"],
    expiresAt: 5_000,
    sealedLabel: null
  } as const
  const Issued = { _tag: "ApiKeyIssued", ...issued } as const
  const Revoked = { _tag: "ApiKeyRevoked" } as const

  test("issues a key once, and not with an expiry in the past", () => {
    given(ApiKey, [])
      .when(issue(issued), 4_999)
      .then([Issued])
      .thenState({ status: "issued", ...issued })
    given(ApiKey, [])
      .when(issue(issued), 5_000)
      .thenRefused(new ExpiryPast({ expiresAt: 5_000 }))
    expect(() => given(ApiKey, [at(1, Issued)]).when(issue(issued), 2)).toThrow("exists already")
  })

  test("is replaced once, ends after the overlap or at its own expiry, and only while it can be used", () => {
    const rotated = (endsAt: number) => ({ _tag: "ApiKeyRotated", endsAt, successor: "next" }) as const
    const replace = (overlap: number, accountId = "acc_1", successor = "next") => rotate(KEY_ID, accountId, successor, overlap)
    const missing = new ApiKeyNotFound({ keyId: KEY_ID })
    given(ApiKey, [at(1, Issued)])
      .when(replace(100), 1_000)
      .then([rotated(1_100)])
      .thenState({ status: "issued", ...issued, expiresAt: 1_100, successor: "next" })
    given(ApiKey, [at(1, Issued)])
      .when(replace(9_000), 1_000)
      .then([rotated(10_000)])
      .thenState({ status: "issued", ...issued, successor: "next" })
    given(ApiKey, [at(1, Issued), at(2, rotated(1_100))])
      .when(replace(100), 1_000)
      .then([])
    given(ApiKey, [at(1, Issued), at(2, rotated(1_100))])
      .when(replace(100, "acc_1", "other"), 1_000)
      .thenRefused(missing)
    given(ApiKey, [at(1, Issued), at(2, Revoked)])
      .when(replace(100), 1_000)
      .thenRefused(missing)
    given(ApiKey, [at(1, Issued)])
      .when(replace(100), 5_000)
      .thenRefused(missing)
    given(ApiKey, [at(1, Issued)])
      .when(replace(100, "acc_2"), 1_000)
      .thenRefused(missing)
  })

  test("revokes a key once, for its own account only", () => {
    given(ApiKey, [at(1, Issued)])
      .when(revoke(KEY_ID, "acc_1"))
      .then([Revoked])
      .thenState({ status: "revoked", ...issued })
    given(ApiKey, [at(1, Issued), at(2, Revoked)])
      .when(revoke(KEY_ID, "acc_1"))
      .then([])
    given(ApiKey, [at(1, Issued)])
      .when(revoke(KEY_ID, "acc_2"))
      .thenRefused(new ApiKeyNotFound({ keyId: KEY_ID }))
    given(ApiKey, [])
      .when(revoke(KEY_ID, "acc_1"))
      .thenRefused(new ApiKeyNotFound({ keyId: KEY_ID }))
  })

  test("never admits a revoked key again", () => {
    const after = [Issued, Revoked, Issued, Revoked].reduce((key, event) => ApiKey.evolve(key, event, 0), ApiKey.initial)
    expect(after.status).toBe("revoked")
  })

  test("admits its secret only, until it expires or is revoked", () => {
    const key = ApiKey.evolve(ApiKey.initial, Issued, 1)
    const forEver = ApiKey.evolve(ApiKey.initial, { ...Issued, expiresAt: null }, 1)
    expect(admits(key, SECRET, 4_999)).toBe(true)
    expect(admits(key, SECRET, 5_000)).toBe(false)
    expect(admits(forEver, SECRET, Number.MAX_SAFE_INTEGER)).toBe(true)
    expect(admits(ApiKey.evolve(key, Revoked, 2), SECRET, 3)).toBe(false)
    expect(admits(ApiKey.initial, SECRET, 3)).toBe(false)
    check(fc.property(digits(BASE62, 30), (secret) => void expect(admits(key, secret, 2)).toBe(secret === SECRET)))
    // A hash of another length never matches
    expect(admits(ApiKey.evolve(ApiKey.initial, { ...Issued, hash: "" }, 1), SECRET, 2)).toBe(false)
  })

  test("has a new id in the format of key ids", () => {
    const ids = Array.from({ length: 100 }, () => Effect.runSync(newKeyId))
    expect(ids.every(isId)).toBe(true)
    expect(new Set(ids).size).toBe(100)
  })
})
