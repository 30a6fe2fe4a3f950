/** Those who call: once or again, with a key or without, several at once, with another request by mistake; some hang up. */
import { hash } from "node:crypto"
import type { Charge, Credits, Operation, OperationError } from "@millrace/core"
import { Cause, Effect, Exit, Option } from "effect"
import type * as SeededRandom from "../SeededRandom.ts"
import type { Disconnected, Host } from "./Host.ts"
import type { Input } from "./Upstream.ts"
import type { Process, World } from "./World.ts"

/** What a caller wants. Under one key it should stay the same. */
export interface Intent {
  readonly accountId: string
  readonly operation: string
  readonly input: Input
  readonly key?: string
  readonly request: string
  readonly maxCost?: Credits.Credits
}

export type Answer = Exit.Exit<Charge.Reply, Charge.ChargeError | OperationError | Disconnected>

/** One attempt, as its caller lived it and as its host ended it. */
export interface Call {
  readonly intent: Intent
  readonly requestId: string
  readonly process: Process
  /** Events in the log when it began. */
  readonly floor: number
  readonly startedAt: number
  /** What the caller was told; nothing if it hung up, or waits. */
  told?: { readonly answer: Answer; readonly at: number; readonly ceiling: number }
  hungUp: boolean
  /** When its host was done with it, and how many events were in the log then: also of a caller who hung up. */
  ended?: { readonly at: number; readonly ceiling: number }
}

/** Why a call failed; undefined for a success, or when it was no failure that its types know. */
export const tagOf = (answer: Exit.Exit<unknown, { readonly _tag: string }>): string | undefined =>
  Exit.isSuccess(answer) ? undefined : Option.getOrUndefined(Option.map(Exit.findErrorOption(answer), ({ _tag }) => _tag))

/** The answer in a few words. */
export const brief = (answer: Answer): string => {
  if (Exit.isSuccess(answer)) {
    const { billed, data, replayed } = answer.value
    const cost = billed === undefined ? "free" : `charged ${billed.charged}, ${billed.balance} left`
    return `${replayed ? "replayed" : "done"} ${hash("sha256", data, "base64url").slice(0, 8)}, ${cost}`
  }
  return tagOf(answer) ?? (Cause.hasInterruptsOnly(answer.cause) ? "interrupted" : `died: ${Cause.squash(answer.cause)}`)
}

export interface Town<Op extends Operation.Any> {
  readonly world: World
  readonly hosts: ReadonlyArray<Host<Op>>
  readonly calls: Array<Call>
  /** Events in the log. */
  readonly place: () => number
  readonly hangUps: () => number
  /** Nobody tries again. */
  readonly over: () => boolean
}

/** Makes one call at a host and notes all about it. The caller may hang up. */
export const place = <Op extends Operation.Any>(
  { world, calls, place, hangUps }: Town<Op>,
  host: Host<Op>,
  intent: Intent,
  random: SeededRandom.SeededRandom
): Effect.Effect<Call | undefined> =>
  Effect.suspend((): Effect.Effect<Call | undefined> => {
    const { process } = host
    if (process === undefined) return Effect.undefined
    const { accountId, operation, input, key, request, maxCost } = intent
    const requestId = `q${calls.length}`
    const call: Call = { intent, requestId, process, floor: place(), startedAt: world.now, hungUp: false }
    calls.push(call)
    world.say(requestId, `calls ${operation} ${request} for ${accountId} at ${process.name}${key === undefined ? "" : ` under ${key}`}`)
    const caller = {
      accountId,
      requestId,
      ...(key === undefined ? {} : { idempotency: { key, request } }),
      ...(maxCost === undefined ? {} : { maxCost })
    }
    const ended = () => {
      call.ended = { at: world.now, ceiling: place() }
    }
    const asked = host.call(operation, input, caller, ended).pipe(
      Effect.exit,
      Effect.tap((answer) =>
        Effect.sync(() => {
          call.told = { answer, at: world.now, ceiling: place() }
          world.say(requestId, brief(answer))
        })
      )
    )
    const soon = random.chance(0.5)
    if (!random.chance(hangUps())) return Effect.as(asked, call)
    const patience = soon ? Effect.replicateEffect(Effect.yieldNow, random.below(60), { discard: true }) : Effect.sleep(random.below(3_000))
    const hangUp = Effect.andThen(
      patience,
      Effect.sync(() => {
        call.hungUp = true
        world.say(requestId, "hangs up")
      })
    )
    return Effect.as(Effect.raceFirst(asked, hangUp), call)
  })

/** Errors that no retry mends. */
const FINAL = new Set(["KeyReused", "CostExceedsLimit", "InvalidInput", "NotFound"])

/** Wants something until it has it, or has had enough; answers the call that had it. */
export const insist = <Op extends Operation.Any>(
  town: Town<Op>,
  intent: Intent,
  random: SeededRandom.SeededRandom
): Effect.Effect<Call | undefined> =>
  Effect.gen(function* () {
    const attempts = 1 + (intent.key === undefined ? random.below(6) >> 2 : random.below(6))
    for (let i = 0; i < attempts; i++) {
      const own = random.fork(`attempt ${i}`)
      const up = town.hosts.filter((host) => host.isUp)
      const host = up[own.below(Math.max(1, up.length))]
      const call = host && (yield* place(town, host, intent, own))
      const answer = call?.told?.answer
      if (answer !== undefined && (Exit.isSuccess(answer) || FINAL.has(tagOf(answer) ?? ""))) return call
      if (town.over()) return undefined
      yield* Effect.sleep(own.below(own.pick([100, 2_000, 10_000, 90_000])))
    }
    return undefined
  })
