/**
 * Limits how many payments of an account may be pending, so that nobody fills the log and the gateway with payments that are never paid. It
 * is exact for the requests of one host. If an account asks several hosts at the same moment, each may admit one payment more.
 */
import { Effect, Schema } from "effect"
import type { BookUnread, View } from "./PaymentBook.ts"

/** The account has as many pending payments as it may have. Nothing was written. */
export class TooManyPending extends Schema.TaggedError<TooManyPending>()("TooManyPending", { limit: Schema.Int }) {
  override get message(): string {
    return `${this.limit} payments of this account are pending: pay one of them, or wait until they lapse`
  }
}

export interface PendingLimit {
  /** Admits a payment that is to be requested, by its account and the id of its stream. */
  readonly admit: (accountId: string, stream: string) => Effect.Effect<void, TooManyPending | BookUnread>
  /** A payment that was admitted was not requested. */
  readonly release: (stream: string) => Effect.Effect<void>
}

/** `look`: reads the list of payments once it has everything written before, and does nothing else meanwhile. */
export const make = (limit: number, look: <A>(read: (view: View) => A) => Effect.Effect<A, BookUnread>): PendingLimit => {
  /** The accounts of payments that were admitted and are not in the list yet, by stream. */
  const admitted = new Map<string, string>()
  return {
    admit: (accountId, stream) =>
      Effect.flatten(
        look((view) => {
          let count = view.pendingOf(accountId)
          for (const [other, account] of admitted) {
            if (view.has(other)) admitted.delete(other)
            else if (account === accountId) count++
          }
          if (count >= limit) return Effect.fail(new TooManyPending({ limit }))
          admitted.set(stream, accountId)
          return Effect.void
        })
      ),
    release: (stream) => Effect.sync(() => void admitted.delete(stream))
  }
}
