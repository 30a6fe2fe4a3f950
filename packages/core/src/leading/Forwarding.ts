/** The side of a host that sends a call to the leader of its account, and tells the caller how it ended. */
import { Effect, Option } from "effect"
import * as Amends from "../billing/charge/Amends.ts"
import { type Caller, OutcomeUnknown, type Reply } from "../billing/charge/Call.ts"
import { newReservationId } from "../Ids.ts"
import type * as Metrics from "../observability/Metrics.ts"
import * as TraceContext from "../observability/TraceContext.ts"
import { exitOf, type Failure, type Forwardable } from "./Codec.ts"
import type { Link, Outcome } from "./Link.ts"
import type { Forwarded } from "./Message.ts"

export interface Needs extends Pick<Amends.Needs, "callsInDoubt" | "scope"> {
  readonly count: Effect.Success<typeof Metrics.countForwarded>
}

/** Runs a call at the host of a link, or by `here` if it was not begun there. Interruption cancels it there. */
export const forward = <E, R>(
  needs: Needs,
  link: Pick<Link, "call">,
  { encode, operation, patience }: Forwardable,
  input: unknown,
  caller: Caller,
  here: Effect.Effect<Reply, E, R>
): Effect.Effect<Reply, E | Failure, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const written = encode(input)
      if (Option.isNone(written)) return yield* restore(here)
      // Chosen here, so that this host can make the call free
      const reservationId = yield* newReservationId
      const trace = yield* TraceContext.headers
      const call: Forwarded = { operation: operation.key, input: written.value, caller: { ...caller, reservationId }, trace }
      const outcome = yield* restore(send(link, call, patience))
      needs.count(COUNTED[outcome._tag])
      if (outcome._tag === "NotBegun") return yield* restore(here)
      // A host that was interrupted may have charged before
      if (outcome._tag === "Ended" && !("interrupted" in outcome.ended)) return yield* exitOf(outcome.ended)
      if (caller.idempotency === undefined) {
        const { accountId, requestId } = caller
        yield* Amends.promise(needs, {
          accountId,
          requestId,
          reservationId,
          ...(operation._tag === "Job" ? { operation: operation.key } : {})
        })
      }
      return yield* Effect.fail(new OutcomeUnknown())
    })
  )

/** Names of outcomes in metrics. */
const COUNTED = { Ended: "answered", NotBegun: "not_begun", Lost: "lost" } as const

const send = (link: Pick<Link, "call">, call: Forwarded, patience: number): Effect.Effect<Outcome> =>
  Effect.callback((resume) => {
    const cancel = link.call(call, patience, (outcome) => resume(Effect.succeed(outcome)))
    if (cancel !== undefined) return Effect.sync(cancel)
    resume(Effect.succeed({ _tag: "NotBegun" }))
    return undefined
  })
