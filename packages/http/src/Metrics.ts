/**
 * All metrics of Effect's registry, including the host's, in Prometheus' text format. They are for operators, so the API has no route for
 * them: a host adds {@link layer} to a router of its choice, or serves them on a separate port by {@link MetricsServer}.
 */
import { Context, Effect, Layer, Metric } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"
import { type CannotListen, listen, type Options, type Server } from "./Server.ts"
import * as WebHandler from "./WebHandler.ts"

export const PATH = "/metrics"

const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

const UNITS: Readonly<Record<string, string>> = { s: "seconds", ms: "milliseconds", By: "bytes" }

/** The name that OpenTelemetry's rules give in Prometheus: with its unit, and `total` for a counter that only grows. */
const nameOf = ({ id, type, attributes, state }: Metric.Metric.Snapshot): string => {
  const grows = type === "Frequency" || (type === "Counter" && state.incremental)
  const suffixes = [UNITS[attributes?.["unit"] ?? ""], grows ? "total" : undefined]
  return suffixes.reduce<string>((name, suffix) => (suffix === undefined || name.endsWith(suffix) ? name : `${name}_${suffix}`), id)
}

const textOf = (context: Context.Context<never>): string => {
  const names = new Map<string, string>()
  const falling = new Set<string>()
  for (const metric of Metric.snapshotUnsafe(context)) {
    names.set(metric.id, nameOf(metric))
    if (metric.type === "Counter" && !metric.state.incremental) falling.add(metric.id.replaceAll(/\W+/gu, "_"))
  }
  const text = PrometheusMetrics.formatUnsafe(context, { metricNameMapper: (id) => names.get(id) ?? id })
  // A Prometheus counter never falls
  return text.replaceAll(/^# TYPE (\S+) counter$/gmu, (line, name: string) => (falling.has(name) ? `# TYPE ${name} gauge` : line))
}

/** The current metrics as text. */
export const text: Effect.Effect<string> = Effect.map(Effect.context<never>(), textOf)

/** A route for the metrics. On a public router, they are public. */
export const layer = ({ path = PATH }: { readonly path?: HttpRouter.PathInput } = {}): Layer.Layer<never, never, HttpRouter.HttpRouter> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const router = yield* HttpRouter.HttpRouter
      const context = yield* Effect.context<never>()
      const answer = Effect.sync(() =>
        HttpServerResponse.text(textOf(context), { contentType: CONTENT_TYPE, headers: { "cache-control": "no-store" } })
      )
      yield* router.add("GET", path, answer)
    })
  )

/** A server for the metrics alone, to listen where only operators can connect. */
export class MetricsServer extends Context.Service<MetricsServer, Server["Service"]>()("@millrace/http/MetricsServer") {
  static readonly layer = (options: Pick<Options, "host" | "port"> = {}): Layer.Layer<MetricsServer, CannotListen> =>
    Layer.effect(
      MetricsServer,
      Effect.flatMap(WebHandler.make(layer(), { drainWithin: "1 second" }), (handler) => listen(handler, options))
    )
}
