import crypto, { createDecipheriv, hkdfSync, type KeyObject, randomBytes } from "node:crypto"
import { syncBuiltinESMExports } from "node:module"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { Effect, Result, Schema } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { describe, expect } from "vitest"
import * as Aead from "../../src/vault/Aead.ts"
import { RandomBytes } from "../../src/vault/RandomBytes.ts"
import { ofAccount, ofJob, type Subject, type Vault } from "../../src/vault/Vault.ts"
import * as FaultyStateStore from "./FaultyStateStore.ts"
import { checkAsync } from "./Property.ts"
import { MASTER, open, outcome, testing } from "./Vaults.ts"

const account = ofAccount("acc_1")
const job = ofJob("job_1", "acc_1")
const OTHER_MASTER = "ff".repeat(32)

// Written by the first release, with the master key of these tests
const GOLDEN_HMAC = "H_qcoWeusyl9Zb3IFmZBNDzDbyYmgiD5UsH7giseovM"
const GOLDEN_SEALED = "v1.l8Ixq6h40MM0lPplaep8uOI-F-lvRDS_BdJFiWIJn8ggLHr5ZAXNiGs"
const GOLDEN_ROWS = [
  {
    space: "vaultKeys",
    key: "account:acc_1",
    value:
      "eyJwYXJlbnQiOm51bGwsIndyYXBwZWQiOiJ2MS5DdlZYdHVOOUFGOWQyZC1qRW5VZHRqQWJNSWdxUkdYTnBNTVVvMlJ0cVNfdjVGeXUxUENnSl9tcml1ZkxQNkVRODNWcU8yRWp2NFFMMFdJcSJ9"
  },
  {
    space: "vaultKeys",
    key: "job:job_1",
    value:
      "eyJwYXJlbnQiOiJhY2NvdW50OmFjY18xIiwid3JhcHBlZCI6InYxLnNnOWJraWluVlBsTGg3Y0t4ODk5TkNqdFFyWU5jenpMYVBXR0NiQnZRSll4Z244cS0zYUdxY2ZlbXk5VXhjNGVVQ1l4aVNjdmxnel85cDduIn0"
  },
  { space: "vaultSubjects", key: "account:acc_1", value: "AQ" },
  { space: "vaultSubjects", key: "job:job_1", value: "AQ" },
  { space: "vaultMasterKey", key: "check", value: "57f5tPplyO6p4a0zF_6YCVTdtoXRwM1HGWvBxN-Vf6I" }
]

const inMemory = Effect.gen(function* () {
  const store = yield* StateStore.StateStore
  return { store, vault: yield* open(store) }
})

/** Checks a property on one vault for all its cases. */
const forAll = <T>(arbitrary: fc.Arbitrary<T>, body: (vault: Vault["Service"], value: T) => Effect.Effect<unknown, unknown>) =>
  Effect.flatMap(inMemory, ({ vault }) =>
    Effect.promise(() => checkAsync(fc.asyncProperty(arbitrary, (value) => Effect.runPromise(Effect.asVoid(body(vault, value))))))
  )

const subjects: fc.Arbitrary<Subject> = fc.oneof(
  fc.string({ minLength: 1, maxLength: 20, unit: "binary" }).map((name) => `account:${name}`),
  fc.tuple(fc.string({ maxLength: 9 }), fc.constantFrom("a", "b")).map(([name, account]) => ofJob(`${account}/${name}`, account))
)
const texts = fc.string({ maxLength: 300, unit: "grapheme" })

