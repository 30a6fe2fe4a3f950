/** Step 2: holds the cost of a call, or returns the reply of an earlier call under the same key. */
import { Aggregate, type EventStore, StreamName } from "@millrace/event-sourcing"
import { type Cause, type Context, Effect } from "effect"
import { Account } from "../../ledger/Account.ts"
import * as Decisions from "../../ledger/Decisions.ts"
import type { Committed } from "../../ledger/Ledger.ts"
import type { Told } from "../../Running.ts"
import type { OperationError } from "../../work/OperationError.ts"
import * as Amends from "./Amends.ts"
import { type Call, type ChargeError, type Held, type Replayed, ReplyUnavailable, reserveOf } from "./Call.ts"
import * as Replay from "./Replay.ts"

type Needs = Replay.Needs & Amends.Needs

/** The most lookups of a key. If all are stale, because too many calls of the account end meanwhile, the account is busy. */
const LOOKUPS = 5

/** Newer prices were published, and nothing was held. The call is to be quoted again. */
export interface Outdated {
  readonly _tag: "Outdated"
}

const OUTDATED: Outdated = { _tag: "Outdated" }

type Reserved<E extends OperationError, R> = Effect.Effect<Held<E, R> | Replayed | Outdated, E | ChargeError, R>

/** Begins to reserve the cost, where the call has a condition only if that holds. */
export const start = (
  { ledger }: Pick<Needs, "ledger">,
  call: Call,
  context: Context.Context<never>,
  told: Told<Committed, Refused>
): void => {
  const { accountId, condition, requestId } = call
  const reserve = Decisions.reserve(reserveOf(call, ledger))
  const metadata = { $correlationId: requestId }
  if (condition === undefined) ledger.submit(accountId, reserve, metadata, context, told)
  else ledger.submitIf([condition], accountId, reserve, metadata, context, told)
}

/** Reserves the cost. `lookups`: how often the key was looked up so far. */
export const make = <E extends OperationError, R>(services: Needs, call: Call<E, R>, lookups = 1): Reserved<E, R> => {
  const reserved = Effect.withFiber<Committed, Refused>(({ context }) =>
    Effect.callback((resume) => start(services, call, context, resume))
  )
  return Effect.matchCauseEffect(reserved, {
    onSuccess: (hold) => Effect.succeed({ _tag: "Held", call, hold }),
    onFailure: (cause) => notHeld(services, call, cause, lookups)
  })
}

export type Refused = Decisions.ReserveRefusal | Aggregate.Failure | EventStore.ConditionFailed

/** What follows where the cost was not reserved. `lookups`: how often the key was looked up so far. */
export const notHeld = <E extends OperationError, R>(
  services: Needs,
  call: Call<E, R>,
  cause: Cause.Cause<Refused>,
  lookups = 1
): Reserved<E, R> =>
  Effect.catchTags(Effect.failCause(cause), {
    AlreadySucceeded: () => replayed(services, call),
    LookupStale: (): Reserved<E, R> => (lookups < LOOKUPS ? lookUpAgain(services, call, lookups) : Effect.fail(busy(call.accountId))),
    // A reservation id is new for each attempt
    AlreadyEnded: Effect.die,
    ConditionFailed: () => Effect.succeed(OUTDATED),
    // `JobUpkeep` releases the hold of a job that is never accepted
    AppendInDoubt: (error) =>
      Effect.andThen(call.operation._tag === "Job" ? Effect.void : Amends.correctInBackground(services, call), Effect.fail(error))
  })

/** The call succeeded between the lookup and the hold. */
const replayed = Effect.fnUntraced(function* <E extends OperationError, R>(services: Needs, call: Call<E, R>) {
  const reply = call.key && (yield* Replay.find(services, call, call.key))
  return reply ?? (yield* new ReplyUnavailable())
})

/** The account has forgotten outcomes since the lookup: look the reply up again, then reserve again. */
const lookUpAgain = Effect.fnUntraced(function* <E extends OperationError, R>(
  services: Needs,
  call: Call<E, R>,
  lookups: number
): Effect.fn.Return<Held<E, R> | Replayed | Outdated, E | ChargeError, R> {
  const key = call.key && (yield* Replay.marked(services, call.accountId, call.key))
  const reply = key && (yield* Replay.find(services, call, key))
  return reply ?? (yield* make(services, { ...call, key }, lookups + 1))
})

const busy = (accountId: string) => new Aggregate.Busy({ stream: StreamName.make(Account.category, accountId) })
