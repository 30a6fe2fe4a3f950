/** Step 5: charges the units done and builds the reply, with retries if the store does not answer. */
import { hash } from "node:crypto"
import type { Aggregate } from "@millrace/event-sourcing"
import { type Cause, Effect, Schedule } from "effect"
import * as Credits from "../../Credits.ts"
import { newReservationId } from "../../Ids.ts"
import { outcome } from "../../ledger/Account.ts"
import * as Decisions from "../../ledger/Decisions.ts"
import type { Committed } from "../../ledger/Ledger.ts"
import type { Done } from "../../work/Perform.ts"
import { isTransient, retryTransient } from "../../work/Transient.ts"
import * as Amends from "./Amends.ts"
import {
  type Billed,
  billed,
  type Call,
  type ChargeError,
  type Held,
  type OutcomeUnknown,
  type Reply,
  ResultWithheld,
  reserveOf
} from "./Call.ts"
import * as Replay from "./Replay.ts"
import { type Services, TRY_AGAIN } from "./Services.ts"
import type { Delivered } from "./Work.ts"

export type Needs = Replay.Needs & Amends.Needs & Pick<Services, "late">

type SettleError =
  | Decisions.AlreadyEnded
  | Decisions.ReservationNotFound
  | Decisions.HoldExpired
  | Decisions.ChargeExceedsHold
  | Aggregate.Failure

/** The command that charges the units done of a reservation. */
export const settleOf = (reservationId: string, { data, quantity }: Done): Decisions.Settle => ({
  reservationId,
  ...(quantity !== undefined && { quantity }),
  replyHash: hash("sha256", data, "base64url")
})

/** What follows where the first attempt to settle failed. Fails with `OutcomeUnknown` if the store does not answer in time. */
export const notSettled = (
  needs: Needs,
  held: Held,
  done: Delivered,
  cause: Cause.Cause<SettleError>
): Effect.Effect<Reply, ChargeError> => {
  const { accountId, requestId, reservationId } = held.call
  const settle = needs.ledger.execute(accountId, Decisions.settle(settleOf(reservationId, done)), { $correlationId: requestId })
  return Effect.catch(settleAgain(needs, held, done, Effect.failCause(cause), settle), (error) => refused(needs, held, done, error))
}

/** Continues after a first attempt that failed. Its result counts as the first try. */
const settleAgain = (
  needs: Needs,
  held: Held,
  done: Delivered,
  first: Effect.Effect<never, SettleError>,
  settle: Effect.Effect<Committed, SettleError>
): Effect.Effect<Reply, SettleError> =>
  Effect.flatMap(Schedule.CurrentMetadata, ({ attempt }) => (attempt === 0 ? first : settle)).pipe(
    Effect.map((committed) => replyOf(needs, held.call, done, committed)),
    // The account has forgotten the outcome while the store did not answer: read it from the stream
    Effect.catchTag("ReservationNotFound", () => readEnd(needs, held, done)),
    retryTransient(TRY_AGAIN)
  )

const refused = (needs: Needs, held: Held, done: Delivered, error: SettleError): Effect.Effect<Reply, ResultWithheld | OutcomeUnknown> => {
  switch (error._tag) {
    case "ChargeExceedsHold":
      // The operation did more units than were held: a bug, so the caller is not charged
      return Effect.andThen(Amends.release(needs, held.call, "service_error"), Effect.die(error))
    case "HoldExpired":
    case "AlreadyEnded":
      return needs.late === "charge" ? chargeLate(needs, held, done) : Effect.fail(new ResultWithheld())
    default:
      return Amends.outcomeUnknown(needs, held.call)
  }
}

/** The reply by the end of the hold in the account's stream. */
const readEnd = Effect.fnUntraced(function* ({ ledger }: Needs, { call, hold }: Held, done: Delivered) {
  const { accountId, reservationId } = call
  const end = yield* ledger.ending(accountId, reservationId, hold.revision)
  if (end?._tag !== "OperationSucceeded" && end?._tag !== "TrialUsed") return yield* new Decisions.HoldExpired({ reservationId })
  return answered(call, done, billed(ledger, yield* ledger.read(accountId), "charged" in end ? end.charged : Credits.zero))
})

/**
 * Charges a late result under a new reservation, if the host chose `late: "charge"`. It looks the key up again, because another attempt may
 * have used it.
 */
const chargeLate = Effect.fnUntraced(
  function* (needs: Needs, { call: before, hold }: Held, done: Delivered) {
    const { accountId, requestId } = before
    const key = before.key && (yield* Replay.marked(needs, accountId, before.key))
    if (key !== undefined && (yield* Replay.isKept(needs, accountId, key))) return yield* new ResultWithheld()
    const call: Call = { ...before, key, reservationId: yield* newReservationId }
    const held: Held = { _tag: "Held", call, hold }
    yield* Replay.keep(needs, held, done)
    // Its slot of the trial was released: a late result is charged in credits
    const reserve = { ...reserveOf(call, needs.ledger), trial: false }
    const settle = Decisions.settleLate(reserve, settleOf(before.reservationId, done))
    const committed = yield* needs.ledger.execute(accountId, settle, { $correlationId: requestId }).pipe(
      retryTransient(TRY_AGAIN),
      Effect.catchIf(isTransient, () => Amends.outcomeUnknown(needs, call))
    )
    // Another attempt may have replaced the reply meanwhile, and then failed
    yield* Effect.ignore(Replay.keep(needs, held, done))
    return replyOf(needs, call, done, committed)
  },
  Effect.mapError((error) => (error._tag === "OutcomeUnknown" ? error : new ResultWithheld()))
)

/** The reply of a call that was settled. */
export const replyOf = ({ ledger }: Pick<Needs, "ledger">, call: Call, done: Delivered, committed: Committed): Reply =>
  answered(call, done, billed(ledger, committed, chargedBy(committed, call.reservationId)))

/** What the call was charged: by this command, or before it. A call on trial is charged nothing. */
const chargedBy = ({ events, state }: Committed, reservationId: string): Credits.Credits => {
  for (const event of events) if (event._tag === "OperationSucceeded" && event.reservationId === reservationId) return event.charged
  const end = outcome(state, reservationId)
  return end?._tag === "succeeded" ? end.charged : Credits.zero
}

/** The reply of a call that did its work, with its charge. */
export const answered = ({ requestId }: Pick<Call, "requestId">, done: Delivered, cost?: Billed): Reply => ({
  requestId,
  ...(done.quantity === undefined ? done : withoutQuantity(done)),
  ...(cost !== undefined && { billed: cost }),
  replayed: false
})

const withoutQuantity = ({ quantity: _, ...done }: Delivered): Omit<Delivered, "quantity"> => done