describe("a sealed text", () => {
  testing(
    "opens again, and differs each time it is sealed",
    forAll(fc.tuple(subjects, fc.string({ maxLength: 20 }), texts), (vault, [subject, purpose, text]) =>
      Effect.gen(function* () {
        const sealed = yield* vault.seal(subject, purpose, text)
        expect(sealed).toMatch(/^v1\.[\w-]+$/u)
        expect(yield* vault.open(subject, purpose, sealed)).toBe(text)
        expect(yield* vault.seal(subject, purpose, text)).not.toBe(sealed)
      })
    )
  )

  testing(
    "may have any bytes",
    forAll(fc.uint8Array({ maxLength: 2_000 }), (vault, bytes) =>
      Effect.gen(function* () {
        const sealed = yield* vault.seal(account, "bytes", bytes)
        expect(Buffer.from(yield* vault.openBytes(account, "bytes", sealed)).equals(Buffer.from(bytes))).toBe(true)
      })
    )
  )

  testing(
    "with any character changed, added or removed is refused",
    Effect.gen(function* () {
      const { vault } = yield* inMemory
      const sealed = yield* vault.seal(account, "label", "a secret label")
      const meddled = [`${sealed}A`, `${sealed}=`, ` ${sealed}`, `${sealed}\n`, "", "v1.", sealed.replace("v1.", "v2.")]
      for (let i = 0; i < sealed.length; i++) {
        meddled.push(sealed.slice(0, i), sealed.slice(0, i) + sealed.slice(i + 1))
        for (const digit of ["A", "B", "_", "9", "!"])
          if (sealed[i] !== digit) meddled.push(sealed.slice(0, i) + digit + sealed.slice(i + 1))
      }
      for (const text of meddled) expect([text, yield* outcome(vault.open(account, "label", text))]).toEqual([text, "Tampered"])
    })
  )

  testing(
    "opens only for its own subject and purpose",
    forAll(fc.tuple(subjects, subjects, fc.string(), fc.string()), (vault, [subject, another, purpose, other]) =>
      Effect.gen(function* () {
        const sealed = yield* vault.seal(subject, purpose, "x")
        yield* vault.seal(another, purpose, "y")
        const isSame = JSON.stringify(subject) === JSON.stringify(another)
        expect(yield* outcome(vault.open(another, purpose, sealed))).toBe(isSame ? "x" : "Tampered")
        expect(yield* outcome(vault.open(subject, other, sealed))).toBe(purpose === other ? "x" : "Tampered")
      })
    )
  )

  testing(
    "does not open for a subject without a key",
    Effect.gen(function* () {
      const { vault } = yield* inMemory
      const sealed = yield* vault.seal(account, "label", "x")
      expect(yield* outcome(vault.open("account:none", "label", sealed))).toBe("SubjectDestroyed")
    })
  )

  testing(
    "opens when more keys are in use than the memory holds",
    Effect.gen(function* () {
      const { vault } = yield* inMemory
      const names = Array.from({ length: 1_100 }, (_, i) => ofJob(`job_${i}`, `acc_${i % 7}`))
      const sealed = yield* Effect.forEach(names, (name, i) => vault.seal(name, "n", String(i)))
      const opened = yield* Effect.forEach(names, (name, i) => vault.open(name, "n", sealed[i] ?? ""))
      expect(opened).toEqual(names.map((_, i) => String(i)))
    })
  )

  testing(
    "is sealed with one key when several processes create the key concurrently",
    Effect.gen(function* () {
      const { store, vault } = yield* inMemory
      const another = yield* open(store)
      const sealed = yield* Effect.forEach(
        Array.from({ length: 64 }, (_, i) => i),
        (i) => (i % 2 === 0 ? vault : another).seal(job, "n", String(i)),
        { concurrency: "unbounded" }
      )
      for (const [i, text] of sealed.entries()) expect(yield* vault.open(job, "n", text)).toBe(String(i))
      expect(yield* store.list("vaultKeys")).toHaveLength(2)
    })
  )
})

