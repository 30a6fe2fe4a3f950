/**
 * The vault seals texts under the key of a subject. A key is created on first use, wrapped by the master key or by the key of a parent
 * subject, and kept in the state store, outside the log. Destroying that one row makes every copy of the sealed texts unreadable for ever
 * (crypto-shredding).
 */
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto"
import { StateStore } from "@millrace/event-sourcing"
import { Array, Context, Effect, Layer, Option, Redacted, Schema } from "effect"
import { memoised } from "../Memoised.ts"
import * as Aead from "./Aead.ts"
import { MasterKey } from "./MasterKey.ts"
import { RandomBytes } from "./RandomBytes.ts"

/** The owner of a key: a name such as `account:acc_...`, and the parent whose key wraps it, if any. A parent has no parent. */
export type Subject = string | { readonly name: string; readonly parent: string }

export const ofAccount = (accountId: string): string => `account:${accountId}`

export const ofWebhook = (webhookId: string): string => `webhook:${webhookId}`

/** An inbox's subject. What it received is deleted with the inbox or with the account. */
export const ofInbox = (inboxId: string, accountId: string) => ({ name: `inbox:${inboxId}`, parent: ofAccount(accountId) })

/** A job's subject. Its data is deleted with the job or with the account. */
export const ofJob = (jobId: string, accountId: string): Subject => ({ name: `job:${jobId}`, parent: ofAccount(accountId) })

/** The key of this subject or its parent was destroyed, or never existed. Nothing can be opened or sealed under it. */
export class SubjectDestroyed extends Schema.TaggedError<SubjectDestroyed>()("SubjectDestroyed", { subject: Schema.String }) {
  override get message(): string {
    return `What was sealed for ${this.subject} was erased`
  }
}

/** The text was not sealed for this subject and purpose. With the purpose `key`, the subject's stored key was altered. */
export class Tampered extends Schema.TaggedError<Tampered>()("Tampered", { subject: Schema.String, purpose: Schema.String }) {
  override get message(): string {
    return `What is sealed for ${this.subject} does not open: it was changed, or belongs elsewhere`
  }
}

/** The state store belongs to another master key, or rows are missing. Nothing was changed. */
export class WrongMasterKey extends Schema.TaggedError<WrongMasterKey>()("WrongMasterKey", { reason: Schema.String }) {
  override get message(): string {
    return `The master key is not that of the store: ${this.reason}`
  }
}

export type VaultFailure = SubjectDestroyed | Tampered | StateStore.StateUnavailable

export class Vault extends Context.Service<
  Vault,
  {
    /**
     * Seals a text: `v1.`, then base64url. Only `open` with the same subject and purpose reads it. A purpose is a constant of the code; it
     * keeps a text sealed for one use from being accepted for another.
     */
    readonly seal: (subject: Subject, purpose: string, plaintext: string | Uint8Array) => Effect.Effect<string, VaultFailure>
    /** Seals several texts as `seal` does, with one look for the key. For use at once: the key may be destroyed later. */
    readonly sealer: (subject: Subject) => Effect.Effect<(purpose: string, plaintext: string | Uint8Array) => string, VaultFailure>
    /**
     * Seals a text of a subject that probably has no key yet, and writes it in one write with the new key. `changes`: the write of the sealed
     * text; none if it is stored elsewhere. If the subject has a key, the text is sealed under that and written by itself. Returns the sealed
     * text.
     */
    readonly sealFirst: (
      subject: Subject,
      purpose: string,
      plaintext: string,
      changes: (sealed: string) => ReadonlyArray<StateStore.Change>
    ) => Effect.Effect<string, VaultFailure>
    readonly open: (subject: Subject, purpose: string, sealed: string) => Effect.Effect<string, VaultFailure>
    /** Opens texts as `open` does, with one look for the key. For use at once: the key may be destroyed later. */
    readonly opener: (subject: Subject) => Effect.Effect<(purpose: string, sealed: string) => Effect.Effect<string, Tampered>, VaultFailure>
    readonly openBytes: (subject: Subject, purpose: string, sealed: string) => Effect.Effect<Uint8Array, VaultFailure>
    /** Destroys the subject's key permanently, and with it the keys that it wraps. Repeating it changes nothing. */
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
  readonly key: Aead.Key
  readonly parent: string | null
  readonly version: number
}

