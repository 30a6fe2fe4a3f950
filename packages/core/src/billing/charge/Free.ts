/** A free call. It leaves no event in the ledger. */
import type { Aggregate } from "@millrace/event-sourcing"
import { Effect } from "effect"
import * as Credits from "../../Credits.ts"
import type { Account } from "../../ledger/Account.ts"
import type { AnyCall, AnyFile } from "../../work/Operation.ts"
import type { OperationError } from "../../work/OperationError.ts"
import { billed, type Call, type ChargeError, type Free, type Replayed, type Reply, ResultWithheld } from "./Call.ts"
import * as Replay from "./Replay.ts"
import type { Services } from "./Services.ts"
import { answered } from "./Settle.ts"
import { type Delivered, work } from "./Work.ts"

type Needs = Replay.Needs & Pick<Services, "perform">

/** Whether the key must be claimed, so that the call runs once. A GET may run twice without harm. */
export const isClaimed = ({ key, operation }: Call): boolean => key !== undefined && operation.route.method !== "GET"

/** Claims the key, then does the work. */
export const once = <E extends OperationError, R>(
  needs: Needs,
  free: Call<E, R>,
  operation: AnyCall<E, R> | AnyFile<E, R>
): Effect.Effect<Reply, E | ChargeError, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const admitted = yield* admit(needs, free)
      if (admitted._tag === "Replayed") return admitted.reply
      const done = yield* Effect.tapCause(restore(work(needs, operation, free.input, free)), () => unclaim(needs, free))
      const standing = yield* Effect.tapCause(Replay.keep(needs, admitted, done), () => unclaim(needs, free))
      // The claim had run out, and another call took the key
      if (standing !== undefined) return yield* new ResultWithheld()
      return yield* reply(needs, free, done)
    })
  )

/** Claims the key of a free call, if it has one. Returns the reply of a call that has ended meanwhile. */
export const admit = <E extends OperationError, R>(
  needs: Replay.Needs,
  free: Call<E, R>
): Effect.Effect<Free<E, R> | Replayed, E | ChargeError, R> => {
  const claimed = free.key === undefined ? Effect.undefined : Replay.claim(needs, free, free.key)
  return Effect.map(
    // A claim whose write is in doubt may be there
    Effect.tapCause(claimed, () => unclaim(needs, free)),
    (replayed): Free<E, R> | Replayed => replayed ?? { _tag: "Free", call: free }
  )
}

/** Frees the key. If the store does not answer, the claim expires. */
export const unclaim = ({ replies }: Replay.Needs, { accountId, key, reservationId }: Call): Effect.Effect<void> =>
  key === undefined ? Effect.void : Effect.ignore(replies.unclaim(accountId, key.hash, reservationId))

/** The reply, with the balance if it can be read. It is an exit if the account can be read at once. */
export const reply = ({ ledger }: Pick<Services, "ledger">, { accountId, requestId }: Call, done: Delivered): Effect.Effect<Reply> => {
  const replied = (account: Aggregate.Current<Account>) => answered({ requestId }, done, billed(ledger, account, Credits.zero))
  const now = ledger.readNow(accountId)
  if (now !== undefined) return Effect.succeed(replied(now))
  return Effect.match(ledger.read(accountId), { onFailure: () => answered({ requestId }, done), onSuccess: replied })
}