describe("the first text of a subject", () => {
  const put = (key: string) => (sealed: string) => [{ _tag: "put", space: "texts", key, value: Buffer.from(sealed) } as const]
  const textOf = (store: StateStore.StateStore["Service"], key: string) =>
    Effect.map(store.get("texts", key), (entry) => entry && Buffer.from(entry.value).toString())

  testing(
    "is written with the new key, in one write, and a later one under that key",
    Effect.gen(function* () {
      const store = yield* StateStore.StateStore
      const writes: Array<number> = []
      const write: StateStore.StateStore["Service"]["write"] = (changes) => {
        writes.push(changes.length)
        return store.write(changes)
      }
      const vault = yield* open({ ...store, write })
      yield* vault.seal(account, "p", "x")
      writes.length = 0
      yield* vault.sealFirst(job, "p", "first", put("1"))
      // The key, the note that the subject had one, the check of the parent's key, and the text
      expect(writes).toEqual([4])
      writes.length = 0
      yield* vault.sealFirst(job, "p", "second", put("2"))
      // The key was there, so nothing of the first write was carried out
      expect(writes).toEqual([4, 1])
      const other = yield* open(store)
      expect(yield* other.open(job, "p", (yield* textOf(store, "1")) ?? "")).toBe("first")
      expect(yield* other.open(job, "p", (yield* textOf(store, "2")) ?? "")).toBe("second")
      yield* vault.destroy(account)
      for (const key of ["1", "2"]) expect(yield* outcome(other.open(job, "p", (yield* textOf(store, key)) ?? ""))).toBe("SubjectDestroyed")
    })
  )

  testing(
    "is not written for a subject that was destroyed",
    Effect.gen(function* () {
      const { store, vault } = yield* inMemory
      yield* vault.destroy(job)
      expect(yield* outcome(vault.sealFirst(job, "p", "x", put("1")))).toBe("SubjectDestroyed")
      yield* vault.destroy(account)
      expect(yield* outcome(vault.sealFirst(ofJob("job_2", "acc_1"), "p", "x", put("2")))).toBe("SubjectDestroyed")
      expect(yield* store.list("texts")).toEqual([])
    })
  )
})

/** A vault, and the reads and the sizes of the writes that it makes. */
const watched = Effect.fnUntraced(function* (store: StateStore.StateStore["Service"]) {
  const calls: Array<string | number> = []
  const vault = yield* open({
    ...store,
    get: (space, key) =>
      Effect.suspend(() =>
        Effect.andThen(
          Effect.sync(() => calls.push(key)),
          store.get(space, key)
        )
      ),
    write: (changes) =>
      Effect.suspend(() =>
        Effect.andThen(
          Effect.sync(() => calls.push(changes.length)),
          store.write(changes)
        )
      )
  })
  return { vault, calls: () => calls.splice(0) }
})

describe("a text whose key is in memory", () => {
  const put = (sealed: string) => [{ _tag: "put", space: "texts", key: "text", value: Buffer.from(sealed) } as const]
  const elsewhere = () => []
  const second = ofJob("job_2", "acc_1")

  testing(
    "is stored without a read before, in one write that checks the keys",
    Effect.gen(function* () {
      const store = yield* StateStore.StateStore
      const { calls, vault } = yield* watched(store)
      yield* vault.seal(job, "p", "x")
      calls()
      yield* vault.sealFirst(second, "p", "first", put)
      expect(calls()).toEqual([4])
      const sealed = yield* vault.sealAgain(second, "p", "again", put)
      // The text, and the checks of its key and of the parent's
      expect(calls()).toEqual([3])
      expect(Buffer.from((yield* store.get("texts", "text"))?.value ?? []).toString()).toBe(sealed)
      expect(yield* vault.open(second, "p", sealed)).toBe("again")
    })
  )

  testing(
    "is sealed for elsewhere without a read if the store confirmed the key within the last second",
    Effect.gen(function* () {
      const { calls, vault } = yield* watched(yield* StateStore.StateStore)
      yield* vault.sealFirst(job, "p", "first", elsewhere)
      for (const wait of [0, 999]) {
        yield* TestClock.adjust(wait)
        calls()
        expect(yield* vault.open(job, "p", yield* vault.sealAgain(job, "p", "x", elsewhere))).toBe("x")
        // Only to open it
        expect(calls()).toEqual(["job:job_1", "account:acc_1"])
      }
      yield* TestClock.adjust(1_000)
      yield* vault.sealAgain(job, "p", "x", elsewhere)
      expect(calls()).toEqual(["job:job_1", "account:acc_1"])
      yield* vault.sealAgain(job, "p", "x", elsewhere)
      expect(calls()).toEqual([])
    })
  )

  for (const destroyed of [account, job])
    testing(
      `is not stored after another process has destroyed ${JSON.stringify(destroyed)}`,
      Effect.gen(function* () {
        const store = yield* StateStore.StateStore
        const { calls, vault } = yield* watched(store)
        const rival = yield* open(store)
        yield* vault.seal(job, "p", "x")
        yield* rival.destroy(destroyed)
        calls()
        expect(yield* outcome(vault.sealAgain(job, "p", "x", put))).toBe("SubjectDestroyed")
        // It was refused by the check, not by a read before it
        expect(calls()[0]).toBe(3)
        const isFree = destroyed === job
        expect(yield* outcome(vault.sealFirst(second, "p", "x", put))).toSatisfy((seen) => (seen === "SubjectDestroyed") !== isFree)
        expect(yield* store.list("texts")).toHaveLength(isFree ? 1 : 0)
        expect((yield* store.list("vaultSubjects")).map(({ key }) => key).includes("job:job_2")).toBe(isFree)
      })
    )

  testing(
    "cannot be opened by anyone if its key was destroyed just before it was sealed for elsewhere",
    Effect.gen(function* () {
      for (const destroyed of [account, job]) {
        const store = yield* MemoryStateStore.make
        const [vault, rival] = [yield* open(store), yield* open(store)]
        yield* vault.seal(job, "p", "x")
        yield* rival.destroy(destroyed)
        const sealed = yield* outcome(vault.sealAgain(job, "p", "x", elsewhere))
        for (const each of [rival, vault]) expect(yield* outcome(each.open(job, "p", sealed))).toBe("SubjectDestroyed")
        expect(opensWithAny(yield* recoverable(store), sealed)).toBe(false)
        // From now on this process knows
        expect(yield* outcome(vault.sealAgain(job, "p", "x", elsewhere))).toBe("SubjectDestroyed")
      }
    })
  )

  testing(
    "is refused at once after this process has destroyed its key",
    Effect.gen(function* () {
      for (const destroyed of [account, job]) {
        const vault = yield* open(yield* MemoryStateStore.make)
        yield* vault.seal(job, "p", "x")
        yield* vault.destroy(destroyed)
        for (const storing of [elsewhere, put]) expect(yield* outcome(vault.sealAgain(job, "p", "x", storing))).toBe("SubjectDestroyed")
      }
    })
  )
})

