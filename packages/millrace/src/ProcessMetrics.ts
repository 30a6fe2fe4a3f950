/** Metrics of the process, under OpenTelemetry's names. Only for `serve`: a host that embeds Millrace measures its own process. */
import { monitorEventLoopDelay } from "node:perf_hooks"
import { Metrics } from "@millrace/core"
import { Effect, Layer } from "effect"

/** Milliseconds. */
const RESOLUTION = 20
/** The delays are counted anew after this time. */
const WINDOW = "1 minute"

const SECONDS = { unit: "s" }

const memory = Metrics.gauge("process.memory.usage", "Memory of the process that is in RAM")({ unit: "By" })
const uptime = Metrics.gauge("process.uptime", "How long the process has run")(SECONDS)
const cpu = Metrics.series("cpu.mode", (mode) => Metrics.counter("process.cpu.time", "Time of processors spent")({ ...mode, ...SECONDS }))
const p99 = Metrics.gauge("nodejs.eventloop.delay.p99", "99th percentile of the delay of the event loop, in the last minute")(SECONDS)
const max = Metrics.gauge("nodejs.eventloop.delay.max", "Longest delay of the event loop, in the last minute")(SECONDS)

export const layer: Layer.Layer<never> = Layer.effectDiscard(
  Effect.gen(function* () {
    const delay = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const delay = monitorEventLoopDelay({ resolution: RESOLUTION })
        delay.enable()
        return delay
      }),
      (delay) => Effect.sync(() => delay.disable())
    )
    yield* Effect.forkScoped(
      Effect.forever(
        Effect.delay(
          Effect.sync(() => delay.reset()),
          WINDOW
        )
      )
    )
    // Node measures the time between two timers, so the resolution is subtracted. No count yet is no delay
    const late = (nanos: number) => ({ value: delay.count === 0 ? 0 : Math.max(0, nanos / 1e9 - RESOLUTION / 1000) })
    yield* Metrics.observe(p99, () => late(delay.percentile(99)))
    yield* Metrics.observe(max, () => late(delay.max))
    yield* Metrics.observe(memory, () => ({ value: process.memoryUsage.rss() }))
    yield* Metrics.observe(uptime, () => ({ value: process.uptime() }))
    yield* Metrics.observe(cpu("user"), () => ({ count: process.cpuUsage().user / 1e6, incremental: true }))
    yield* Metrics.observe(cpu("system"), () => ({ count: process.cpuUsage().system / 1e6, incremental: true }))
  })
)