type Found = Effect.Effect<Unwrapped | undefined, Tampered | StateStore.StateUnavailable>

const VERSION = "v1."
const NONCE_CHARS = 16

const nameOf = (subject: Subject): string => (typeof subject === "string" ? subject : subject.name)

/** The associated data that binds a box to its subject and purpose. JSON keeps the parts apart. */
const context = (kind: "text" | "key", ...parts: ReadonlyArray<string | null>): Buffer =>
  Buffer.from(JSON.stringify([VERSION, kind, ...parts]))

const unbox = (key: Aead.Key, associated: Uint8Array, text: string): Buffer | undefined => {
  const digits = text.slice(VERSION.length)
  const bytes = Buffer.from(digits, "base64url")
  // Node ignores invalid digits, and the unused bits of the last digit
  if (!text.startsWith(VERSION) || digits.length < NONCE_CHARS || bytes.toString("base64url") !== digits) return undefined
  return Aead.decrypt(key, bytes.subarray(0, Aead.NONCE), associated, bytes.subarray(Aead.NONCE))
}

/** Subjects in a page. */
const PAGE = 1_000

/**
 * Every subject that ever had a key: `destroyed`, those whose own key was destroyed, and `alive`, all others. An alive subject is
 * unreadable if its parent is destroyed. Needs the state store only, not the master key.
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
  yield* confirm(store, derive("check"))
  const keys = new SubjectKeys(store, random, Aead.keyOf(derive("wrap")))

  const bytesOpener = Effect.fnUntraced(function* (subject: Subject) {
    const name = nameOf(subject)
    const unwrapped = yield* keys.find(subject)
    if (unwrapped === undefined) return yield* new SubjectDestroyed({ subject: name })
    return (purpose: string, sealed: string): Effect.Effect<Uint8Array, Tampered> => {
      const plaintext = unbox(unwrapped.key, context("text", name, purpose), sealed)
      return plaintext === undefined ? Effect.fail(new Tampered({ subject: name, purpose })) : Effect.succeed(plaintext)
    }
  })
  const opener: Vault["Service"]["opener"] = (subject) =>
    Effect.map(
      bytesOpener(subject),
      (open) => (purpose, sealed) => Effect.map(open(purpose, sealed), (bytes) => Buffer.from(bytes).toString())
    )

  const macKey = memoised((purpose) => Aead.keyOf(derive(`hmac/${purpose}`)))

  const sealer: Vault["Service"]["sealer"] = (subject) =>
    Effect.map(
      keys.of(subject),
      ({ key }) =>
        (purpose, plaintext) =>
          box(random, key, context("text", nameOf(subject), purpose), typeof plaintext === "string" ? Buffer.from(plaintext) : plaintext)
    )

  const seal: Vault["Service"]["seal"] = (subject, purpose, plaintext) => Effect.map(sealer(subject), (seal) => seal(purpose, plaintext))

  const sealFirst: Vault["Service"]["sealFirst"] = (subject, purpose, plaintext, changes) =>
    Effect.gen(function* () {
      let sealed = ""
      const { isNew } = yield* keys.create(subject, (key) => {
        sealed = box(random, key, context("text", nameOf(subject), purpose), Buffer.from(plaintext))
        return changes(sealed)
      })
      if (isNew) return sealed
      const another = yield* seal(subject, purpose, plaintext)
      const written = changes(another)
      if (Array.isReadonlyArrayNonEmpty(written)) yield* Effect.catchTag(store.write(written), "StateConflict", Effect.die)
      return another
    })

  return Vault.of({
    seal,
    sealer,
    sealFirst,
    open: (subject, purpose, sealed) => Effect.flatMap(opener(subject), (open) => open(purpose, sealed)),
    opener,
    openBytes: (subject, purpose, sealed) => Effect.flatMap(bytesOpener(subject), (open) => open(purpose, sealed)),
    destroy: (subject) => keys.destroy(nameOf(subject)),
    hmac: (purpose, text) => createHmac("sha256", macKey(purpose)).update(text).digest("base64url")
  })
})

const box = (random: RandomBytes, key: Aead.Key, associated: Uint8Array, plaintext: Uint8Array): string => {
  const nonce = random(Aead.NONCE)
  return VERSION + Buffer.concat([nonce, Aead.encrypt(key, nonce, associated, plaintext)]).toString("base64url")
}

/** The keys of subjects: wrapped in the state store, with the most recently used ones unwrapped in memory. */
class SubjectKeys {
  readonly #store: StateStore.StateStore["Service"]
  readonly #random: RandomBytes
  readonly #wrappingKey: Aead.Key
  /** The least recently used key comes first. */
  readonly #unwrapped = new Map<string, Unwrapped>()
  #destroyals = 0

