/**
 * The vault seals texts under the key of a subject. A key is created on first use, wrapped by the master key or by the key of a parent
 * subject, and kept in the state store, outside the log. Destroying that one row makes every copy of the sealed texts unreadable for ever
 * (crypto-shredding).
 */
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto"
import { StateStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Option, Redacted, Schema } from "effect"
import * as Aead from "./Aead.ts"
import { MasterKey } from "./MasterKey.ts"
import { RandomBytes } from "./RandomBytes.ts"

/** The owner of a key: a name such as `account:acc_...`, and the parent whose key wraps it, if any. A parent has no parent. */
export type Subject = string | { readonly name: string; readonly parent: string }

export const ofAccount = (accountId: string): string => `account:${accountId}`

/** A job's subject. Its data is deleted with the job or with the account. */
export const ofJob = (jobId: string, accountId: string): Subject => ({ name: `job:${jobId}`, parent: ofAccount(accountId) })

/** The key of this subject or its parent was destroyed, or never existed. Nothing can be opened or sealed under it. */
export class SubjectDestroyed extends Schema.TaggedError<SubjectDestroyed>()("SubjectDestroyed", { subject: Schema.String }) {}

/** The text was not sealed for this subject and purpose. With the purpose `key`, the subject's stored key was altered. */
export class Tampered extends Schema.TaggedError<Tampered>()("Tampered", { subject: Schema.String, purpose: Schema.String }) {}

/** The state store belongs to another master key, or rows are missing. Nothing was changed. */
export class WrongMasterKey extends Schema.TaggedError<WrongMasterKey>()("WrongMasterKey", { reason: Schema.String }) {}

export type VaultFailure = SubjectDestroyed | Tampered | StateStore.StateUnavailable

export class Vault extends Context.Service<
  Vault,
  {
    /**
     * Seals a text: `v1.`, then base64url. Only `open` with the same subject and purpose reads it. A purpose is a constant of the code; it
     * keeps a text sealed for one use from being accepted for another.
     */
    readonly seal: (subject: Subject, purpose: string, plaintext: string | Uint8Array) => Effect.Effect<string, VaultFailure>
    readonly open: (subject: Subject, purpose: string, sealed: string) => Effect.Effect<string, VaultFailure>
    readonly openBytes: (subject: Subject, purpose: string, sealed: string) => Effect.Effect<Uint8Array, VaultFailure>
    /** Destroys the subject's key for ever, and with it the keys that it wraps. Repeating it changes nothing. */
    readonly destroy: (subject: Subject) => Effect.Effect<void, StateStore.StateUnavailable>
    /** HMAC-SHA-256 of a text, 43 characters of base64url. It never changes, and reveals nothing without the master key. */
    readonly hmac: (purpose: string, text: string) => string
  }
>()("@millrace/core/vault/Vault") {
  static readonly layer: Layer.Layer<Vault, WrongMasterKey | StateStore.StateUnavailable, StateStore.StateStore | MasterKey> = Layer.effect(
    Vault,
    Effect.suspend(() => make)
  )
}

/** The wrapped keys, by subject. */
const KEYS = "vaultKeys"
/** Subjects that ever had a key or were destroyed. These rows stay, so that no subject gets a second key. */
const SUBJECTS = "vaultSubjects"
const DESTROYED = 0
const CHECK = { space: "vaultMasterKey", key: "check" }

/** The most unwrapped keys in memory. */
const MEMORY = 1_000

const Row = Schema.fromJsonString(Schema.Struct({ parent: Schema.NullOr(Schema.String), wrapped: Schema.String }))
const encodeRow = Schema.encodeSync(Row)
const decodeRow = Schema.decodeUnknownOption(Row)

/** A key, unwrapped from the row of `version`. */
interface Unwrapped {
  readonly key: Uint8Array
  readonly parent: string | null
  readonly version: number
}

const VERSION = "v1."
const NONCE_CHARS = 16

const nameOf = (subject: Subject): string => (typeof subject === "string" ? subject : subject.name)

/** The associated data that binds a box to its subject and purpose. JSON keeps the parts apart. */
const context = (kind: "text" | "key", ...parts: ReadonlyArray<string | null>): Buffer =>
  Buffer.from(JSON.stringify([VERSION, kind, ...parts]))

