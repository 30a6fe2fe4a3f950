/**
 * The keys of the vault's subjects: wrapped in the state store, with the most recently used ones unwrapped in memory. A key in memory is never
 * used to open anything before the store has confirmed that it stands, because another process may have destroyed it.
 */
import type { StateStore } from "@millrace/event-sourcing"
import { Effect, Option, Schema } from "effect"
import * as Aead from "./Aead.ts"
import { box, context, unbox } from "./Box.ts"
import type { RandomBytes } from "./RandomBytes.ts"

/** The owner of a key: a name such as `account:acc_...`, and the parent whose key wraps it, if any. A parent has no parent. */
export type Subject = string | { readonly name: string; readonly parent: string }

export const nameOf = (subject: Subject): string => (typeof subject === "string" ? subject : subject.name)

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

export type VaultFailure = SubjectDestroyed | Tampered | StateStore.StateUnavailable

/** The wrapped keys, by subject. */
export const KEYS = "vaultKeys"
/** Subjects that ever had a key or were destroyed. These rows stay, so that no subject gets a second key. */
export const SUBJECTS = "vaultSubjects"
export const DESTROYED = 0

/** The most unwrapped keys in memory. When there are more, the least recently used ones are dropped, down to `KEPT`. */
const MEMORY = 1_000
const KEPT = 800

/** For so many milliseconds after the store confirmed a key, {@link Vault} may seal a text with it without asking again. */
const RECENT = 1_000

const Row = Schema.fromJsonString(Schema.Struct({ parent: Schema.NullOr(Schema.String), wrapped: Schema.String }))
const encodeRow = ({ parent, wrapped }: typeof Row.Type): string => JSON.stringify({ parent, wrapped })
const decodeRow = Schema.decodeUnknownOption(Row)

/** A key, unwrapped from the row of `version`. */
interface Unwrapped {
  readonly key: Aead.Key
  readonly parent: string | null
  readonly version: number
}

/** `isNew`: false if the subject had a key; then nothing was written. */
interface Created {
  readonly unwrapped: Unwrapped
  readonly isNew: boolean
}

/** A key in memory. */
interface Remembered extends Unwrapped {
  /** A time before the store was asked for the key and its parent's, by the monotonic clock. */
  readonly askedAt: number
}

/** When the store is asked for a key. */
interface Asking {
  readonly at: number
  /** How many keys this process had destroyed before. */
  readonly destroyals: number
}

type Found = Effect.Effect<Unwrapped | undefined, Tampered | StateStore.StateUnavailable>

/** The change that makes a write conflict if a subject's key was destroyed. */
const checkOf = (name: string, { version }: Unwrapped): StateStore.Change => ({ _tag: "check", space: KEYS, key: name, expected: version })

/** The keys of subjects: wrapped in the state store, with the most recently used ones unwrapped in memory. */
export class SubjectKeys {
  readonly #store: StateStore.StateStore["Service"]
  readonly #random: RandomBytes
  readonly #wrappingKey: Aead.Key
  readonly #elapsed: () => number
  /** The least recently used key comes first. */
  readonly #unwrapped = new Map<string, Remembered>()
  #destroyals = 0

  constructor(store: StateStore.StateStore["Service"], random: RandomBytes, wrappingKey: Aead.Key, elapsed: () => number) {
    this.#store = store
    this.#random = random
    this.#wrappingKey = wrappingKey
    this.#elapsed = elapsed
  }

  get #asking(): Asking {
    return { at: this.#elapsed(), destroyals: this.#destroyals }
  }

