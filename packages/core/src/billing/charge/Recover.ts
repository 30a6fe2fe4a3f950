/** Ends a hold that is due, for a call whose process died or whose release the store did not accept. */
import type { Aggregate, StateStore } from "@millrace/event-sourcing"
import { Effect } from "effect"
import { hold as openHold } from "../../ledger/Account.ts"
import * as Decisions from "../../ledger/Decisions.ts"
import type { VaultFailure } from "../../vault/Vault.ts"
import type { Any } from "../../work/Operation.ts"
import type { OperationError } from "../../work/OperationError.ts"
import { encode } from "../../work/Perform.ts"
import { endedAnyway } from "./Amends.ts"
import type { Services } from "./Services.ts"
import { settleOf } from "./Settle.ts"

/** Asks a recoverable operation for the outcome and settles by it. Releases any other hold that is due. */
export const recover = Effect.fnUntraced(function* <E extends OperationError, R>(
  { ledger, replies }: Pick<Services, "ledger" | "replies">,
  operation: Any<E, R> | undefined,
  accountId: string,
  reservationId: string
): Effect.fn.Return<void, E | Aggregate.Failure | StateStore.StateUnavailable | VaultFailure, R> {
  const { state, revision, at } = yield* ledger.read(accountId)
  const hold = openHold(state, reservationId)
  if (hold?.recoverable !== true) return yield* Effect.asVoid(ledger.execute(accountId, Decisions.applyDue))
  // The call may still run, here or at another host
  if (hold.expiresAt !== undefined && hold.expiresAt > at) return
  if (operation?._tag !== "Call" || operation.recover === undefined)
    return yield* Effect.logError("No operation of this host can recover a call", { accountId, reservationId })
  const { keyHash, fingerprint, requestId } = hold
  const metadata = { $correlationId: requestId }
  const release = (reason: "abandoned" | "service_error") =>
    endedAnyway(ledger.execute(accountId, Decisions.release(reservationId, reason), metadata))
  // As in a call, a bug of the operation is not charged, and operators see the defect
  const releaseAndDie = (error: unknown) => Effect.andThen(release("service_error"), Effect.die(error))

  const outcome = yield* operation.recover(reservationId)
  if (outcome === undefined) return yield* release("abandoned")
  const done = yield* Effect.catch(encode(operation.key, operation.success, outcome), releaseAndDie)
  if (keyHash !== undefined && fingerprint !== undefined)
    yield* replies.keep(accountId, keyHash, { reservationId, requestId, fingerprint, revision, data: done.data })
  const settle = ledger.execute(accountId, Decisions.settle(settleOf(reservationId, done)), metadata)
  yield* endedAnyway(Effect.catchTag(settle, "ChargeExceedsHold", releaseAndDie))
})
