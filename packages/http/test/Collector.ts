/** An OpenTelemetry collector for tests: a real server on loopback that keeps what it is sent as OTLP in JSON. */
import { createServer } from "node:http"
import { Effect, Schema } from "effect"

const Value = Schema.Union([
  Schema.Struct({ stringValue: Schema.String }),
  Schema.Struct({ intValue: Schema.Union([Schema.Number, Schema.String]) }),
  Schema.Struct({ doubleValue: Schema.Number }),
  Schema.Struct({ boolValue: Schema.Boolean })
])
const Attributes = Schema.Array(Schema.Struct({ key: Schema.String, value: Value }))
const Resource = Schema.Struct({ attributes: Attributes })

const Span = Schema.Struct({
  traceId: Schema.String,
  spanId: Schema.String,
  parentSpanId: Schema.optionalKey(Schema.String),
  name: Schema.String,
  /** 1 internal, 2 server, 3 client. */
  kind: Schema.Int,
  startTimeUnixNano: Schema.String,
  endTimeUnixNano: Schema.String,
  attributes: Attributes,
  /** 1 good, 2 not. */
  status: Schema.Struct({ code: Schema.Int, message: Schema.optionalKey(Schema.String) })
})
const Traces = Schema.Struct({
  resourceSpans: Schema.Array(Schema.Struct({ resource: Resource, scopeSpans: Schema.Array(Schema.Struct({ spans: Schema.Array(Span) })) }))
})

const Point = Schema.Struct({
  attributes: Attributes,
  asDouble: Schema.optionalKey(Schema.Number),
  count: Schema.optionalKey(Schema.Number),
  explicitBounds: Schema.optionalKey(Schema.Array(Schema.Number))
})
const Points = Schema.Struct({ dataPoints: Schema.Array(Point), isMonotonic: Schema.optionalKey(Schema.Boolean) })
const Metric = Schema.Struct({
  name: Schema.String,
  unit: Schema.String,
  sum: Schema.optionalKey(Points),
  gauge: Schema.optionalKey(Points),
  histogram: Schema.optionalKey(Points)
})
const Metrics = Schema.Struct({
  resourceMetrics: Schema.Array(
    Schema.Struct({ resource: Resource, scopeMetrics: Schema.Array(Schema.Struct({ metrics: Schema.Array(Metric) })) })
  )
})

const Record = Schema.Struct({
  body: Value,
  attributes: Attributes,
  traceId: Schema.optionalKey(Schema.String),
  spanId: Schema.optionalKey(Schema.String)
})
const Logs = Schema.Struct({
  resourceLogs: Schema.Array(
    Schema.Struct({ resource: Resource, scopeLogs: Schema.Array(Schema.Struct({ logRecords: Schema.Array(Record) })) })
  )
})

export type Span = typeof Span.Type
export type Metric = typeof Metric.Type

/** Attributes as an object. */
export const plain = (attributes: typeof Attributes.Type): Readonly<Record<string, unknown>> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

const reader =
  <A, I>(schema: Schema.Codec<A, I>) =>
  (bodies: ReadonlyArray<string>) =>
    bodies.map((body) => Schema.decodeUnknownSync(schema)(JSON.parse(body)))

/** Listens while the scope is open. */
export const open = Effect.gen(function* () {
  const received: Array<{ readonly path: string; readonly body: string }> = []
  const server = yield* Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer(async (request, response) => {
        let body = ""
        for await (const chunk of request.setEncoding("utf8")) body += chunk
        received.push({ path: `${request.method} ${request.url}`, body })
        response.writeHead(200, { "content-type": "application/json" }).end("{}")
      }).listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )
  const address = server.address()
  const bodies = (signal: string) => received.filter(({ path }) => path === `POST /v1/${signal}`).map(({ body }) => body)
  return {
    url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
    /** Everything that came, as it came. */
    text: () => received.map(({ path, body }) => `${path}\n${body}`).join("\n"),
    traces: () => reader(Traces)(bodies("traces")).flatMap(({ resourceSpans }) => resourceSpans),
    spans: () =>
      reader(Traces)(bodies("traces")).flatMap(({ resourceSpans }) =>
        resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
      ),
    /** As they were sent last. */
    metrics: () =>
      reader(Metrics)(bodies("metrics").slice(-1)).flatMap(({ resourceMetrics }) =>
        resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
      ),
    logs: () =>
      reader(Logs)(bodies("logs")).flatMap(({ resourceLogs }) =>
        resourceLogs.flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords))
      )
  }
})
