/**
 * The vault seals texts under the key of a subject. A key is created on first use, wrapped by the master key or by the key of a parent
 * subject, and kept in the state store, outside the log. Destroying that one row makes every copy of the sealed texts unreadable for ever
 * (crypto-shredding).
 */
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto"
import { StateStore } from "@millrace/event-sourcing"
import { Array, Clock, Context, Effect, Layer, Redacted, Schema } from "effect"
import { memoised } from "../Memoised.ts"
import * as Aead from "./Aead.ts"
import { box, context, unbox } from "./Box.ts"
import { MasterKey } from "./MasterKey.ts"
import { RandomBytes } from "./RandomBytes.ts"
import {
  DESTROYED,
  KEYS,
  nameOf,
  SUBJECTS,
  type Subject,
  SubjectDestroyed,
  SubjectKeys,
  Tampered,
  type VaultFailure
} from "./SubjectKeys.ts"

export { type Subject, SubjectDestroyed, Tampered, type VaultFailure } from "./SubjectKeys.ts"

export const ofAccount = (accountId: string): string => `account:${accountId}`

export const ofWebhook = (webhookId: string): string => `webhook:${webhookId}`

/** An inbox's subject. What it received is deleted with the inbox or with the account. */
export const ofInbox = (inboxId: string, accountId: string) => ({ name: `inbox:${inboxId}`, parent: ofAccount(accountId) })

/** A job's subject. Its data is deleted with the job or with the account. */
export const ofJob = (jobId: string, accountId: string): Subject => ({ name: `job:${jobId}`, parent: ofAccount(accountId) })

/** The state store belongs to another master key, or rows are missing. Nothing was changed. */
export class WrongMasterKey extends Schema.TaggedError<WrongMasterKey>()("WrongMasterKey", { reason: Schema.String }) {
  override get message(): string {
    return `The master key is not that of the store: ${this.reason}`
  }
}

/** Returns the writes that store a sealed text: none if it is stored elsewhere. */
export type Storing = (sealed: string) => ReadonlyArray<StateStore.Change>

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
     * Seals a text of a subject that probably has no key yet, and stores it in one write with the new key. If the subject has a key, the text
     * is sealed under that and written by itself. Returns the sealed text.
     */
    readonly sealFirst: (subject: Subject, purpose: string, plaintext: string, storing: Storing) => Effect.Effect<string, VaultFailure>
    /**
     * Seals a text of a subject whose key this process has just used, and stores it. The write checks that the key still stands, so the store
     * is not asked first. Without a write, the store is asked unless it said within the last second that the key stands: nobody can open
     * what is sealed under a key that was destroyed meanwhile.
     */
    readonly sealAgain: (subject: Subject, purpose: string, plaintext: string, storing: Storing) => Effect.Effect<string, VaultFailure>
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

const CHECK = { space: "vaultMasterKey", key: "check" }

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
  const clock = yield* Clock.Clock
  const master = Redacted.value(yield* MasterKey)
  const derive = (info: string): Buffer => Buffer.from(hkdfSync("sha256", master, "", `millrace/v1/${info}`, Aead.KEY))
  yield* confirm(store, derive("check"))
  const keys = new SubjectKeys(store, random, Aead.keyOf(derive("wrap")), () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6)

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

  const sealedWith = (key: Aead.Key, subject: Subject, purpose: string, plaintext: string | Uint8Array): string =>
    box(random, key, context("text", nameOf(subject), purpose), typeof plaintext === "string" ? Buffer.from(plaintext) : plaintext)

  const sealer: Vault["Service"]["sealer"] = (subject) =>
    Effect.map(
      keys.of(subject),
      ({ key }) =>
        (purpose, plaintext) =>
          sealedWith(key, subject, purpose, plaintext)
    )

  const seal: Vault["Service"]["seal"] = (subject, purpose, plaintext) => Effect.map(sealer(subject), (seal) => seal(purpose, plaintext))

  const sealAndStore: Vault["Service"]["sealAgain"] = (subject, purpose, plaintext, storing) =>
    Effect.flatMap(seal(subject, purpose, plaintext), (sealed) => {
      const changes = storing(sealed)
      if (!Array.isReadonlyArrayNonEmpty(changes)) return Effect.succeed(sealed)
      return Effect.as(Effect.catchTag(store.write(changes), "StateConflict", Effect.die), sealed)
    })

  const sealFirst: Vault["Service"]["sealFirst"] = (subject, purpose, plaintext, storing) =>
    Effect.suspend(() => {
      let sealed = ""
      const created = keys.create(subject, (key) => {
        sealed = sealedWith(key, subject, purpose, plaintext)
        return storing(sealed)
      })
      return Effect.flatMap(created, ({ isNew }) => (isNew ? Effect.succeed(sealed) : sealAndStore(subject, purpose, plaintext, storing)))
    })

  const sealAgain: Vault["Service"]["sealAgain"] = (subject, purpose, plaintext, storing) =>
    Effect.suspend((): Effect.Effect<string, VaultFailure> => {
      const asking = sealAndStore(subject, purpose, plaintext, storing)
      const held = keys.held(subject)
      if (held === undefined) return asking
      const sealed = sealedWith(held.key, subject, purpose, plaintext)
      const changes = storing(sealed)
      if (!Array.isReadonlyArrayNonEmpty(changes)) return held.isRecent ? Effect.succeed(sealed) : asking
      const stored = Effect.as(store.write([...changes, ...held.checks]), sealed)
      return stored.pipe(Effect.catchTag("StateConflict", () => asking))
    })

  const macKey = memoised((purpose) => Aead.keyOf(derive(`hmac/${purpose}`)))

  return Vault.of({
    seal,
    sealer,
    sealFirst,
    sealAgain,
    open: (subject, purpose, sealed) => Effect.flatMap(opener(subject), (open) => open(purpose, sealed)),
    opener,
    openBytes: (subject, purpose, sealed) => Effect.flatMap(bytesOpener(subject), (open) => open(purpose, sealed)),
    destroy: (subject) => keys.destroy(nameOf(subject)),
    hmac: (purpose, text) => createHmac("sha256", macKey(purpose)).update(text).digest("base64url")
  })
})

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
