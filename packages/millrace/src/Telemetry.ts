/** Sends traces, metrics and logs to an OpenTelemetry collector, if OpenTelemetry's own environment variables name one. */
import { RequestSpan } from "@millrace/http"
import { Cause, Config, ConfigProvider, Effect, Layer, Option } from "effect"
import { FetchHttpClient } from "effect/http"
import { Otlp, OtlpSerialization } from "effect/observability"
import { type CommandFailed, fail, textOf } from "./Failure.ts"
import * as ProcessMetrics from "./ProcessMetrics.ts"

const ENDPOINTS = ["", "TRACES_", "METRICS_", "LOGS_"].map((signal) => `OTEL_EXPORTER_OTLP_${signal}ENDPOINT`)

const SERIALIZATIONS = new Map([
  ["http/json", OtlpSerialization.layerJson],
  ["http/protobuf", OtlpSerialization.layerProtobuf]
])

/** All signals, which is OpenTelemetry's default; Effect's default is none. */
const DEFAULTS = { OTEL_TRACES_EXPORTER: "otlp", OTEL_METRICS_EXPORTER: "otlp", OTEL_LOGS_EXPORTER: "otlp" }

/** An empty variable counts as not set. */
const variable = (name: string) =>
  Config.String(name).pipe(
    Config.option,
    Config.map((value) => Option.getOrElse(value, () => "").trim())
  )

/** Sends until its scope closes, and then the rest. Data that cannot be sent is dropped; no call waits for a collector. */
export const layer: Layer.Layer<never, CommandFailed | Config.ConfigError> = Layer.unwrap(
  Effect.gen(function* () {
    const endpoints = yield* Effect.forEach(ENDPOINTS, variable)
    if (endpoints.every((endpoint) => endpoint === "")) return Layer.empty
    const protocol = (yield* variable("OTEL_EXPORTER_OTLP_PROTOCOL")) || "http/json"
    const serialization = SERIALIZATIONS.get(protocol)
    if (serialization === undefined) {
      return yield* fail(`OTEL_EXPORTER_OTLP_PROTOCOL is one of ${[...SERIALIZATIONS.keys()].join(", ")}`)
    }
    const isNamed =
      (yield* variable("OTEL_SERVICE_NAME")) !== "" || /(?:^|,)\s*service\.name\s*=/u.test(yield* variable("OTEL_RESOURCE_ATTRIBUTES"))
    const given = yield* ConfigProvider.ConfigProvider
    const provider = ConfigProvider.orElse(
      given,
      ConfigProvider.fromEnv({ env: isNamed ? DEFAULTS : { ...DEFAULTS, OTEL_SERVICE_NAME: "millrace" } })
    )
    return Layer.mergeAll(Otlp.layerFromConfig(), RequestSpan.layer, ProcessMetrics.layer).pipe(
      Layer.provide(Layer.mergeAll(serialization, FetchHttpClient.layer, ConfigProvider.layer(provider))),
      // Effect dies of a setting that it cannot read
      Layer.catchCause((cause) => Layer.effectDiscard(fail(`OpenTelemetry cannot be set up: ${textOf(Cause.squash(cause))}`)))
    )
  })
)
