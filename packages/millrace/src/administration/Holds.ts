/** Open holds of all accounts. */
import { Account, Credits } from "@millrace/core"
import type { EventStore } from "@millrace/event-sourcing"
import { Clock, Effect } from "effect"
import type { Failure } from "../Failure.ts"
import { dateOf } from "./Act.ts"
import { statesOf } from "./Replay.ts"

/** An open hold. `amount` in credits. */
export interface OpenHold {
  readonly reservation: string
  readonly account: string
  readonly operation: string
  readonly amount: number
  readonly request: string
  readonly reservedAt: Date
  /** Null for the hold of a job that was accepted: it ends with the job. */
  readonly expiresAt: Date | null
  /** It is due, and ends with its account's next decision, or by recovery. */
  readonly overdue: boolean
}

/** An open hold of an account, as of a time in milliseconds. */
export const shownOf = (
  account: string,
  reservation: string,
  { acceptBy, amount, expiresAt = acceptBy, operation, requestId, reservedAt }: Account.Hold,
  now: number
): OpenHold => ({
  ...{ reservation, account, operation, amount: Credits.toDecimal(amount), request: requestId },
  reservedAt: new Date(reservedAt),
  expiresAt: dateOf(expiresAt),
  overdue: expiresAt !== undefined && expiresAt <= now
})

/** Every open hold. Reads the whole log. */
export const list: Effect.Effect<ReadonlyArray<OpenHold>, Failure, EventStore.EventStore> = Effect.gen(function* () {
  const now = yield* Clock.currentTimeMillis
  const accounts = yield* statesOf(Account.Account)
  return [...accounts].flatMap(([account, { purse }]) =>
    [...purse.holds].map(([reservation, hold]) => shownOf(account, reservation, hold, now))
  )
})
