/** Ids of resources: a prefix that names the kind of resource, then a ULID. A test or a simulation can replace the generator. */

import { hash, randomFillSync, randomUUID } from "node:crypto"
import { Clock, Context, Effect, Schema } from "effect"
import { monotonicFactory } from "ulid"

const ULID = "[0-9A-HJKMNP-TV-Z]{26}"

export const AccountId = Schema.String.check(Schema.isPattern(new RegExp(`^acc_${ULID}$`, "u"))).pipe(Schema.brand("AccountId"))
export type AccountId = typeof AccountId.Type

export const ReservationId = Schema.String.check(Schema.isPattern(new RegExp(`^res_${ULID}$`, "u"))).pipe(Schema.brand("ReservationId"))
export type ReservationId = typeof ReservationId.Type

/** Generates ids. */
export interface Ids {
  /** A ULID for a time in milliseconds since 1970. Each is greater than all before it. */
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

/** Random numbers in [0, 1), read from the system's generator 4,096 at a time: single reads would cost more than the rest of an id. */
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

/** A new id, by the clock and the generator of a context. */
const idIn = <Id extends string>(prefix: string, context: Context.Context<never>): Id => {
  const now = Context.get(context, Clock.Clock).currentTimeMillisUnsafe()
  // The id's schema accepts any ULID after its prefix
  return (prefix + Context.get(context, Ids).ulid(now)) as Id
}

const prefixed = <Id extends string>(prefix: string): Effect.Effect<Id> =>
  Effect.withFiber(({ context }) => Effect.succeed(idIn<Id>(prefix, context)))

export const newAccountId = prefixed<AccountId>("acc_")
export const newReservationId = prefixed<ReservationId>("res_")
/** {@link newReservationId} without a fiber. */
export const newReservationIdIn = (context: Context.Context<never>): ReservationId => idIn("res_", context)
export const newLotId = prefixed<string>("lot_")
/** The id of a recurring grant. */
export const newGrantId = prefixed<string>("grant_")

export const newPaymentId = prefixed<string>("pay_")
export const newRunnerId = prefixed<string>("runner_")
export const newWebhookId = prefixed<string>("wh_")
export const newProxyNodeId = prefixed<string>("node_")
export const newSessionId = prefixed<string>("ses_")
export const newSignInId = prefixed<string>("link_")
/** A key id stands inside a key, in lower case and without a prefix. */
export const newKeyId = Effect.map(prefixed<string>(""), (id) => id.toLowerCase())

/** The id of the lot that a payment buys. It derives from the payment, so a repeated payment notice grants nothing. */
export const lotIdOfPayment = (paymentRef: string): string => `lot_${hash("sha256", paymentRef, "hex").slice(0, 26)}`

/** A job has the ULID of the reservation that pays for it. */
export const jobIdOf = (reservationId: string): string => `job_${bare(reservationId)}`

/** A proxy session has the ULID of the reservation that pays for it. */
export const proxySessionIdOf = (reservationId: string): string => `proxy_${bare(reservationId)}`

/** A wait for a verification code has the ULID of the reservation that pays for it. */
export const verificationIdOf = (reservationId: string): string => `ver_${bare(reservationId)}`

/** A payment made here has the ULID of the call that requested it. */
export const paymentIdOf = (reservationId: string): string => `pay_${bare(reservationId)}`

const JOB_ID = new RegExp(`^job_${ULID}$`, "u")

/** Whether a text has the format of a job id. */
export const isJobId = (text: string): boolean => JOB_ID.test(text)

/** The id of an account's only lot of sign-up credits. */
export const signUpLotIdOf = (accountId: string): string => `lot_${bare(accountId)}`

/** An id without its prefix. */
export const bare = (id: string): string => id.slice(id.indexOf("_") + 1)

export const newRequestId: Effect.Effect<string> = Effect.map(Ids, (ids) => ids.uuid())