  constructor(store: StateStore.StateStore["Service"], random: RandomBytes, wrappingKey: Aead.Key) {
    this.#store = store
    this.#random = random
    this.#wrappingKey = wrappingKey
  }

  /** The key of a subject, created on first use. */
  of(subject: Subject): Effect.Effect<Unwrapped, VaultFailure> {
    return Effect.gen({ self: this }, function* () {
      const name = nameOf(subject)
      const unwrapped = (yield* this.find(subject)) ?? (yield* this.create(subject)).unwrapped
      if (typeof subject !== "string" && unwrapped.parent !== subject.parent)
        return yield* Effect.die(new Error(`The key of ${name} is wrapped by ${unwrapped.parent}, not by ${subject.parent}`))
      return unwrapped
    })
  }

  /** Reads the rows each time, because another process may have destroyed them. Undefined if the subject or its parent has no key. */
  find(subject: Subject): Effect.Effect<Unwrapped | undefined, Tampered | StateStore.StateUnavailable> {
    if (typeof subject === "string") return this.#find(subject, this.#store.get(KEYS, subject), (parent) => this.#findParent(parent))
    const { name, parent } = subject
    const before = this.#destroyals
    // Both rows at once. What the parent's row tells counts only if the subject has a key
    return Effect.flatMap(
      Effect.all([Effect.exit(this.#store.get(KEYS, name)), Effect.exit(this.#findParent(parent))], { concurrency: 2 }),
      ([entry, above]) => this.#find(name, entry, (named) => (named === parent ? above : this.#findParent(named)), before)
    )
  }

  #findParent(name: string): Found {
    return this.#find(name, this.#store.get(KEYS, name))
  }

  /** The key in the row of a subject. Without `findParent`, the subject is a parent itself. `before`: the destroyals before the row was read. */
  #find(
    name: string,
    row: Effect.Effect<StateStore.Entry | undefined, StateStore.StateUnavailable>,
    findParent?: (parent: string) => Found,
    before = this.#destroyals
  ): Found {
    return Effect.gen({ self: this }, function* () {
      const entry = yield* row
      if (entry === undefined) {
        if (this.#unwrapped.has(name)) this.#forget(name)
        return undefined
      }
      const known = this.#unwrapped.get(name)
      const current = known?.version === entry.version ? known : undefined
      const kept = current ?? Option.getOrUndefined(decodeRow(Buffer.from(entry.value).toString()))
      if (kept === undefined || (findParent === undefined && kept.parent !== null))
        return yield* new Tampered({ subject: name, purpose: "key" })
      const wrapping = kept.parent === null || findParent === undefined ? this.#wrappingKey : (yield* findParent(kept.parent))?.key
      if (wrapping === undefined) return undefined
      if ("key" in kept) return this.#remember(name, kept, before)
      const bytes = unbox(wrapping, context("key", name, kept.parent), kept.wrapped)
      if (bytes?.length !== Aead.KEY) return yield* new Tampered({ subject: name, purpose: "key" })
      return this.#remember(name, { key: Aead.keyOf(bytes), parent: kept.parent, version: entry.version }, before)
    })
  }

  /** Destroys a subject's key, and records permanently that it was destroyed. */
  destroy(name: string): Effect.Effect<void, StateStore.StateUnavailable> {
    const removed = this.#store.write([
      { _tag: "remove", space: KEYS, key: name, shred: true },
      { _tag: "put", space: SUBJECTS, key: name, value: Uint8Array.of(DESTROYED) }
    ])
    const forgotten = Effect.sync(() => this.#forget(name))
    return removed.pipe(Effect.catchTag("StateConflict", Effect.die), Effect.ensuring(forgotten), Effect.asVoid)
  }

  /** Creates a key, in one write with the changes made by it. `isNew`: false if the subject had a key; then nothing was written. */
  create(
    subject: Subject,
    changes: (key: Aead.Key) => ReadonlyArray<StateStore.Change> = () => []
  ): Effect.Effect<{ readonly unwrapped: Unwrapped; readonly isNew: boolean }, VaultFailure> {
    return Effect.gen({ self: this }, function* () {
      const name = nameOf(subject)
      const parent = typeof subject === "string" ? null : subject.parent
      const destroyed = Effect.suspend(() => Effect.fail(new SubjectDestroyed({ subject: name })))
      const above = parent === null ? undefined : yield* Effect.catchTag(this.of(parent), "SubjectDestroyed", () => destroyed)
      if (above !== undefined && above.parent !== null)
        return yield* Effect.die(new Error(`${parent} has a parent, so it cannot be a parent`))
      const before = this.#destroyals
      const bytes = this.#random(Aead.KEY)
      const key = Aead.keyOf(bytes)
      const wrapped = box(this.#random, above?.key ?? this.#wrappingKey, context("key", name, parent), bytes)
      const value = Buffer.from(encodeRow({ parent, wrapped }))
      const created = this.#store.write([
        { _tag: "put", space: KEYS, key: name, value, expected: "absent" },
        { _tag: "put", space: SUBJECTS, key: name, value: Uint8Array.of(1), expected: "absent" },
        ...changes(key)
      ])
      return yield* created.pipe(
        Effect.map((version) => ({ unwrapped: this.#remember(name, { key, parent, version }, before), isNew: true })),
        // Another process created or destroyed the key first
        Effect.catchTag("StateConflict", () =>
          Effect.flatMap(this.find(subject), (found) => (found ? Effect.succeed({ unwrapped: found, isNew: false }) : destroyed))
        )
      )
    })
  }

  /** Caches a key, unless any key was destroyed since `before`: it may have been this one. */
  #remember(name: string, unwrapped: Unwrapped, before: number): Unwrapped {
    if (this.#destroyals !== before) return unwrapped
    this.#unwrapped.delete(name)
    this.#unwrapped.set(name, unwrapped)
    const [oldest = name] = this.#unwrapped.size > MEMORY ? this.#unwrapped.keys() : []
    if (oldest !== name) this.#unwrapped.delete(oldest)
    return unwrapped
  }

  #forget(name: string): void {
    this.#destroyals++
    this.#unwrapped.delete(name)
    for (const [child, { parent }] of this.#unwrapped) if (parent === name) this.#unwrapped.delete(child)
  }
}

/** Compares the master key with the one that the state store was first used with, by a value derived from it. */
const confirm = Effect.fnUntraced(function* (store: StateStore.StateStore["Service"], check: Buffer) {
  const find = store.get(CHECK.space, CHECK.key)
  // Listed before the check is read: every key is written after the check
  const [anyKey] = yield* store.list(KEYS, { limit: 1 })
  const stored = yield* find
  if (stored === undefined && anyKey !== undefined)
    return yield* new WrongMasterKey({ reason: "The state store has vault keys but no check value of the master key: it is incomplete" })
  const begun =
    stored ??
    (yield* store.write([{ _tag: "put", ...CHECK, value: check, expected: "absent" }]).pipe(
      Effect.as({ value: check }),
      Effect.catchTag("StateConflict", () => find)
    ))
  if (begun === undefined || begun.value.length !== check.length || !timingSafeEqual(begun.value, check))
    return yield* new WrongMasterKey({ reason: "The state store was first used with another master key" })
})
