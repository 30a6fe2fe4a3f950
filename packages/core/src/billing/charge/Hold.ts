/** Step 2: holds the price of a call, unless its key turns out to have done its work. */
import { Aggregate, StreamName } from "@millrace/event-sourcing"
import { Effect } from "effect"
import { idOf as jobIdOf } from "../../jobs/Job.ts"
import { Account } from "../../ledger/Account.ts"
import * as Decisions from "../../ledger/Decisions.ts"
import type { OperationError } from "../../work/OperationError.ts"
import * as Amends from "./Amends.ts"
import { type Call, type ChargeError, type Held, type Replayed, ReplyUnavailable, reserveOf } from "./Call.ts"
import * as Replay from "./Replay.ts"

type Needs = Replay.Needs & Amends.Needs

/** How often a key is looked up at most, while so much ends in its account that each lookup is outdated: then the account is busy. */
const LOOKUPS = 5

export const make = <E extends OperationError, R>(
  services: Needs,
  call: Call<E, R>,
  lookups = 1
): Effect.Effect<Held<E, R> | Replayed, E | ChargeError, R> => {
  const { accountId, operation, requestId, reservationId } = call
  const reserve = Decisions.reserve(reserveOf(call, services.ledger.adjustmentLifetime, jobIdOf(reservationId)))
  return Effect.matchEffect(services.ledger.execute(accountId, reserve, { $correlationId: requestId }), {
    onSuccess: (hold): Effect.Effect<Held<E, R> | Replayed, E | ChargeError, R> => Effect.succeed({ _tag: "Held", call, hold }),
    onFailure: (error): Effect.Effect<Held<E, R> | Replayed, E | ChargeError, R> => {
      switch (error._tag) {
        case "AlreadySucceeded":
          return replayed(services, call)
        case "LookupStale":
          return lookups < LOOKUPS ? lookUpAgain(services, call, lookups) : Effect.fail(busy(accountId))
        case "AlreadyEnded":
          // A reservation id is new for each attempt
          return Effect.die(error)
        case "AppendInDoubt":
          // The hold of a job that nobody accepts is released by itself
          return Effect.andThen(operation._tag === "Job" ? Effect.void : Amends.putRight(services, call), Effect.fail(error))
        default:
          return Effect.fail(error)
      }
    }
  })
}

/** The call succeeded between the lookup and the hold. */
const replayed = Effect.fnUntraced(function* <E extends OperationError, R>(services: Needs, call: Call<E, R>) {
  const reply = call.key && (yield* Replay.find(services, call, call.key))
  return reply ?? (yield* new ReplyUnavailable())
})

/** The command waited until the account had forgotten outcomes that are newer than the lookup: the reply may have been kept since. */
const lookUpAgain = Effect.fnUntraced(function* <E extends OperationError, R>(
  services: Needs,
  call: Call<E, R>,
  lookups: number
): Effect.fn.Return<Held<E, R> | Replayed, E | ChargeError, R> {
  const key = call.key && (yield* Replay.marked(services, call.accountId, call.key))
  const reply = key && (yield* Replay.find(services, call, key))
  return reply ?? (yield* make(services, { ...call, key }, lookups + 1))
})

const busy = (accountId: string) => new Aggregate.Busy({ stream: StreamName.make(Account.category, accountId) })