describe("a destroyed subject", () => {
  testing(
    "is unreadable at once in every process, and cannot be sealed for again",
    Effect.gen(function* () {
      const { store, vault } = yield* inMemory
      const another = yield* open(store)
      const sealed = yield* vault.seal(account, "label", "x")
      expect(yield* another.open(account, "label", sealed)).toBe("x")
      yield* vault.destroy(account)
      yield* vault.destroy(account)
      for (const each of [vault, another, yield* open(store)]) {
        expect(yield* outcome(each.open(account, "label", sealed))).toBe("SubjectDestroyed")
        expect(yield* outcome(each.seal(account, "label", "y"))).toBe("SubjectDestroyed")
      }
      expect(yield* store.list("vaultKeys")).toEqual([])
    })
  )

  testing(
    "is shredded, not only removed",
    Effect.gen(function* () {
      const store = yield* StateStore.StateStore
      const removed: Array<StateStore.Change> = []
      const watched = {
        ...store,
        write: (changes: Parameters<typeof store.write>[0]) => {
          removed.push(...changes.filter(({ _tag }) => _tag === "remove"))
          return store.write(changes)
        }
      }
      const vault = yield* open(watched)
      yield* vault.seal(job, "p", "x")
      yield* vault.destroy(job)
      expect(removed).toEqual([{ _tag: "remove", space: "vaultKeys", key: "job:job_1", shred: true }])
    })
  )

  testing(
    "destroys the subjects whose keys it wraps, and no others",
    Effect.gen(function* () {
      const { store, vault } = yield* inMemory
      const another = yield* open(store)
      const second = ofJob("job_2", "acc_1")
      const foreign = ofJob("job_3", "acc_2")
      const sealed = yield* Effect.forEach([job, second, foreign, account], (subject) => another.seal(subject, "p", "x"))
      const read = (each: Vault["Service"]) =>
        Effect.forEach([job, second, foreign, account], (subject, i) => outcome(each.open(subject, "p", sealed[i] ?? "")))
      yield* vault.destroy(job)
      expect(yield* read(another)).toEqual(["SubjectDestroyed", "x", "x", "x"])
      yield* vault.destroy(account)
      expect(yield* read(another)).toEqual(["SubjectDestroyed", "SubjectDestroyed", "x", "SubjectDestroyed"])
      expect(yield* outcome(another.seal(second, "p", "y"))).toBe("SubjectDestroyed")
      expect(yield* outcome(another.seal("job:job_2", "p", "y"))).toBe("SubjectDestroyed")
      expect(yield* outcome(another.seal(ofJob("job_4", "acc_1"), "p", "y"))).toBe("SubjectDestroyed")
    })
  )

  testing(
    "that never had a key cannot get one",
    Effect.gen(function* () {
      const { vault } = yield* inMemory
      yield* vault.destroy(account)
      expect(yield* outcome(vault.seal(account, "label", "x"))).toBe("SubjectDestroyed")
      expect(yield* outcome(vault.seal(job, "label", "x"))).toBe("SubjectDestroyed")
    })
  )

  for (const subject of [account, job])
    testing(
      `stays destroyed if another process destroys it while a text is sealed for ${JSON.stringify(subject)}`,
      Effect.gen(function* () {
        const seen = new Set<string>()
        for (let at = 1; at <= 8; at++) {
          const store = yield* MemoryStateStore.make
          const rival = yield* open(store)
          const faulty = FaultyStateStore.make(store, { [3 + at]: rival.destroy(account) })
          const vault = yield* open(faulty)
          const sealed = yield* outcome(vault.seal(subject, "p", "x"))
          yield* rival.destroy(account)
          seen.add(sealed.slice(0, 3))
          for (const each of [vault, rival]) {
            expect([at, yield* outcome(each.open(subject, "p", sealed))]).toEqual([at, "SubjectDestroyed"])
            expect([at, yield* outcome(each.seal(subject, "p", "y"))]).toEqual([at, "SubjectDestroyed"])
          }
        }
        // Before and after it was sealed
        expect(seen).toEqual(new Set(["Sub", "v1."]))
      })
    )

  testing(
    "leaves no key in memory, even if it is destroyed before its key is cached",
    Effect.gen(function* () {
      const store = yield* StateStore.StateStore
      // The only random bytes as long as a key are keys
      const drawn: Array<WeakRef<Uint8Array>> = []
      const random = (size: number) => {
        const bytes = randomBytes(size)
        if (size === Aead.KEY) drawn.push(new WeakRef(bytes))
        return bytes
      }
      const made = yield* keysMade((bytes) => drawn.some((key) => key.deref() === bytes))
      let meanwhile: Effect.Effect<unknown> = Effect.void
      const vault = yield* Effect.provideService(
        open({ ...store, write: (changes) => Effect.tap(store.write(changes), () => meanwhile) }),
        RandomBytes,
        random
      )
      yield* vault.seal("account:kept", "p", "x")
      yield* vault.seal("account:destroyed", "p", "x")
      yield* vault.destroy("account:destroyed")
      meanwhile = Effect.suspend(() => {
        meanwhile = Effect.void
        return Effect.orDie(vault.destroy(account))
      })
      yield* vault.seal(account, "p", "x")
      yield* collectGarbage
      expect(drawn.map((bytes) => bytes.deref() !== undefined)).toEqual([false, false, false])
      expect(made.map((key) => key.deref() !== undefined)).toEqual([true, false, false])
      expect(yield* outcome(vault.seal(account, "p", "y"))).toBe("SubjectDestroyed")
    })
  )

  testing(
    "cannot be read with any key that can be recovered, though it could before",
    Effect.gen(function* () {
      const { store, vault } = yield* inMemory
      const bystander = yield* vault.seal("account:bystander", "p", "another's")
      expect(bystander).toMatch(/^v1/u)
      const captured = yield* Effect.forEach([account, job], (subject) => vault.seal(subject, "p", "shred me"))
      expect(yield* Effect.map(recoverable(store), (keys) => captured.map((text) => opensWithAny(keys, text)))).toEqual([true, true])
      yield* vault.destroy(job)
      expect(yield* Effect.map(recoverable(store), (keys) => captured.map((text) => opensWithAny(keys, text)))).toEqual([true, false])
      yield* vault.destroy(account)
      expect(yield* Effect.map(recoverable(store), (keys) => captured.map((text) => opensWithAny(keys, text)))).toEqual([false, false])
    })
  )
})

