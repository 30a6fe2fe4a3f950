/** What operators see of a running server: metrics at a port of their own, and traces at a collector of theirs. */
import { once } from "node:events"
import { createServer } from "node:http"
import { ConfigProvider, Effect, Schema } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { millrace } from "../../../test/system/InProcess.ts"
import { BIN, call, newStore, openAccount, serve } from "../../../test/system/Server.ts"
import * as Telemetry from "../src/Telemetry.ts"

const TRACE = "0af7651916cd43dd8448eb211c80319c"
const traceparent = `00-${TRACE}-b7ad6b7169203331-01`

/** Keeps what it is sent, by path. */
const collector = async () => {
  const received = new Map<string, string>()
  const server = createServer(async (request, response) => {
    let body = ""
    for await (const chunk of request.setEncoding("utf8")) body += chunk
    received.set(request.url ?? "", (received.get(request.url ?? "") ?? "") + body)
    response.writeHead(200, { "content-type": "application/json" }).end("{}")
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  afterAll(() => server.close().closeAllConnections())
  const address = server.address()
  return { received, url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}` }
}

const Announced = Schema.fromJsonString(Schema.Struct({ listening: Schema.String, metrics: Schema.String }))

describe("a server with a collector and a metrics port", () => {
  it("reports its calls to operators in both places, and nothing to callers", async () => {
    const { received, url } = await collector()
    const store = newStore()
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test" }
    const server = await serve(["--store", store.url, "--metrics-port", "0"], { env })
    const { key } = await openAccount(store.url, 1)
    expect((await call(`${server.url}${BIN}?canary`, { key, headers: { traceparent } })).status).toBe(200)
    expect((await call(`${server.url}/metrics`)).status).toBe(404)

    const { metrics } = Schema.decodeUnknownSync(Announced)(server.stdout.trim())
    expect(metrics).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/u)
    const { status, headers, body } = await call(metrics)
    expect([status, headers["content-type"]]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8"])
    for (const line of [
      'http_server_request_duration_seconds_count{http_request_method="GET",url_scheme="http",http_response_status_code="404"} 1',
      'millrace_charges_total{operation="bin.lookup",outcome="charged"} 1',
      'millrace_projection_lag_seconds{projection="keys"} 0',
      "# TYPE process_cpu_time_seconds_total counter",
      "# TYPE process_memory_usage_bytes gauge",
      "# TYPE nodejs_eventloop_delay_p99_seconds gauge"
    ])
      expect(body).toContain(`${line}\n`)

    const { code, stderr } = await server.stop()
    expect(code).toBe(0)
    await expect(call(metrics)).rejects.toThrow()
    // All of it, before the server has ended
    expect([...received.keys()].sort()).toEqual(["/v1/logs", "/v1/metrics", "/v1/traces"])
    const traces = received.get("/v1/traces") ?? ""
    for (const part of [
      '{"key":"service.name","value":{"stringValue":"millrace"}}',
      '{"key":"deployment.environment.name","value":{"stringValue":"test"}}',
      `"traceId":"${TRACE}"`,
      '"parentSpanId":"b7ad6b7169203331","name":"GET /api/v1/bin/:bin"',
      '"name":"charge bin.lookup"'
    ])
      expect(traces).toContain(part)
    expect(received.get("/v1/metrics")).toContain('"name":"http.server.request.duration"')
    for (const text of [...received.values(), body, stderr]) {
      expect(text).not.toContain("canary")
      expect(text).not.toContain(key)
    }
    const [line = ""] = stderr.split("\n").filter((line) => line.includes('"route":"/api/v1/bin/:bin"'))
    expect(JSON.parse(line)).toMatchObject({ trace_id: TRACE, span_id: expect.stringMatching(/^[0-9a-f]{16}$/u) })
  })

  it("does not start if the metrics port is in use", async () => {
    const { url } = await collector()
    const { port } = new URL(url)
    const { code, stderr } = await millrace(["serve", "--store", "memory:", "--port", "0", "--metrics-port", port])
    expect([code, stderr]).toEqual([1, expect.stringContaining(`cannot listen on 127.0.0.1:${port}`)])
  })
})

describe("OpenTelemetry", () => {
  /** What is sent of one span under these variables. */
  const sent = async (env: Readonly<Record<string, string>>) => {
    const { received, url } = await collector()
    const config = ConfigProvider.layer(ConfigProvider.fromEnv({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: url, ...env } }))
    await Effect.runPromise(Effect.withSpan(Effect.void, "some work").pipe(Effect.provide(Telemetry.layer), Effect.provide(config)))
    return received
  }

  it.each([
    [{}, "millrace"],
    [{ OTEL_SERVICE_NAME: "tollbooth" }, "tollbooth"],
    [{ OTEL_RESOURCE_ATTRIBUTES: "a=b, service.name=tollbooth" }, "tollbooth"],
    [{ OTEL_RESOURCE_ATTRIBUTES: "service.name=other", OTEL_SERVICE_NAME: "tollbooth" }, "tollbooth"]
  ])("gets the service's name %j", async (env, name) => {
    expect((await sent(env)).get("/v1/traces")).toContain(`{"key":"service.name","value":{"stringValue":"${name}"}}`)
  })

  it("gets protobuf on request, and no signal that is turned off", async () => {
    const received = await sent({ OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf", OTEL_METRICS_EXPORTER: "none", OTEL_LOGS_EXPORTER: "none" })
    expect([...received.keys()]).toEqual(["/v1/traces"])
    expect(received.get("/v1/traces")).toMatch(/^\n.*some work/su)
  })

  it("gets nothing without an endpoint, and a caller's trace is still logged", async () => {
    const server = await serve(["--store", "memory:"], { env: { OTEL_EXPORTER_OTLP_ENDPOINT: "", OTEL_TRACES_EXPORTER: "otlp" } })
    await call(`${server.url}/health`, { headers: { traceparent } })
    await call(`${server.url}/health`)
    const { code, stderr } = await server.stop()
    expect(code).toBe(0)
    const [traced, untraced] = stderr
      .split("\n")
      .filter((line) => line.includes('"route":"/health"'))
      .map((line) => JSON.parse(line))
    expect(traced).toMatchObject({ trace_id: TRACE })
    expect(traced).not.toHaveProperty("span_id")
    expect(untraced).not.toHaveProperty("trace_id")
  })

  it.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "nonsense" }, "OTEL_EXPORTER_OTLP_ENDPOINT"],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, "OTEL_EXPORTER_OTLP_PROTOCOL"],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1", OTEL_EXPORTER_OTLP_TIMEOUT: "soon" }, "OTEL_EXPORTER_OTLP_TIMEOUT"]
  ])("reports the wrong setting %j", async (env, variable) => {
    const { code, stderr } = await millrace(["serve", "--store", "memory:", "--port", "0"], { env })
    expect([code, stderr]).toEqual([1, expect.stringContaining(variable)])
  })
})