  /**
   * The key of a subject in memory, with the checks that it and its parent's stand. `isRecent`: whether the store has just said that they do.
   */
  held(subject: Subject) {
    const name = nameOf(subject)
    const held = this.#unwrapped.get(name)
    const above = typeof held?.parent === "string" ? this.#unwrapped.get(held.parent) : undefined
    if (held === undefined || (held.parent !== null && above === undefined)) return undefined
    if (typeof subject !== "string" && held.parent !== subject.parent) return undefined
    const checks = above === undefined || held.parent === null ? [checkOf(name, held)] : [checkOf(name, held), checkOf(held.parent, above)]
    return { key: held.key, checks, isRecent: this.#elapsed() - held.askedAt < RECENT }
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
    const asking = this.#asking
    // Both rows at once. What the parent's row tells counts only if the subject has a key
    return Effect.flatMap(
      Effect.all([Effect.exit(this.#store.get(KEYS, name)), Effect.exit(this.#findParent(parent))], { concurrency: 2 }),
      ([entry, above]) => this.#find(name, entry, (named) => (named === parent ? above : this.#findParent(named)), asking)
    )
  }

  #findParent(name: string): Found {
    return this.#find(name, this.#store.get(KEYS, name))
  }

  /** The key in the row of a subject. Without `findParent`, the subject is a parent itself. */
  #find(
    name: string,
    row: Effect.Effect<StateStore.Entry | undefined, StateStore.StateUnavailable>,
    findParent?: (parent: string) => Found,
    asking = this.#asking
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
      if ("key" in kept) return this.#remember(name, kept, asking)
      const bytes = unbox(wrapping, context("key", name, kept.parent), kept.wrapped)
      if (bytes?.length !== Aead.KEY) return yield* new Tampered({ subject: name, purpose: "key" })
      return this.#remember(name, { key: Aead.keyOf(bytes), parent: kept.parent, version: entry.version }, asking)
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

  /**
   * Creates a key, in one write with the changes made by it. The write checks that the parent's key stands, so one in memory need not be read
   * first.
   */
  create(subject: Subject, changes: (key: Aead.Key) => ReadonlyArray<StateStore.Change> = () => []): Effect.Effect<Created, VaultFailure> {
    return Effect.suspend(() => {
      if (typeof subject === "string") return this.#createUnder(undefined, subject, changes)
      const above = this.#unwrapped.get(subject.parent)
      if (above !== undefined) return this.#createUnder(above, subject, changes)
      const destroyed = () => Effect.fail(new SubjectDestroyed({ subject: subject.name }))
      const found = Effect.catchTag(this.of(subject.parent), "SubjectDestroyed", destroyed)
      return Effect.flatMap(found, (above) => this.#createUnder(above, subject, changes))
    })
  }

  /** Creates a key that is wrapped by that of its parent, `above`. */
  #createUnder(
    above: Unwrapped | undefined,
    subject: Subject,
    changes: (key: Aead.Key) => ReadonlyArray<StateStore.Change>
  ): Effect.Effect<Created, VaultFailure> {
    const name = nameOf(subject)
    const parent = typeof subject === "string" ? null : subject.parent
    if (typeof above?.parent === "string") return Effect.die(new Error(`${parent} has a parent, so it cannot be a parent`))
    const asking = this.#asking
    const bytes = this.#random(Aead.KEY)
    const key = Aead.keyOf(bytes)
    const wrapped = box(this.#random, above?.key ?? this.#wrappingKey, context("key", name, parent), bytes)
    const created = this.#store.write([
      { _tag: "put", space: KEYS, key: name, value: Buffer.from(encodeRow({ parent, wrapped })), expected: "absent" },
      { _tag: "put", space: SUBJECTS, key: name, value: Uint8Array.of(1), expected: "absent" },
      ...(above === undefined || parent === null ? [] : [checkOf(parent, above)]),
      ...changes(key)
    ])
    return Effect.matchEffect(created, {
      onSuccess: (version) => Effect.succeed({ unwrapped: this.#remember(name, { key, parent, version }, asking), isNew: true }),
      onFailure: (error): Effect.Effect<Created, VaultFailure> => {
        if (error._tag !== "StateConflict") return Effect.fail(error)
        if (error.space === KEYS && error.key === parent) {
          // What is in memory of the parent is old: another process has destroyed it
          this.#forget(parent)
          return this.create(subject, changes)
        }
        // Another process created or destroyed the key first
        return Effect.flatMap(this.find(subject), (found) =>
          found ? Effect.succeed({ unwrapped: found, isNew: false }) : Effect.fail(new SubjectDestroyed({ subject: name }))
        )
      }
    })
  }

  /** Caches a key, unless this process has destroyed any since the store was asked: it may have been this one. */
  #remember(name: string, { key, parent, version }: Unwrapped, { at, destroyals }: Asking): Unwrapped {
    const remembered = { key, parent, version, askedAt: at }
    if (this.#destroyals !== destroyals) return remembered
    this.#unwrapped.delete(name)
    this.#unwrapped.set(name, remembered)
    if (this.#unwrapped.size > MEMORY) this.#dropOldest()
    return remembered
  }

  #dropOldest(): void {
    for (const oldest of this.#unwrapped.keys()) {
      if (this.#unwrapped.size <= KEPT) return
      this.#unwrapped.delete(oldest)
    }
  }

  #forget(name: string): void {
    this.#destroyals++
    this.#unwrapped.delete(name)
    for (const [child, { parent }] of this.#unwrapped) if (parent === name) this.#unwrapped.delete(child)
  }
}
