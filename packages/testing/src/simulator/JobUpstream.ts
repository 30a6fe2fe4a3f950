/** What the upstream of a job does to an attempt at it, and a note of all that the attempt was given, recorded and came to. */
import { InvalidInput, NotFound, Operation, type OperationError, UpstreamNotConfigured, UpstreamUnavailable } from "@millrace/core"
import { Cause, type Context, Duration, Effect, Exit, Option, Schema } from "effect"
import { BUG, type Weather, within } from "./Weather.ts"
import type { OfHost } from "./Workload.ts"
import type { Process } from "./World.ts"

/** A checkpoint that an attempt wanted recorded. */
interface Mark {
  readonly percent: number
  readonly text: string | undefined
  /** Whether the attempt was told that it is. */
  answered: boolean
}

/** One attempt as the upstream and the operation lived it. */
export interface Attempted {
  readonly jobId: string
  readonly accountId: string
  readonly attempt: number
  readonly operation: string
  readonly input: string
  readonly checkpoint: string | undefined
  /** Events in the log when it began to work. */
  readonly place: number
  readonly marks: Array<Mark>
  /** Work that was truly delivered: its data as JSON text. */
  delivered?: { readonly data: string; readonly quantity: number | undefined; readonly artifacts: ReadonlyArray<string> }
  /** What the operation itself ended with: `done`, the tag of its error, `Defect`, or `interrupted`. */
  came?: string
  /** When it was through with it, and since when nothing had kept its host from that: milliseconds since 1970. */
  stopped?: { readonly at: number; readonly free: number }
  /** It does not let itself be interrupted. */
  readonly isDeaf: boolean
  /** Where it was made. */
  readonly process: Process
  /** Its data is refused by its schema, or it counted what cannot be: the work comes to nothing, whatever was delivered. */
  spoilt?: "Defect"
}

const FATES = [
  ...["invalid", "missing", "absent", "bug", "refused", "more", "fraction", "less"],
  ...["down", "down", "down", "half", "half", "part", "part", "hang", "slow", "deaf"]
] as const

type Run<R> = Operation.AnyJob<OperationError, R>["run"]

export const dressJob = <R>(
  operation: Operation.AnyJob<OperationError, R | OfHost>,
  services: Context.Context<R>,
  weather: Weather
): Run<OfHost> => {
  const { process, world } = weather
  const { family, key, route } = operation
  const timeout = Duration.toMillis(operation.timeout)
  const textOf = textBy(family.result)
  const inputText = textBy(Operation.inputOf(route))
  const checkpointText = textBy(family.checkpoint)

  return (asked, job) =>
    Effect.suspend(() => {
      const { accountId, attempt: number, id: jobId } = job
      const input = inputText(asked)
      const checkpoint = job.checkpoint === undefined ? undefined : checkpointText(job.checkpoint)
      const random = weather.random.fork(`${jobId} ${number}`)
      const fate = random.chance(weather.rate()) ? random.pick(["down", ...FATES]) : "fine"
      const takes = random.chance(0.2) ? random.below(timeout) : random.below(random.pick([40, 4_000]))
      world.say(key, `attempt ${number} at ${jobId}: ${fate}`)
      const place = weather.place()
      const seen: Attempted = {
        jobId,
        accountId,
        attempt: number,
        operation: key,
        input,
        checkpoint,
        place,
        marks: [],
        isDeaf: fate === "deaf",
        process
      }
      weather.attempted(seen)
      const failed = new UpstreamUnavailable({ upstream: key, reason: fate })

      const progress: typeof job.progress = (percent, reached) =>
        Effect.suspend(() => {
          const mark: Mark = { percent, text: reached === undefined ? undefined : checkpointText(reached), answered: false }
          seen.marks.push(mark)
          const recorded = Effect.tap(job.progress(percent, reached), () =>
            Effect.sync(() => {
              mark.answered = true
            })
          )
          if (fate === "part") return Effect.andThen(recorded, Effect.fail(failed))
          // However deaf the upstream, the operation itself is not
          return fate === "deaf" ? Effect.interruptible(recorded) : recorded
        })
      const work = within(operation.run(asked, { ...job, progress }), services)
      const delivering = Effect.tap(Effect.delay(work, takes), ({ artifacts = [], data, quantity }) =>
        Effect.sync(() => {
          seen.delivered = { data: textOf(data), quantity, artifacts: artifacts.map(({ id }) => id) }
          world.say(key, `delivers ${jobId}`)
          weather.done(jobId)
        })
      )
      const spoilt = (data: object) =>
        Effect.map(delivering, (outcome) => {
          seen.spoilt = "Defect"
          return { data: outcome.data, ...data }
        })
      const later = <E>(error: E) => Effect.delay(Effect.fail(error), takes)
      const happens = (): typeof delivering => {
        switch (fate) {
          case "invalid":
            return later(new InvalidInput({ field: "n", message: fate }))
          case "missing":
            return later(new NotFound({ resource: "thing" }))
          case "absent":
            return later(new UpstreamNotConfigured({ upstream: key }))
          case "down":
            return later(failed)
          case "half":
            // It did the work, and nobody heard of it
            return Effect.andThen(delivering, Effect.fail(failed))
          case "hang":
            return Effect.never
          case "slow":
            return Effect.delay(delivering, timeout + random.below(60_000) - 5)
          case "deaf":
            // It does not let itself be interrupted, until long after its job was cancelled or taken over
            return Effect.uninterruptible(Effect.delay(delivering, random.below(timeout + 90_000)))
          case "bug":
            return Effect.delay(Effect.die(new Error(BUG)), takes)
          case "refused":
            return spoilt({ data: undefined })
          case "more":
            return spoilt({ quantity: 1_000_000 })
          case "fraction":
            return spoilt({ quantity: 0.5 })
          case "less":
            return spoilt({ quantity: -1 })
          default:
            return delivering
        }
      }
      return Effect.onExit(happens(), (exit) =>
        Effect.sync(() => {
          seen.came = cameOf(exit)
          seen.stopped = { at: world.now, free: Math.max(process.resumedAt, world.leptTo) }
        })
      )
    })
}

/** A schema's values as JSON text. */
const textBy = (schema: Schema.Codec<unknown, unknown>) => {
  const encode = Schema.encodeUnknownSync(Schema.toCodecJson(schema))
  return (value: unknown): string => JSON.stringify(encode(value))
}

const cameOf = (exit: Exit.Exit<unknown, { readonly _tag: string }>): string => {
  if (Exit.isSuccess(exit)) return "done"
  if (Cause.hasInterruptsOnly(exit.cause)) return "interrupted"
  return Option.match(Exit.findErrorOption(exit), { onNone: () => "Defect", onSome: ({ _tag }) => _tag })
}
