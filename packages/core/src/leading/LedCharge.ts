/**
 * `Charge` with calls that run at the leader of their account, over any links: the real ones of `Leading.ts`, or those of a simulation.
 * `run` is for the calls that come from other hosts.
 */
import { Effect, Option, Tracer } from "effect"
import { CallsInDoubt } from "../billing/CallsInDoubt.ts"
import { Charge } from "../billing/Charge.ts"
import * as Metrics from "../observability/Metrics.ts"
import * as TraceContext from "../observability/TraceContext.ts"
import type { Any, Services } from "../work/Operation.ts"
import * as Codec from "./Codec.ts"
import * as Forwarding from "./Forwarding.ts"
import type { Link } from "./Link.ts"
import type { Run } from "./Reception.ts"

export type { Outcome } from "./Link.ts"
export type { Ended, Forwarded } from "./Message.ts"
export type { Run } from "./Reception.ts"

/** The other hosts, as the calls of this one see them. */
export interface Leaders {
  /** What sends a call to the leader of an account. Undefined if that is this host. */
  readonly leaderOf: (accountId: string) => Pick<Link, "call"> | undefined
}

export interface LedCharge {
  /** Runs a call that another host forwarded. */
  readonly run: Run
  /** `Charge`, with calls that run at their leaders. */
  readonly over: (leaders: Leaders) => Charge["Service"]
}

type Forwardables = ReadonlyMap<string, Codec.Forwardable>

/** Promises that calls are free are stored in the scope. */
export const make = Effect.fnUntraced(function* <Op extends Any>(operations: ReadonlyArray<Op>) {
  const here = yield* Charge
  const forwardables: Forwardables = new Map(
    operations.flatMap((operation) => {
      const known = Codec.forwardable(operation)
      return known === undefined ? [] : [[operation.key, known]]
    })
  )
  const needs = { callsInDoubt: yield* CallsInDoubt, scope: yield* Effect.scope, count: yield* Metrics.countForwarded }
  const charge: LedCharge = {
    run: yield* running<Op>(here, forwardables),
    over: (leaders) => forwarding(needs, here, leaders, forwardables)
  }
  return charge
})

const forwarding = (needs: Forwarding.Needs, here: Charge["Service"], leaders: Leaders, forwardables: Forwardables): Charge["Service"] => ({
  ...here,
  run: (operation, input, caller) =>
    Effect.suspend(() => {
      const call = here.run(operation, input, caller)
      const link = leaders.leaderOf(caller.accountId)
      const known = forwardables.get(operation.key)
      if (link === undefined || known === undefined) return call
      // The leader runs the same operation, so it fails with no other errors
      return Forwarding.forward(needs, link, known, input, caller, call) as typeof call
    }),
  start: (operation, input, caller, context, told) =>
    leaders.leaderOf(caller.accountId) === undefined || !forwardables.has(operation.key)
      ? here.start(operation, input, caller, context, told)
      : undefined
})

const running = <Op extends Any>(here: Charge["Service"], forwardables: Forwardables) =>
  Effect.map(Effect.context<Services<Op>>(), (context): Run => {
    const start = Effect.runForkWith(context)
    return ({ caller, input, operation, trace }, told) => {
      const known = forwardables.get(operation)
      const decoded = known?.decode(input)
      if (known === undefined || decoded === undefined || Option.isNone(decoded)) return undefined
      const call = here.run(known.operation, decoded.value, caller)
      const span = TraceContext.fromHeaders(trace)
      const fiber = start(span === undefined ? call : Effect.provideService(call, Tracer.ParentSpan, span))
      fiber.addObserver((exit) => told(Codec.endedOf(exit)))
      return () => fiber.interruptUnsafe()
    }
  })