const unbox = (key: Uint8Array, associated: Uint8Array, text: string): Buffer | undefined => {
  const digits = text.slice(VERSION.length)
  const bytes = Buffer.from(digits, "base64url")
  // Node ignores invalid digits, and the unused bits of the last digit
  if (!text.startsWith(VERSION) || digits.length < NONCE_CHARS || bytes.toString("base64url") !== digits) return undefined
  return Aead.decrypt(key, bytes.subarray(0, Aead.NONCE), associated, bytes.subarray(Aead.NONCE))
}

/** Subjects in a page. */
const PAGE = 1_000

/**
 * Every subject that ever had a key: `destroyed`, those whose own key was destroyed, and `alive`, all others. An alive subject is unreadable
 * if its parent is destroyed. Needs the state store only, not the master key.
 */
export const census: Effect.Effect<
  { readonly destroyed: ReadonlyArray<string>; readonly alive: ReadonlyArray<string> },
  StateStore.StateUnavailable,
  StateStore.StateStore
> = Effect.gen(function* () {
  const store = yield* StateStore.StateStore
  const destroyed: Array<string> = []
  const alive: Array<string> = []
  let after: string | undefined
  do {
    const page = yield* store.list(SUBJECTS, { limit: PAGE, ...(after === undefined ? {} : { after }) })
    for (const { key, value } of page) (value[0] === DESTROYED ? destroyed : alive).push(key)
    after = page.at(-1)?.key
  } while (after !== undefined)
  return { destroyed, alive }
})

