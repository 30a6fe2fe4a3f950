/**
 * Replies for callers who retry with the same idempotency key. They are kept for a day, sealed under the account's key. A reply is stored
 * before its call is settled, so a stored reply does not prove a success: the account says whether the call was settled.
 */

import { StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { ofAccount, Vault } from "../vault/Vault.ts"

export const StoredReply = Schema.Struct({
  reservationId: Schema.String,
  requestId: Schema.String,
  fingerprint: Schema.String,
  /** Revision of the hold in the account's stream. The end of the hold comes after it. */
  revision: Schema.Int,
  /** The reply's data as JSON text; null when it was too large to keep. */
  data: Schema.NullOr(Schema.String),
  /** Set if the call became a job. */
  job: Schema.optionalKey(Schema.Literal(true)),
  /** Set for a free call, which has no hold: whether it still runs. */
  free: Schema.optionalKey(Schema.Literals(["running", "done"]))
})
export type StoredReply = typeof StoredReply.Type

/** How long a reply can be replayed, milliseconds. */
export const REPLY_LIFETIME = 24 * 3_600_000
/** The data of longer replies, in UTF-16 code units, is not kept, only the fact that there was a reply. */
export const MAX_REPLY = 1024 * 1024

/** The most conflicts with other attempts in a row. */
const CONFLICTS = { times: 20 }

const isConflict = (error: unknown): error is StateStore.StateConflict => error instanceof StateStore.StateConflict

const SPACE = "replies"
const PURPOSE = "reply"

const Text = Schema.fromJsonString(StoredReply)
const decode = Schema.decodeUnknownSync(Text)
const encode = Schema.encodeSync(Text)

const keyOf = (accountId: string, keyHash: string) => `${accountId}/${keyHash}`

const make = Effect.gen(function* () {
  const state = yield* StateStore.StateStore
  const vault = yield* Vault
  const clock = yield* Clock.Clock

  const entryOf = Effect.fnUntraced(function* (accountId: string, keyHash: string) {
    const entry = yield* state.get(SPACE, keyOf(accountId, keyHash))
    if (entry === undefined) return undefined
    const opened = yield* vault.open(ofAccount(accountId), PURPOSE, Buffer.from(entry.value).toString("utf8"))
    return { version: entry.version, reply: decode(opened) }
  })

  /** Stores a reply for `lifetime` milliseconds, or returns another attempt's reply if `isOver` says that it may still be replayed. */
  const put = Effect.fnUntraced(
    function* <E>(
      accountId: string,
      keyHash: string,
      reply: StoredReply,
      lifetime: number,
      isOver: (existing: StoredReply) => Effect.Effect<boolean, E>
    ) {
      const existing = yield* entryOf(accountId, keyHash)
      if (existing !== undefined && existing.reply.reservationId !== reply.reservationId && !(yield* isOver(existing.reply)))
        return existing.reply
      const kept = reply.data !== null && reply.data.length > MAX_REPLY ? { ...reply, data: null } : reply
      const value = Buffer.from(yield* vault.seal(ofAccount(accountId), PURPOSE, encode(kept)))
      const expiresAt = clock.currentTimeMillisUnsafe() + lifetime
      const expected = existing?.version ?? "absent"
      yield* state.write([{ _tag: "put", space: SPACE, key: keyOf(accountId, keyHash), value, expiresAt, expected }])
      return undefined
    },
    // Another attempt wrote first: decide again
    Effect.retry({ while: isConflict, ...CONFLICTS }),
    Effect.catchIf(isConflict, () =>
      Effect.fail(new StateStore.StateUnavailable({ reason: "a reply met other attempts at each of its writes" }))
    )
  )

  return {
    /** The reply stored under a key; undefined if there is none. */
    find: (accountId: string, keyHash: string) => Effect.map(entryOf(accountId, keyHash), (entry) => entry?.reply),
    /**
     * Stores a reply. It replaces another attempt's reply only if `isOver` says that the other will never be replayed; by default, if the
     * other hold is not newer. Otherwise the other reply stays and is returned.
     */
    keep: <E = never>(
      accountId: string,
      keyHash: string,
      reply: StoredReply,
      isOver: (existing: StoredReply) => Effect.Effect<boolean, E> = ({ revision }) => Effect.succeed(revision <= reply.revision)
    ) => put(accountId, keyHash, reply, REPLY_LIFETIME, isOver),
    /** Claims a key for a call that is about to run, for `lifetime` milliseconds. Returns the other attempt's reply if that has the key. */
    claim: put,
    /** Frees a key that a reservation claimed. Does nothing if another reservation has it by now. */
    unclaim: Effect.fnUntraced(function* (accountId: string, keyHash: string, reservationId: string) {
      const existing = yield* entryOf(accountId, keyHash)
      if (existing?.reply.reservationId !== reservationId) return
      const change = { _tag: "remove", space: SPACE, key: keyOf(accountId, keyHash), expected: existing.version } as const
      yield* Effect.catchIf(state.write([change]), isConflict, () => Effect.void)
    })
  }
})

export class Replies extends Context.Service<Replies, Effect.Success<typeof make>>()("@millrace/core/billing/Replies") {
  static readonly layer: Layer.Layer<Replies, never, StateStore.StateStore | Vault> = Layer.effect(this, make)
}
