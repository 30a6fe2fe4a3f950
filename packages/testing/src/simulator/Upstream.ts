/** What an operation's upstream does to it: it answers, or fails, hangs, dies, takes too long, or lies. */
import { InvalidInput, NotFound, type Operation, type OperationError, UpstreamNotConfigured, UpstreamUnavailable } from "@millrace/core"
import { type Context, Duration, Effect, Schema } from "effect"
import { dressJob } from "./JobUpstream.ts"
import { BUG, type Weather, within } from "./Weather.ts"
import type { OfHost } from "./Workload.ts"

/** An operation with its services but those of its host, under the simulator's weather. */
export type Dressed = Operation.Any<OperationError, OfHost>

// biome-ignore lint/suspicious/noExplicitAny: whatever the operation takes
export type Input = any

const fates = [
  "invalid",
  "missing",
  "down",
  "absent",
  "half",
  "hang",
  "slow",
  "deaf",
  "bug",
  "refused",
  "more",
  "fraction",
  "less"
] as const

export const dress = <R>(operation: Operation.Any<OperationError, R | OfHost>, services: Context.Context<R>, weather: Weather): Dressed => {
  const checked = {
    check: (input: Input, requester: Operation.Requester) => within(operation.check(input, requester), services),
    configured: within(operation.configured, services)
  }
  switch (operation._tag) {
    case "Call": {
      const { recover: _, ...rest } = operation
      return { ...rest, ...checked, ...dressCall(operation, services, weather) }
    }
    case "Job":
      return { ...operation, ...checked, run: dressJob(operation, services, weather) }
    case "File":
      return { ...operation, ...checked, open: (input, caller) => within(operation.open(input, caller), services) }
  }
}

const dressCall = <R>(
  operation: Operation.AnyCall<OperationError, R | OfHost>,
  services: Context.Context<R>,
  weather: Weather
): Pick<Operation.AnyCall<OperationError, OfHost>, "run" | "recover"> => {
  const { world, delivered } = weather
  const timeout = Duration.toMillis(operation.timeout)
  const encode = Schema.encodeUnknownSync(Schema.toCodecJson(operation.success))
  const { recover } = operation

  const run: Operation.AnyCall<OperationError, OfHost>["run"] = (input, caller) =>
    Effect.suspend((): Effect.Effect<Operation.Outcome<unknown>, OperationError, OfHost> => {
      const random = weather.random.fork(caller.requestId)
      const fate = random.chance(weather.rate()) ? random.pick(fates) : "fine"
      const upstream = operation.key
      const takes = random.chance(0.2) ? random.below(timeout) : random.below(40)
      world.say(upstream, `runs ${caller.requestId}: ${fate}`)
      const work = within(operation.run(input, caller), services)
      const { requestId, reservationId } = caller
      const delivering = Effect.tap(Effect.delay(work, takes), ({ data, quantity }) =>
        Effect.sync(() => delivered({ requestId, reservationId, data: JSON.stringify(encode(data)), quantity }))
      )
      const later = <E>(error: E) => Effect.delay(Effect.fail(error), takes)
      switch (fate) {
        case "fine":
          return delivering
        case "invalid":
          return later(new InvalidInput({ field: "n", message: fate }))
        case "missing":
          return later(new NotFound({ resource: "thing" }))
        case "down":
          return later(new UpstreamUnavailable({ upstream, reason: fate }))
        case "absent":
          return later(new UpstreamNotConfigured({ upstream }))
        case "half":
          // It did the work, and nobody heard of it
          return Effect.andThen(delivering, Effect.fail(new UpstreamUnavailable({ upstream, reason: fate })))
        case "hang":
          return Effect.never
        case "slow":
          return Effect.delay(delivering, timeout + random.below(60_000) - 5)
        case "deaf":
          // It does not let itself be interrupted, until long after the hold's expiry
          return Effect.uninterruptible(Effect.delay(delivering, timeout + random.below(90_000)))
        case "bug":
          return Effect.delay(Effect.die(new Error(BUG)), takes)
        case "refused":
          return Effect.map(delivering, () => ({ data: undefined }))
        case "more":
          return Effect.map(delivering, ({ data }) => ({ data, quantity: operation.quantity(input) + 1 }))
        case "fraction":
          return Effect.map(delivering, ({ data }) => ({ data, quantity: 0.5 }))
        case "less":
          return Effect.map(delivering, ({ data }) => ({ data, quantity: -1 }))
      }
    })

  let asked = 0
  if (recover === undefined) return { run }
  return {
    run,
    recover: (reservationId) =>
      Effect.suspend((): Effect.Effect<Operation.Outcome<unknown> | undefined, OperationError, OfHost> => {
        const random = weather.random.fork(`${reservationId} ${asked++}`)
        const fails = random.chance(weather.rate() / 2)
        const hangs = random.chance(0.3)
        world.say(operation.key, `is asked what became of ${reservationId}${fails ? (hangs ? ": hangs" : ": down") : ""}`)
        if (fails && hangs) return Effect.never
        if (fails) return Effect.fail(new UpstreamUnavailable({ upstream: operation.key, reason: "down" }))
        return Effect.delay(within(recover(reservationId), services), random.below(100))
      })
  }
}
