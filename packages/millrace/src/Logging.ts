/** Log lines by pino, on stderr, behind Effect's own logger: allow-listed annotations and messages, one JSON line each. */
import { TraceContext } from "@millrace/core"
import { Cause, type Context, Effect, Layer, Logger, References } from "effect"
import { pino } from "pino"

const LEVELS = { Trace: "trace", Debug: "debug", Info: "info", Warn: "warn", Error: "error", Fatal: "fatal" } as const
const EFFECT_LEVELS = { trace: "Trace", debug: "Debug", info: "Info", warn: "Warn", error: "Error", fatal: "Fatal" } as const

/** The levels, from the fewest to the most lines. */
export const levels = ["fatal", "error", "warn", "info", "debug", "trace"] as const
export type Level = (typeof levels)[number]

export const layer = (level: Level): Layer.Layer<never> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const stderr = pino.destination({ fd: 2, sync: true })
      // The server continues when its log is closed
      stderr.on("error", () => {})
      const log = pino({ base: null, level: "trace", timestamp: pino.stdTimeFunctions.isoTime }, stderr)
      return forwarding(level, (level, text, fields) => log[level](fields, text))
    })
  )

/** Hands every line of a level and above it to `write`: its text, and its fields. */
export const forwarding = (
  least: Level,
  write: (level: Level, text: string, fields: Readonly<Record<string, unknown>>) => void
): Layer.Layer<never> => {
  const logger = Logger.make(({ cause, fiber, logLevel, message }) => {
    const [first, ...rest] = Array.isArray(message) ? message : [message]
    const fields = { ...fiber.getRef(References.CurrentLogAnnotations), ...traceOf(fiber.context), ...detailsOf(rest, cause) }
    if (logLevel !== "All" && logLevel !== "None") write(LEVELS[logLevel], String(first), fields)
  })
  return Layer.mergeAll(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, EFFECT_LEVELS[least]))
}

/** The trace and span of a line; without a tracer in this process, only the caller's trace. */
const traceOf = (context: Context.Context<never>) => {
  const span = TraceContext.current(context)
  if (span === undefined) return {}
  return { trace_id: span.traceId, ...(span._tag === "Span" ? { span_id: span.spanId } : {}) }
}

const detailsOf = (rest: ReadonlyArray<unknown>, cause: Cause.Cause<unknown>) => {
  const causes = [...rest.filter(Cause.isCause), ...(cause.reasons.length === 0 ? [] : [cause])]
  const details = rest.filter((part) => !Cause.isCause(part))
  return {
    ...(details.length === 0 ? {} : { details }),
    ...(causes.length === 0 ? {} : { cause: causes.map((cause) => Cause.pretty(cause)).join("\n") })
  }
}
