import { Effect, Exit } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import { judgeCall } from "./Expectations.ts"
import type { Host } from "./Host.ts"
import { type Call, type Input, type Intent, summaryOf, tagOf } from "./Records.ts"
import { pickHost, type Simulation } from "./Simulation.ts"

/** A text that differs whenever the request does. */
export const requestOf = (operation: string, input: Input): string => `${operation} ${JSON.stringify(input)}`

/** Makes one call at a host and records it. The caller may hang up. Undefined if the host is down. */
export const call = (simulation: Simulation, host: Host, intent: Intent, random: SeededRandom): Effect.Effect<Call | undefined> =>
  Effect.suspend((): Effect.Effect<Call | undefined> => {
    const { faults, isOver, records, report, workload, world } = simulation
    const { process } = host
    if (process === undefined) return Effect.undefined
    const { accountId, operation, input, key, request, maxCost, wait } = intent
    const requestId = `q${records.calls.length}`
    const record: Call = { intent, requestId, process, lengthBefore: records.recorder.length, startedAt: world.now, hungUp: false }
    records.calls.push(record)
    world.note(requestId, `calls ${operation} ${request} for ${accountId} at ${process.name}${key === undefined ? "" : ` under ${key}`}`)
    const caller = {
      accountId,
      requestId,
      ...(key === undefined ? {} : { idempotency: { key, request } }),
      ...(maxCost === undefined ? {} : { maxCost }),
      ...(wait === undefined ? {} : { wait })
    }
    const onEnd = () => {
      record.ended = { at: world.now, lengthAfter: records.recorder.length }
    }
    let judgement: Effect.Effect<void> | undefined
    const answered = host.call(operation, input, caller, onEnd).pipe(
      Effect.exit,
      Effect.tap((answer) =>
        Effect.sync(() => {
          record.response = { answer, at: world.now, lengthAfter: records.recorder.length }
          world.note(requestId, summaryOf(answer))
          judgement = judgeCall(workload.expect, simulation, record, report)
        })
      )
    )
    const isSoon = random.chance(0.5)
    const judged = Effect.suspend(() => Effect.as(judgement ?? Effect.void, record))
    if (!random.chance(isOver() ? 0 : faults.hangUps)) return Effect.andThen(answered, judged)
    const hangUp = Effect.andThen(
      patience(isSoon, random),
      Effect.sync(() => {
        record.hungUp = true
        world.note(requestId, "hangs up")
      })
    )
    return Effect.andThen(Effect.raceFirst(answered, hangUp), judged)
  })

/** How long a caller waits before it hangs up: a few steps of its fiber, or up to three seconds. */
const patience = (isSoon: boolean, random: SeededRandom): Effect.Effect<void> =>
  isSoon ? Effect.replicateEffect(Effect.yieldNow, random.below(60), { discard: true }) : Effect.sleep(random.below(3_000))

/** Errors that no retry can change. */
const FINAL = new Set(["KeyReused", "CostExceedsLimit", "InvalidInput", "NotFound"])

/** Repeats a call until it gets a final answer or has tried often enough. Returns the call with the final answer, if any. */
export const callWithRetries = (simulation: Simulation, intent: Intent, random: SeededRandom): Effect.Effect<Call | undefined> =>
  Effect.gen(function* () {
    const attempts = 1 + (intent.key === undefined ? random.below(6) >> 2 : random.below(6))
    for (let i = 0; i < attempts; i++) {
      const own = random.fork(`attempt ${i}`)
      const host = pickHost(simulation, own)
      const record = host && (yield* call(simulation, host, intent, own))
      const answer = record?.response?.answer
      if (answer !== undefined && (Exit.isSuccess(answer) || FINAL.has(tagOf(answer) ?? ""))) return record
      if (simulation.isOver()) return undefined
      yield* Effect.sleep(own.below(own.pick([100, 2_000, 10_000, 90_000])))
    }
    return undefined
  })