const make = Effect.gen(function* () {
  const store = yield* StateStore.StateStore
  const random = yield* RandomBytes
  const master = Redacted.value(yield* MasterKey)

  const derive = (info: string): Buffer => Buffer.from(hkdfSync("sha256", master, "", `millrace/v1/${info}`, Aead.KEY))
  const wrappingKey = derive("wrap")
  yield* confirm(store, derive("check"))

  const box = (key: Uint8Array, associated: Uint8Array, plaintext: Uint8Array): string => {
    const nonce = random(Aead.NONCE)
    return VERSION + Buffer.concat([nonce, Aead.encrypt(key, nonce, associated, plaintext)]).toString("base64url")
  }

  // Least recently used first
  const keys = new Map<string, Unwrapped>()
  let destroyals = 0
  /** Caches a key, unless any key was destroyed since `before`: it may have been this one. */
  const remember = (name: string, unwrapped: Unwrapped, before: number): Unwrapped => {
    if (destroyals !== before) return unwrapped
    keys.delete(name)
    keys.set(name, unwrapped)
    const [oldest = name] = keys.size > MEMORY ? keys.keys() : []
    if (oldest !== name) keys.delete(oldest)
    return unwrapped
  }
  const forget = (name: string): void => {
    destroyals++
    keys.delete(name)
    for (const [child, { parent }] of keys) if (parent === name) keys.delete(child)
  }

  /** Reads the row each time, because another process may have destroyed it. Undefined if the subject or its parent has no key. */
  const find = (name: string, isParent = false): Effect.Effect<Unwrapped | undefined, Tampered | StateStore.StateUnavailable> =>
    Effect.gen(function* () {
      const before = destroyals
      const entry = yield* store.get(KEYS, name)
      if (entry === undefined) {
        if (keys.has(name)) forget(name)
        return undefined
      }
      const known = keys.get(name)
      const current = known?.version === entry.version ? known : undefined
      const row = current ?? Option.getOrUndefined(decodeRow(Buffer.from(entry.value).toString()))
      if (row === undefined || (isParent && row.parent !== null)) return yield* new Tampered({ subject: name, purpose: "key" })
      const wrapping = row.parent === null ? wrappingKey : (yield* find(row.parent, true))?.key
      if (wrapping === undefined) return undefined
      if ("key" in row) return remember(name, row, before)
      const key = unbox(wrapping, context("key", name, row.parent), row.wrapped)
      if (key?.length !== Aead.KEY) return yield* new Tampered({ subject: name, purpose: "key" })
      return remember(name, { key, parent: row.parent, version: entry.version }, before)
    })

  const create = Effect.fnUntraced(function* (name: string, parent: string | null) {
    const destroyed = new SubjectDestroyed({ subject: name })
    const above =
      parent === null
        ? undefined
        : yield* Effect.mapError(keyOf(parent), (error) => (error._tag === "SubjectDestroyed" ? destroyed : error))
    if (above !== undefined && above.parent !== null) return yield* Effect.die(new Error(`${parent} has a parent, so it can be none`))
    const before = destroyals
    const key = random(Aead.KEY)
    const wrapped = box(above?.key ?? wrappingKey, context("key", name, parent), key)
    const value = Buffer.from(encodeRow({ parent, wrapped }))
    return yield* store
      .write([
        { _tag: "put", space: KEYS, key: name, value, expected: "absent" },
        { _tag: "put", space: SUBJECTS, key: name, value: Uint8Array.of(1), expected: "absent" }
      ])
      .pipe(
        Effect.map((version) => remember(name, { key, parent, version }, before)),
        // Another process created or destroyed the key first
        Effect.catchTag("StateConflict", () =>
          Effect.flatMap(find(name), (found) => (found ? Effect.succeed(found) : Effect.fail(destroyed)))
        )
      )
  })

  const keyOf = (subject: Subject): Effect.Effect<Unwrapped, VaultFailure> =>
    Effect.gen(function* () {
      const name = nameOf(subject)
      const unwrapped = (yield* find(name)) ?? (yield* create(name, typeof subject === "string" ? null : subject.parent))
      if (typeof subject !== "string" && unwrapped.parent !== subject.parent)
        return yield* Effect.die(new Error(`The key of ${name} is wrapped by ${unwrapped.parent}, not by ${subject.parent}`))
      return unwrapped
    })

  const seal: Vault["Service"]["seal"] = (subject, purpose, plaintext) =>
    Effect.map(keyOf(subject), ({ key }) =>
      box(key, context("text", nameOf(subject), purpose), typeof plaintext === "string" ? Buffer.from(plaintext) : plaintext)
    )

  const openBytes = Effect.fnUntraced(function* (subject: Subject, purpose: string, sealed: string) {
    const name = nameOf(subject)
    const unwrapped = yield* find(name)
    if (unwrapped === undefined) return yield* new SubjectDestroyed({ subject: name })
    const plaintext = unbox(unwrapped.key, context("text", name, purpose), sealed)
    return plaintext ?? (yield* new Tampered({ subject: name, purpose }))
  })

  const destroy: Vault["Service"]["destroy"] = (subject) => {
    const name = nameOf(subject)
    return store
      .write([
        { _tag: "remove", space: KEYS, key: name, shred: true },
        { _tag: "put", space: SUBJECTS, key: name, value: Uint8Array.of(DESTROYED) }
      ])
      .pipe(Effect.catchTag("StateConflict", Effect.die), Effect.ensuring(Effect.sync(() => forget(name))), Effect.asVoid)
  }

  const macKeys = new Map<string, Buffer>()
  const hmac: Vault["Service"]["hmac"] = (purpose, text) => {
    let key = macKeys.get(purpose)
    if (key === undefined) {
      key = derive(`hmac/${purpose}`)
      macKeys.set(purpose, key)
    }
    return createHmac("sha256", key).update(text).digest("base64url")
  }

  return Vault.of({
    seal,
    open: (subject, purpose, sealed) => Effect.map(openBytes(subject, purpose, sealed), (bytes) => bytes.toString()),
    openBytes,
    destroy,
    hmac
  })
})

/** Compares the master key with the one that the state store was first used with, by a value derived from it. */
const confirm = Effect.fnUntraced(function* (store: StateStore.StateStore["Service"], check: Buffer) {
  const find = store.get(CHECK.space, CHECK.key)
  // Listed before the check is read: every key is written after the check
  const [anyKey] = yield* store.list(KEYS, { limit: 1 })
  const there = yield* find
  if (there === undefined && anyKey !== undefined)
    return yield* new WrongMasterKey({ reason: "The state store has vault keys, but does not say of which master key: it is not whole" })
  const begun =
    there ??
    (yield* store.write([{ _tag: "put", ...CHECK, value: check, expected: "absent" }]).pipe(
      Effect.as({ value: check }),
      Effect.catchTag("StateConflict", () => find)
    ))
  if (begun === undefined || begun.value.length !== check.length || !timingSafeEqual(begun.value, check))
    return yield* new WrongMasterKey({ reason: "The state store was begun with another master key" })
})