describe("the master key", () => {
  testing(
    "must be the one that the state store was first used with",
    Effect.gen(function* () {
      const { store, vault } = yield* inMemory
      const sealed = yield* vault.seal(account, "label", "x")
      expect(yield* outcome(open(store, OTHER_MASTER))).toBe("WrongMasterKey")
      expect(yield* (yield* open(store)).open(account, "label", sealed)).toBe("x")
    })
  )

  testing(
    "is refused if the state store has keys but no check value",
    Effect.gen(function* () {
      const { store, vault } = yield* inMemory
      yield* vault.seal(account, "label", "x")
      yield* store.write([{ _tag: "remove", space: "vaultMasterKey", key: "check" }])
      expect(yield* outcome(open(store))).toBe("WrongMasterKey")
      expect(yield* outcome(open(store, OTHER_MASTER))).toBe("WrongMasterKey")
    })
  )

  testing(
    "is one, if two processes with two keys start on an empty state store",
    Effect.gen(function* () {
      for (let at = 1; at <= 3; at++) {
        const store = yield* MemoryStateStore.make
        const faulty = FaultyStateStore.make(store, { [at]: open(store, OTHER_MASTER) })
        expect(yield* outcome(open(faulty))).toBe("WrongMasterKey")
        const both = FaultyStateStore.make(yield* MemoryStateStore.make, {})
        expect(yield* outcome(open(FaultyStateStore.make(both, { [at]: open(both) })))).not.toBeTypeOf("string")
      }
    })
  )

  testing(
    "derives separate HMACs for each purpose, the same in every process",
    Effect.gen(function* () {
      const { store, vault } = yield* inMemory
      expect(vault.hmac("email", "ada@example.com")).toBe(GOLDEN_HMAC)
      expect((yield* open(store)).hmac("email", "ada@example.com")).toBe(GOLDEN_HMAC)
      const others = [vault.hmac("address", "ada@example.com"), vault.hmac("email", "ada@example.org")]
      const elsewhere = yield* MemoryStateStore.make
      expect(new Set([GOLDEN_HMAC, ...others, (yield* open(elsewhere, OTHER_MASTER)).hmac("email", "ada@example.com")]).size).toBe(4)
    })
  )

  testing(
    "opens texts that the first release sealed",
    Effect.gen(function* () {
      const store = yield* StateStore.StateStore
      for (const { space, key, value } of GOLDEN_ROWS)
        yield* store.write([{ _tag: "put", space, key, value: Buffer.from(value, "base64url") }])
      const vault = yield* open(store)
      expect(yield* vault.open(job, "label", GOLDEN_SEALED)).toBe("kept for ever")
    })
  )
})

