/** Ids of resources: a prefix that says what, then a ULID. Their making is a service, so a test or a simulation owns it. */

import { hash, randomFillSync, randomUUID } from "node:crypto"
import { Clock, Context, Effect, Schema } from "effect"
import { monotonicFactory } from "ulid"

const ULID = "[0-9A-HJKMNP-TV-Z]{26}"

export const AccountId = Schema.String.check(Schema.isPattern(new RegExp(`^acc_${ULID}$`, "u"))).pipe(Schema.brand("AccountId"))
export type AccountId = typeof AccountId.Type

export const ReservationId = Schema.String.check(Schema.isPattern(new RegExp(`^res_${ULID}$`, "u"))).pipe(Schema.brand("ReservationId"))
export type ReservationId = typeof ReservationId.Type

/** What makes ids. */
export interface Ids {
  /** A ULID for a time in milliseconds since 1970; greater than every one before it. */
  readonly ulid: (now: number) => string
  /** A random UUID, for requests. */
  readonly uuid: () => string
}

export const Ids = Context.Reference<Ids>("@millrace/core/Ids", {
  defaultValue: () => {
    const next = monotonicFactory(bufferedRandom())
    return { ulid: (now) => next(now), uuid: () => randomUUID() }
  }
})

/** Numbers from 0 up to 1 off the system's generator, fetched a few thousand at a time: one by one they cost more than all else of an id. */
const bufferedRandom = (): (() => number) => {
  const bytes = new Uint8Array(4_096)
  let used = bytes.length
  return () => {
    if (used === bytes.length) {
      randomFillSync(bytes)
      used = 0
    }
    return (bytes[used++] ?? 0) / 256
  }
}

const prefixed = <Id extends string>(prefix: string): Effect.Effect<Id> =>
  Effect.withFiber((fiber) => {
    const now = fiber.getRef(Clock.Clock).currentTimeMillisUnsafe()
    // A prefix and a ULID is what the id's schema asks for
    return Effect.succeed((prefix + fiber.getRef(Ids).ulid(now)) as Id)
  })

export const newAccountId = prefixed<AccountId>("acc_")
export const newReservationId = prefixed<ReservationId>("res_")
export const newLotId = prefixed<string>("lot_")

/** The lot that a payment buys: the same payment, the same lot, so that a notice that comes again grants nothing. */
export const lotIdOfPayment = (paymentRef: string): string => `lot_${hash("sha256", paymentRef, "hex").slice(0, 26)}`

/** A job is named after the reservation that pays for it. */
export const jobIdOf = (reservationId: string): string => `job_${bare(reservationId)}`

const JOB_ID = new RegExp(`^job_${ULID}$`, "u")

/** Whether a text may be a job's id at all. */
export const isJobId = (text: string): boolean => JOB_ID.test(text)

/** An account has one lot of sign-up credits. */
export const signUpLotIdOf = (accountId: string): string => `lot_${bare(accountId)}`

/** An id without its prefix. */
export const bare = (id: string): string => id.slice(id.indexOf("_") + 1)

export const newRequestId: Effect.Effect<string> = Effect.map(Ids, (ids) => ids.uuid())
