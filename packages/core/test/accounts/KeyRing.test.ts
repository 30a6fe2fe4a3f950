import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { EventStore } from "@millrace/event-sourcing"
import { Effect, Exit, Fiber, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import * as FaultyEventStore from "../../../testing/src/FaultyEventStore.ts"
import { format, newSecret, parse } from "../../src/accounts/ApiKey.ts"
import { outcome } from "../vault/Vaults.ts"
import { host, logText, settle, stores, testing } from "./Hosts.ts"

const ADA = "ada@example.com"
const range = (n: number) => Array.from({ length: n }, (_, i) => i)

const opened = Effect.gen(function* () {
  const shared = yield* stores
  const [here, there] = [yield* host(shared), yield* host(shared)]
  return { shared, here, there, accountId: yield* here.registration.open(ADA) }
})

setFlagsFromString("--expose-gc")
const gc: () => void = runInNewContext("gc")

/** Bytes in use after garbage collection. */
const heapUsed = (): number => {
  gc()
  gc()
  return process.memoryUsage().heapUsed
}

describe("keys that were never issued", () => {
  testing(
    "leave nothing in memory, however many are tried",
    Effect.gen(function* () {
      const { here } = yield* opened
      const digits = "0123456789abcdefghjkmnpqrstvwxyz"
      const secret = newSecret((size) => new Uint8Array(size).fill(3))
      const keyId = (i: number) => [...i.toString(32).padStart(26, "0")].map((digit) => digits[Number.parseInt(digit, 32)]).join("")
      const attempt = (from: number, count: number) =>
        Effect.forEach(
          range(count),
          (i) => Effect.flip(here.keys.authenticate(Redacted.value(format({ keyId: keyId(from + i), secret })))),
          { discard: true }
        )
      yield* attempt(0, 1_000)
      const before = heapUsed()
      yield* attempt(1_000, 20_000)
      // A stream in memory takes about 700 bytes
      expect((heapUsed() - before) / 20_000).toBeLessThan(50)
    })
  )
})

describe("a key", () => {
  testing(
    "authenticates its account in every process until it is revoked",
    Effect.gen(function* () {
      const { here, there, accountId } = yield* opened
      for (const [issuer, other] of [
        [here, there],
        [there, here]
      ] as const) {
        const { key, keyId } = yield* issuer.keys.issue(accountId)
        const text = Redacted.value(key)
        for (const { keys } of [other, issuer])
          expect(yield* keys.authenticate(text)).toMatchObject({ accountId, keyId, scopes: ["read", "operations"], expiresAt: null })
        yield* other.keys.revoke(accountId, keyId)
        for (const { keys } of [issuer, other]) expect(yield* outcome(keys.authenticate(text))).toBe("Unauthorized")
      }
    })
  )

  testing(
    "is refused with the same error if it is missing, malformed, unknown, wrong, revoked, expired, or of a closed account",
    Effect.gen(function* () {
      const { here, there, accountId } = yield* opened
      const issue = Effect.map(here.keys.issue(accountId), ({ key, keyId }) => ({ text: Redacted.value(key), keyId }))
      const good = yield* issue
      const revoked = yield* issue
      yield* there.keys.revoke(accountId, revoked.keyId)
      const expired = yield* here.keys.issue(accountId, { expiresAt: 1_000 })
      const secret = newSecret((size) => new Uint8Array(size).fill(3))
      const [wrong, unknown] = [format({ keyId: good.keyId, secret }), format({ keyId: "0".repeat(26), secret })]
      expect(yield* here.keys.authenticate(Redacted.value(expired.key))).toMatchObject({ accountId })
      yield* TestClock.adjust(1_000)
      const bad = [
        undefined,
        "",
        "Bearer",
        `${good.text}x`,
        good.text.replace("mr_", "rm_"),
        revoked.text,
        ...[wrong, unknown, expired.key].map(Redacted.value)
      ]
      for (const text of bad)
        for (const { keys } of [here, there]) expect({ ...(yield* Effect.flip(keys.authenticate(text))) }).toEqual({ _tag: "Unauthorized" })
      expect(yield* here.keys.authenticate(good.text)).toMatchObject({ accountId })
      yield* there.registration.suspend(accountId)
      expect(yield* here.keys.authenticate(good.text)).toMatchObject({ accountId })
      yield* there.registration.close(accountId)
      expect(yield* outcome(here.keys.authenticate(good.text))).toBe("Unauthorized")
    })
  )

  testing(
    "is authenticated at once in the same way, or not at once, whatever another process does to it",
    Effect.gen(function* () {
      const { here, there, accountId } = yield* opened
      const { authenticate } = here.keys
      const { key, keyId } = yield* there.keys.issue(accountId)
      const good = Redacted.value(key)
      const wrong = Redacted.value(format({ keyId, secret: newSecret((size) => new Uint8Array(size).fill(3)) }))
      expect(authenticate.now?.(good)).toBeUndefined()
      const known = yield* authenticate(good)
      expect(authenticate.now?.(good)).toEqual(known)
      for (const text of ["", "mr_live_x", wrong]) expect(authenticate.now?.(text)).toBeUndefined()
      yield* there.keys.rotate(accountId, keyId, 1_000)
      expect(authenticate.now?.(good)).toBeUndefined()
      expect(yield* authenticate(good)).toEqual({ ...known, expiresAt: 1_000 })
      expect(authenticate.now?.(good)).toEqual({ ...known, expiresAt: 1_000 })
      yield* TestClock.adjust(1_000)
      expect(authenticate.now?.(good)).toBeUndefined()
    })
  )

  testing(
    "of an account that another process closed, or that was revoked, is not admitted at once",
    Effect.gen(function* () {
      const { here, there, accountId } = yield* opened
      const { authenticate } = here.keys
      const [first, second] = [yield* there.keys.issue(accountId), yield* there.keys.issue(accountId)]
      const texts = [first, second].map(({ key }) => Redacted.value(key))
      for (const text of texts) yield* authenticate(text)
      for (const text of texts) expect(authenticate.now?.(text)).toMatchObject({ accountId })
      yield* there.keys.revoke(accountId, first.keyId)
      expect(texts.map((text) => authenticate.now?.(text)?.keyId)).toEqual([undefined, second.keyId])
      yield* there.registration.close(accountId)
      expect(texts.map((text) => authenticate.now?.(text))).toEqual([undefined, undefined])
      for (const text of texts) expect(yield* outcome(authenticate(text))).toBe("Unauthorized")
      expect(texts.map((text) => authenticate.now?.(text))).toEqual([undefined, undefined])
    })
  )

  testing(
    "has its given scopes without duplicates; by default, reading and billed operations",
    Effect.gen(function* () {
      const { here, accountId } = yield* opened
      const scopesOf = (options: Parameters<typeof here.keys.issue>[1]) =>
        Effect.gen(function* () {
          const { key } = yield* here.keys.issue(accountId, options)
          return (yield* here.keys.authenticate(Redacted.value(key))).scopes
        })
      expect(yield* scopesOf({})).toEqual(["read", "operations"])
      expect(yield* scopesOf({ scopes: ["billing", "keys", "billing"] })).toEqual(["billing", "keys"])
      expect(yield* scopesOf({ scopes: [] })).toEqual([])
    })
  )

  testing(
    "is not in the log, neither its secret nor its label",
    Effect.gen(function* () {
      const { shared, here, accountId } = yield* opened
      const { key, keyId } = yield* here.keys.issue(accountId, { label: "canary label" }, { actor: "root", reason: "asked" })
      const log = yield* logText(shared)
      expect(log).toContain(`apiKey-${keyId}`)
      expect(log).toContain("asked")
      expect(log).not.toContain("canary")
      expect(log).not.toContain(parse(Redacted.value(key))?.secret ?? "ApiKeyIssued")
    })
  )

  testing(
    "is not issued with an expiry in the past, nor to an account that is absent or closed",
    Effect.gen(function* () {
      const { here, there, accountId } = yield* opened
      expect(yield* outcome(here.keys.issue(accountId, { expiresAt: 0 }))).toBe("ExpiryPast")
      expect(yield* outcome(here.keys.issue("acc_none"))).toBe("AccountNotFound")
      yield* there.registration.close(accountId)
      expect(yield* outcome(here.keys.issue(accountId))).toBe("AccountClosed")
      expect(yield* here.keys.list(accountId)).toEqual([])
    })
  )

  testing(
    "that is unknown or of another account cannot be revoked",
    Effect.gen(function* () {
      const { here, accountId } = yield* opened
      const { key, keyId } = yield* here.keys.issue(accountId)
      const other = yield* here.registration.open("bob@example.com")
      for (const [account, id] of [
        [other, keyId],
        [accountId, "0".repeat(26)],
        [accountId, ""],
        [accountId, "../x"],
        [accountId, "x".repeat(1_000)]
      ] as const)
        expect(yield* outcome(here.keys.revoke(account, id))).toBe("ApiKeyNotFound")
      expect(yield* here.keys.authenticate(Redacted.value(key))).toMatchObject({ keyId })
    })
  )

  testing(
    "is asked for together with its account, and not its account for a wrong secret",
    Effect.gen(function* () {
      const { shared, here: issuer, accountId } = yield* opened
      const { key } = yield* issuer.keys.issue(accountId)
      const asked: Array<string> = []
      // A store elsewhere, which answers after 10 ms and tells no end of a stream at once
      const lastRevision: EventStore.LastRevision = (stream) => {
        asked.push(stream)
        return Effect.delay(shared.events.lastRevision(stream), 10)
      }
      const here = yield* host({ ...shared, events: { ...shared.events, lastRevision } })
      const { keyId, secret } = parse(Redacted.value(key)) ?? { keyId: "", secret: "" }
      const wrong = Redacted.value(format({ keyId, secret: [...secret].reverse().join("") }))
      const authenticated = yield* yield* settle(here.keys.authenticate(Redacted.value(key)))
      for (const [text, questions] of [
        [Redacted.value(key), [`apiKey-${keyId}`, `account-${accountId}`]],
        [wrong, [`apiKey-${keyId}`]]
      ] as const) {
        asked.length = 0
        const fiber = yield* Effect.forkChild(Effect.exit(here.keys.authenticate(text)), { startImmediately: true })
        expect(asked).toEqual(questions)
        yield* TestClock.adjust(10)
        const exit = yield* Fiber.join(fiber)
        expect(Exit.isSuccess(exit) ? exit.value : "refused").toEqual(text === wrong ? "refused" : authenticated)
      }
      yield* issuer.keys.revoke(accountId, keyId)
      expect(yield* outcome(yield* settle(here.keys.authenticate(Redacted.value(key))))).toBe("Unauthorized")
    })
  )

  testing(
    "cannot be checked while the store fails; the error is not `Unauthorized`",
    Effect.gen(function* () {
      const { shared, here, accountId } = yield* opened
      const { key } = yield* here.keys.issue(accountId)
      let met = 0
      for (const n of range(8)) {
        const events = FaultyEventStore.make(shared.events, { plan: { others: [n + 1] } })
        const { keys } = yield* host({ ...shared, events })
        const first = yield* outcome(keys.authenticate(Redacted.value(key)))
        if (first === "StoreUnavailable") met++
        else expect(first).toMatchObject({ accountId })
        const again = Effect.retry(keys.authenticate(Redacted.value(key)), { times: 1 })
        expect(yield* again).toMatchObject({ accountId })
      }
      expect(met).toBeGreaterThan(1)
    })
  )
})

describe("the list of keys", () => {
  testing(
    "shows all keys of an account, oldest first, with those that another process just issued",
    Effect.gen(function* () {
      const { here, there, accountId } = yield* opened
      const other = yield* here.registration.open("bob@example.com")
      yield* here.keys.issue(other, { label: "bob's" })
      const first = yield* here.keys.issue(accountId, { label: "laptop" })
      yield* TestClock.adjust(10)
      const second = yield* there.keys.issue(accountId, { scopes: ["read"], expiresAt: 99_000 })
      const expected = [
        { keyId: first.keyId, scopes: ["read", "operations"], issuedAt: 0, expiresAt: null, revokedAt: null, label: "laptop" },
        { keyId: second.keyId, scopes: ["read"], issuedAt: 10, expiresAt: 99_000, revokedAt: null, label: null }
      ]
      for (const { keys } of [here, there]) expect(yield* keys.list(accountId)).toEqual(expected)
      yield* TestClock.adjust(10)
      yield* there.keys.revoke(accountId, first.keyId)
      for (const { keys } of [here, there]) expect(yield* keys.list(accountId)).toEqual([{ ...expected[0], revokedAt: 20 }, expected[1]])
      expect(yield* here.keys.list("acc_none")).toEqual([])
      expect(yield* here.keys.list(other)).toMatchObject([{ label: "bob's" }])
    })
  )

  testing(
    "is complete at once when two processes issue keys concurrently",
    Effect.gen(function* () {
      const { here, there, accountId } = yield* opened
      const hosts = [here, there]
      const issued = yield* Effect.forEach(range(40), (i) => hosts[i % 2]!.keys.issue(accountId), { concurrency: "unbounded" })
      for (const { keys } of hosts)
        expect((yield* keys.list(accountId)).map(({ keyId }) => keyId).sort()).toEqual(issued.map(({ keyId }) => keyId).sort())
    })
  )

  testing(
    "is restored from its stored state after a restart",
    Effect.gen(function* () {
      const { shared, here, accountId } = yield* opened
      const { keyId } = yield* here.keys.issue(accountId, { label: "laptop" })
      yield* Effect.scoped(Effect.flatMap(host(shared), ({ keys }) => keys.list(accountId)))
      expect((yield* shared.states.list("projections")).map(({ key }) => key)).toEqual(["keysByAccount"])
      const read: Array<EventStore.Position> = []
      const subscribe = (after: EventStore.Position) => {
        read.push(after)
        return shared.events.subscribe(after)
      }
      const { keys } = yield* host({ ...shared, events: { ...shared.events, subscribe } })
      expect(yield* keys.list(accountId)).toMatchObject([{ keyId, label: "laptop" }])
      expect(read).not.toContain(EventStore.start)
      expect(yield* keys.listStatus).toMatchObject({ stopped: undefined })
      expect(keys.refused()).toEqual([])
    })
  )
})