describe("a faulty state store", () => {
  testing(
    "fails the calls, changes nothing, and works again after a repetition",
    Effect.gen(function* () {
      for (const fault of ["before", "after"] as const)
        for (let at = 1; at <= 14; at++) {
          const store = yield* MemoryStateStore.make
          const faulty = FaultyStateStore.make(store, { [at]: fault })
          const again = <A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E>) =>
            Effect.retry(effect, { while: (error) => error._tag === "StateUnavailable", times: 1 })
          const vault = yield* again(open(faulty))
          const [first, second] = [yield* again(vault.seal(job, "p", "1")), yield* again(vault.seal(account, "p", "2"))]
          expect([yield* again(vault.open(job, "p", first)), yield* again(vault.open(account, "p", second))]).toEqual(["1", "2"])
          yield* again(vault.destroy(job))
          expect(yield* outcome(again(vault.open(job, "p", first)))).toBe("SubjectDestroyed")
          expect(yield* again(vault.open(account, "p", second))).toBe("2")
          // Fewer calls would mean that the later faults never happened
          expect(faulty.calls()).toBeGreaterThanOrEqual(at)
        }
    })
  )

  testing(
    "with exchanged or changed rows is detected",
    Effect.gen(function* () {
      const { store, vault } = yield* inMemory
      const second = ofJob("job_2", "acc_1")
      const sealed = yield* vault.seal(job, "p", "x")
      yield* vault.seal(second, "p", "x")
      const row = yield* store.get("vaultKeys", "job:job_1")
      const other = yield* store.get("vaultKeys", "job:job_2")
      const put = (value: Uint8Array) => store.write([{ _tag: "put", space: "vaultKeys", key: "job:job_1", value }])
      const meddled = [other?.value, Buffer.from("{}"), Buffer.from("no row"), new Uint8Array(), cut(row?.value), cyclic(row?.value)]
      for (const value of meddled) {
        yield* put(value ?? new Uint8Array())
        expect(yield* Effect.flip(vault.open(job, "p", sealed))).toMatchObject({ _tag: "Tampered", subject: "job:job_1" })
      }
      yield* put(row?.value ?? new Uint8Array())
      expect(yield* vault.open(job, "p", sealed)).toBe("x")
    })
  )
})

