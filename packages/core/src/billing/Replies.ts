/**
 * Replies kept for a day for callers who send a call again with the same idempotency key, sealed under their account's key. A reply is
 * stored before its call is settled, so finding one says nothing yet: the account says whether the call was settled.
 */

import { StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { ofAccount, Vault, type VaultFailure } from "../vault/Vault.ts"

export const StoredReply = Schema.Struct({
  reservationId: Schema.String,
  requestId: Schema.String,
  fingerprint: Schema.String,
  /** Revision of the hold in its account's stream: where to look for its end. */
  revision: Schema.Int,
  /** The reply's data as JSON text; null when it was too large to keep. */
  data: Schema.NullOr(Schema.String),
  /** Of a call that became a job. */
  job: Schema.optionalKey(Schema.Literal(true)),
  /** Of a call that costs nothing, and so has no hold: whether it still runs. */
  free: Schema.optionalKey(Schema.Literals(["running", "done"]))
})
export type StoredReply = typeof StoredReply.Type

/** How long a reply can be replayed, milliseconds. */
export const REPLY_LIFETIME = 24 * 3_600_000
/** Replies longer than this, in UTF-16 code units, are not kept; that there was one is. */
export const MAX_REPLY = 1024 * 1024

/** How often another attempt may be first in a row. */
const CONFLICTS = { times: 20 }

const isConflict = (error: unknown): error is StateStore.StateConflict => error instanceof StateStore.StateConflict

const SPACE = "replies"
const PURPOSE = "reply"

export class Replies extends Context.Service<
  Replies,
  {
    readonly find: (
      accountId: string,
      keyHash: string
    ) => Effect.Effect<StoredReply | undefined, StateStore.StateUnavailable | VaultFailure>
    /**
     * Keeps a reply in place of another that is over: of a call that came to nothing, as `isOver` may find out, or else of an earlier one.
     * Any other reply stays, and is returned: the attempt that was overtaken has nothing to replay.
     */
    readonly keep: <E = never>(
      accountId: string,
      keyHash: string,
      reply: StoredReply,
      isOver?: (there: StoredReply) => Effect.Effect<boolean, E>
    ) => Effect.Effect<StoredReply | undefined, E | StateStore.StateUnavailable | VaultFailure>
    /** The same for a call that is about to run, for `lifetime` milliseconds. */
    readonly claim: <E>(
      accountId: string,
      keyHash: string,
      reply: StoredReply,
      lifetime: number,
      isOver: (there: StoredReply) => Effect.Effect<boolean, E>
    ) => Effect.Effect<StoredReply | undefined, E | StateStore.StateUnavailable | VaultFailure>
    /** Frees a key that a reservation claimed. Where another one has it by now, nothing. */
    readonly unclaim: (
      accountId: string,
      keyHash: string,
      reservationId: string
    ) => Effect.Effect<void, StateStore.StateUnavailable | VaultFailure>
  }
>()("@millrace/core/billing/Replies") {
  static readonly layer: Layer.Layer<Replies, never, StateStore.StateStore | Vault> = Layer.effect(
    Replies,
    Effect.gen(function* () {
      const state = yield* StateStore.StateStore
      const vault = yield* Vault
      const clock = yield* Clock.Clock
      const Text = Schema.fromJsonString(StoredReply)
      const decode = Schema.decodeUnknownSync(Text)
      const encode = Schema.encodeSync(Text)
      const keyOf = (accountId: string, keyHash: string) => `${accountId}/${keyHash}`

      const entryOf = Effect.fnUntraced(function* (accountId: string, keyHash: string) {
        const entry = yield* state.get(SPACE, keyOf(accountId, keyHash))
        if (entry === undefined) return undefined
        const opened = yield* vault.open(ofAccount(accountId), PURPOSE, Buffer.from(entry.value).toString("utf8"))
        return { version: entry.version, reply: decode(opened) }
      })

      /** Returns the reply that stands, if it is another one. */
      const put = Effect.fnUntraced(
        function* <E>(
          accountId: string,
          keyHash: string,
          reply: StoredReply,
          lifetime: number,
          isOver: (there: StoredReply) => Effect.Effect<boolean, E>
        ) {
          const there = yield* entryOf(accountId, keyHash)
          if (there !== undefined && there.reply.reservationId !== reply.reservationId && !(yield* isOver(there.reply))) return there.reply
          const kept = reply.data !== null && reply.data.length > MAX_REPLY ? { ...reply, data: null } : reply
          const sealed = yield* vault.seal(ofAccount(accountId), PURPOSE, encode(kept))
          const change = { _tag: "put", space: SPACE, key: keyOf(accountId, keyHash), value: Buffer.from(sealed) } as const
          yield* state.write([{ ...change, expiresAt: clock.currentTimeMillisUnsafe() + lifetime, expected: there?.version ?? "absent" }])
          return undefined
        },
        // Another attempt was first: it may be the later one
        Effect.retry({ while: isConflict, ...CONFLICTS }),
        Effect.catchIf(isConflict, () =>
          Effect.fail(new StateStore.StateUnavailable({ reason: "a reply met other attempts at each of its writes" }))
        )
      )

      return Replies.of({
        find: (accountId, keyHash) => Effect.map(entryOf(accountId, keyHash), (entry) => entry?.reply),
        keep: (accountId, keyHash, reply, isOver = ({ revision }) => Effect.succeed(revision <= reply.revision)) =>
          put(accountId, keyHash, reply, REPLY_LIFETIME, isOver),
        claim: put,
        unclaim: Effect.fnUntraced(function* (accountId, keyHash, reservationId) {
          const there = yield* entryOf(accountId, keyHash)
          if (there?.reply.reservationId !== reservationId) return
          const change = { _tag: "remove", space: SPACE, key: keyOf(accountId, keyHash), expected: there.version } as const
          yield* Effect.catchIf(state.write([change]), isConflict, () => Effect.void)
        })
      })
    })
  )
}