describe("a parent", () => {
  testing(
    "is fixed with the key, and has no parent itself",
    Effect.gen(function* () {
      const { vault } = yield* inMemory
      const sealed = yield* vault.seal(job, "p", "x")
      expect(yield* vault.open("job:job_1", "p", sealed)).toBe("x")
      expect(yield* outcome(vault.seal(ofJob("job_1", "acc_2"), "p", "x"))).toBe("defect")
      expect(yield* outcome(vault.seal({ name: "part:1", parent: "job:job_1" }, "p", "x"))).toBe("defect")
    })
  )
})

/** The key objects that are made of some bytes from now on, until the end of the scope. */
const keysMade = Effect.fnUntraced(function* (counts: (bytes: unknown) => boolean) {
  const made: Array<WeakRef<KeyObject>> = []
  const original = crypto.createSecretKey
  const replaceBy = (create: typeof original) => {
    crypto.createSecretKey = create
    syncBuiltinESMExports()
  }
  const watched = (bytes: NodeJS.ArrayBufferView) => {
    const key = original(bytes)
    if (counts(bytes)) made.push(new WeakRef(key))
    return key
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => replaceBy(watched as typeof original)),
    () => Effect.sync(() => replaceBy(original))
  )
  return made
})

/** Collects garbage. */
const collectGarbage = Effect.promise(async () => {
  setFlagsFromString("--expose-gc")
  const collect: unknown = runInNewContext("gc")
  // A weak reference that was read keeps its target until the end of the turn of the event loop
  await new Promise((resolve) => setImmediate(resolve))
  if (typeof collect !== "function") throw new Error("No garbage can be collected here")
  collect()
})

// what an attacker can do with the files and the master key

const RowOf = Schema.decodeUnknownResult(
  Schema.fromJsonString(Schema.Struct({ parent: Schema.NullOr(Schema.String), wrapped: Schema.String }))
)

const decrypt = (key: Uint8Array, associated: string, text: string): Buffer | undefined => {
  const bytes = Buffer.from(text.slice(3), "base64url")
  const cipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12)).setAAD(Buffer.from(associated)).setAuthTag(bytes.subarray(-16))
  try {
    return Buffer.concat([cipher.update(bytes.subarray(12, -16)), cipher.final()])
  } catch {
    return undefined
  }
}

/** Every key that can be unwrapped from the state store with the master key. */
const recoverable = (store: StateStore.StateStore["Service"]) =>
  Effect.map(store.list("vaultKeys"), (rows) => {
    const master = Buffer.from(MASTER, "hex")
    const infos = ["wrap", "check", "hmac/email", "hmac/p"]
    const keys: Array<Uint8Array> = [master, ...infos.map((info) => Buffer.from(hkdfSync("sha256", master, "", `millrace/v1/${info}`, 32)))]
    for (let i = 0; i < keys.length; i++)
      for (const { key, value } of rows) {
        const row = RowOf(Buffer.from(value).toString())
        if (Result.isFailure(row)) continue
        const { parent, wrapped } = row.success
        const unwrapped = decrypt(keys[i] ?? master, JSON.stringify(["v1.", "key", key, parent]), wrapped)
        if (unwrapped !== undefined) keys.push(unwrapped)
      }
    return keys
  })

const opensWithAny = (keys: ReadonlyArray<Uint8Array>, text: string): boolean =>
  keys.some((key) =>
    ["account:acc_1", "job:job_1"].some(
      (subject) => decrypt(key, JSON.stringify(["v1.", "text", subject, "p"]), text)?.toString() === "shred me"
    )
  )

const cut = (value: Uint8Array = new Uint8Array()) => value.subarray(0, value.length - 9)
const cyclic = (value: Uint8Array = new Uint8Array()) => Buffer.from(Buffer.from(value).toString().replace("account:acc_1", "job:job_1"))
