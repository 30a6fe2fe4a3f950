/** Which trace a request belongs to, what its spans say and do not say, and how they get to whoever collects them. */
import { InvalidInput, Spans, TraceContext } from "@millrace/core"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Metric, type Scope, Tracer } from "effect"
import { FetchHttpClient, HttpRouter } from "effect/http"
import { Otlp, OtlpExporter } from "effect/observability"
import { assert, constantFrom, property, string, stringMatching } from "fast-check"
import { describe, expect, test } from "vitest"
import { Http, RequestSpan } from "../src/index.ts"
import * as Collector from "./Collector.ts"
import { api, eventually, host, services, testing } from "./Host.ts"

const TRACE = "0af7651916cd43dd8448eb211c80319c"
const PARENT = "b7ad6b7169203331"
const traceparent = `00-${TRACE}-${PARENT}-01`

/** What is passed on of these headers. */
const passedOn = (headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> => {
  const caller = TraceContext.fromHeaders(headers)
  return Effect.runSync(
    caller === undefined ? TraceContext.headers : Effect.provideService(TraceContext.headers, Tracer.ParentSpan, caller)
  )
}

describe("a caller's trace", () => {
  test("is passed on unchanged where this host does not trace", () =>
    assert(
      property(
        stringMatching(/^[0-9a-f]{32}$/u),
        stringMatching(/^[0-9a-f]{16}$/u),
        stringMatching(/^[0-9a-f]{2}$/u),
        (trace, span, flags) => {
          const headers = { traceparent: `00-${trace}-${span}-${flags}` }
          expect(passedOn(headers)).toEqual(/^0+$/u.test(trace) || /^0+$/u.test(span) ? {} : headers)
        }
      ),
      { seed: 1, numRuns: 300 }
    ))

  test("is read in version 00 of the standard, and in the known part of later versions", () => {
    for (const [later, now] of [
      [`01-${TRACE}-${PARENT}-01`, traceparent],
      [`cc-${TRACE}-${PARENT}-01-what-comes-then`, traceparent],
      [`fe-${TRACE}-${PARENT}-09-`, `00-${TRACE}-${PARENT}-09`]
    ] as const)
      expect(passedOn({ traceparent: later })).toEqual({ traceparent: now })
  })

  test.each([
    "",
    "garbage",
    TRACE,
    `ff-${TRACE}-${PARENT}-01`,
    `0-${TRACE}-${PARENT}-01`,
    `00-${TRACE.toUpperCase()}-${PARENT}-01`,
    `00-${TRACE.slice(1)}-${PARENT}-01`,
    `00-${TRACE}0-${PARENT}-01`,
    `00-${"0".repeat(32)}-${PARENT}-01`,
    `00-${TRACE}-${"0".repeat(16)}-01`,
    `00-${TRACE}-${PARENT}`,
    `00-${TRACE}-${PARENT}-1`,
    `00-${TRACE}-${PARENT}-0g`,
    `00-${TRACE}-${PARENT}-01-more`,
    `01-${TRACE}-${PARENT}-01more`,
    ` ${traceparent}`,
    `${traceparent}, ${traceparent}`,
    `${traceparent}\n`
  ])("is ignored if the header is %j", (malformed) => {
    expect(passedOn({ traceparent: malformed, tracestate: "a=1" })).toEqual({})
  })

  test("is ignored without a traceparent", () => {
    expect(passedOn({ tracestate: "a=1", b3: `${TRACE}-${PARENT}-1` })).toEqual({})
  })

  test("includes its state, unless that is malformed or too long", () => {
    for (const [tracestate, then] of [
      ["congo=t61rcWkgMzE,rojo=00f067aa0ba902b7", "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"],
      ["a=1 , b=2,, fw529a3039@dt=x y ", "a=1,b=2,fw529a3039@dt=x y"],
      [`a=${"x".repeat(256)}`, `a=${"x".repeat(256)}`],
      [`a=${"x".repeat(257)}`, undefined],
      [Array.from({ length: 33 }, (_, i) => `k${i}=1`).join(), undefined],
      [Array.from({ length: 100 }, (_, i) => `key${i}=value`).join(), undefined],
      ["a=b=c", undefined],
      ["A=1", undefined],
      ["a", undefined],
      ["", undefined],
      ["é=1", undefined]
    ] as const)
      expect(passedOn({ traceparent, tracestate })).toEqual({ traceparent, ...(then === undefined ? {} : { tracestate: then }) })
  })

  test("is parsed in linear time", () => {
    const hostile = constantFrom("a", "0", "-", "=", ",", " ", "@", "\t")
    assert(
      property(string({ unit: hostile, maxLength: 2_000 }), string({ unit: hostile, maxLength: 2_000 }), (first, second) => {
        const headers = passedOn({ traceparent: `00-${TRACE}-${PARENT}-01${first}`, tracestate: second })
        expect(Object.values(headers).every((value) => value.length <= 512)).toBe(true)
      }),
      { seed: 1, numRuns: 200 }
    )
  })
})

/** A host whose traces, metrics and log lines go to a collector. */
const collected = Effect.fnUntraced(function* (options: Parameters<typeof host>[0] = {}) {
  const collector = yield* Collector.open
  const otlp = Otlp.layerJson({
    baseUrl: collector.url,
    resource: { serviceName: "shop", serviceVersion: "7", attributes: { "deployment.environment.name": "test" } },
    loggerMergeWithExisting: false
  }).pipe(Layer.provide(FetchHttpClient.layer))
  const exporting = yield* Layer.build(Layer.mergeAll(otlp, RequestSpan.layer))
  const served = yield* Effect.provideContext(host(options), exporting)
  return { ...served, collector, exporting, flush: Context.get(exporting, OtlpExporter.Flusher).flush }
})

const tracing = (name: string, body: Effect.Effect<unknown, unknown, Scope.Scope>): void =>
  testing(
    name,
    Effect.suspend(() => Effect.provideService(body, Metric.MetricRegistry, new Map()))
  )

const only = (spans: ReadonlyArray<Collector.Span>, name: string): Collector.Span => {
  const [span, ...more] = spans.filter((span) => span.name === name)
  if (span === undefined || more.length > 0) throw new Error(`${name}: ${JSON.stringify(spans.map(({ name }) => name))}`)
  return span
}

describe("a host that exports by OpenTelemetry", () => {
  tracing(
    "shows a call from the request to its ledger, in the caller's trace",
    Effect.gen(function* () {
      const { call, account, collector, flush } = yield* collected()
      const { bearer } = yield* account()
      yield* flush
      const before = collector.spans().length
      const { headers } = yield* call("/api/v1/bin/457173?verbose=1", { headers: { ...bearer, traceparent } })
      yield* flush
      const spans = collector.spans().slice(before)
      const [resource] = collector.traces()
      expect(plain(resource?.resource.attributes)).toMatchObject({
        "service.name": "shop",
        "service.version": "7",
        "deployment.environment.name": "test"
      })
      expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]))

      const request = only(spans, "GET /api/v1/bin/:bin")
      expect([request.kind, request.parentSpanId, request.status.code]).toEqual([2, PARENT, 1])
      expect(plain(request.attributes)).toEqual({
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "http.route": "/api/v1/bin/:bin",
        "millrace.request_id": headers["x-request-id"],
        "url.scheme": "http"
      })
      const charge = only(spans, "charge bin.lookup")
      expect([charge.kind, charge.parentSpanId]).toEqual([1, request.spanId])
      expect(plain(charge.attributes)).toEqual({ "millrace.operation": "bin.lookup" })
      const upstream = only(spans, "upstream bin")
      expect([upstream.parentSpanId, plain(upstream.attributes)]).toEqual([charge.spanId, { "millrace.upstream": "bin" }])
      const ledger = spans.filter(({ name }) => name === "ledger execute")
      expect(ledger.map(({ parentSpanId }) => parentSpanId)).toEqual([charge.spanId, charge.spanId])
      expect(spans.length).toBe(5)
    })
  )

  tracing(
    "begins a trace for each request without one, also for requests that are not billed",
    Effect.gen(function* () {
      const { call, collector, flush } = yield* collected()
      yield* call("/health")
      yield* call("/ready")
      yield* call("/nowhere/at/all?at=all", { headers: { traceparent: "00-nonsense" } })
      yield* call("/health", { method: "DELETE" })
      yield* flush
      const spans = collector.spans().filter(({ kind }) => kind === 2)
      expect(spans.map(({ name }) => name)).toEqual(["GET /health", "GET /ready", "GET", "DELETE"])
      expect(spans.map(({ parentSpanId }) => parentSpanId)).toEqual([undefined, undefined, undefined, undefined])
      expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(4)
      expect(spans.map(({ attributes }) => plain(attributes)["http.response.status_code"])).toEqual([200, 200, 404, 405])
    })
  )

  tracing(
    "shows a failed request as failed if the fault is ours, and names the error at each step without its message",
    Effect.gen(function* () {
      const { call, account, collector, flush } = yield* collected()
      const { bearer } = yield* account()
      const post = (path: string, body: object) => call(path, { method: "POST", headers: { ...bearer, traceparent }, body })
      yield* post("/api/v1/grammar/check", { text: "upstream down" })
      yield* post("/api/v1/test/attic/work", { how: "throw" })
      yield* call("/api/v1/bin/000000", { headers: { ...bearer, traceparent } })
      yield* flush
      const told = collector
        .spans()
        .filter(({ traceId }) => traceId === TRACE)
        .map(({ name, attributes, status }) => [name, plain(attributes)["error.type"], status])
      expect(told).toEqual(
        expect.arrayContaining([
          ["upstream grammar", "upstream_unavailable", { code: 2, message: "upstream_unavailable" }],
          ["charge grammar.check", "upstream_unavailable", { code: 2, message: "upstream_unavailable" }],
          ["POST /api/v1/grammar/check", "503", { code: 2, message: "503" }],
          ["upstream test", "defect", { code: 2, message: "defect" }],
          ["POST /api/v1/test/:room/work", "500", { code: 2, message: "500" }],
          ["charge bin.lookup", "not_found", { code: 2, message: "not_found" }],
          ["GET /api/v1/bin/:bin", undefined, { code: 1 }]
        ])
      )
    })
  )

  tracing(
    "shows a call as interrupted if its client disconnects",
    Effect.gen(function* () {
      const { call, account, bench, collector, flush } = yield* collected()
      const { bearer } = yield* account()
      const goes = new AbortController()
      const request = { method: "POST", headers: { ...bearer, traceparent }, body: { how: "when told" }, signal: goes.signal }
      const asked = yield* Effect.forkChild(Effect.exit(call("/api/v1/test/attic/work", request)))
      yield* eventually(
        Effect.sync(() => bench.started),
        (started) => started.length === 1
      )
      goes.abort()
      yield* Fiber.join(asked)
      const spans = yield* eventually(
        Effect.map(flush, () => collector.spans()),
        (spans) => spans.some(({ kind }) => kind === 2)
      )
      expect(plain(only(spans, "POST /api/v1/test/:room/work").attributes)["http.response.status_code"]).toBe(499)
      expect(plain(only(spans, "charge test.work").attributes)["error.type"]).toBe("cancelled")
      yield* Deferred.succeed(bench.finish, undefined)
    })
  )

  tracing(
    "leaves out what the caller does not want recorded",
    Effect.gen(function* () {
      const { call, account, collector, flush } = yield* collected()
      const { bearer } = yield* account()
      yield* call("/api/v1/bin/457173", { headers: { ...bearer, traceparent: `00-${TRACE}-${PARENT}-00` } })
      yield* flush
      expect(collector.spans().filter(({ traceId }) => traceId === TRACE)).toEqual([])
    })
  )

  tracing(
    "sends the metrics under their names",
    Effect.gen(function* () {
      const { call, account, collector, flush } = yield* collected()
      const { bearer } = yield* account()
      yield* call("/api/v1/bin/457173", { headers: { ...bearer, traceparent } })
      yield* flush
      const metrics = new Map(collector.metrics().map((metric) => [metric.name, metric]))
      const duration = metrics.get("http.server.request.duration")
      expect(duration?.unit).toBe("s")
      const [point] = duration?.histogram?.dataPoints ?? []
      expect(point?.explicitBounds).toEqual([0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10])
      expect(plain(point?.attributes)).toMatchObject({
        "http.request.method": "GET",
        "http.response.status_code": "200",
        "http.route": "/api/v1/bin/:bin",
        "url.scheme": "http"
      })
      const charges = metrics.get("millrace.charges")?.sum
      expect([charges?.isMonotonic, charges?.dataPoints.map(({ asDouble }) => asDouble)]).toEqual([true, [1]])
      expect(metrics.get("http.server.active_requests")?.sum?.isMonotonic).toBe(false)
      expect(metrics.get("millrace.projection.lag")?.gauge?.dataPoints.length).toBeGreaterThanOrEqual(2)
    })
  )

  tracing(
    "reveals no key, query, body, path, idempotency key or header",
    Effect.gen(function* () {
      const { call, account, collector, flush } = yield* collected()
      const { bearer, key } = yield* account()
      const headers = {
        ...bearer,
        "idempotency-key": "canary-idempotency",
        "user-agent": "canary-agent",
        cookie: "canary-cookie",
        traceparent
      }
      yield* call("/api/v1/test/canary-path/work?tag=canary-query", {
        method: "POST",
        headers,
        body: { how: "at once", password: "canary-password", deep: "canary-body" }
      })
      yield* call("/api/v1/test/canary-path/work?times=canary-query", { method: "POST", headers, body: { how: "canary-body" } })
      yield* call("/api/v1/grammar/check", { method: "POST", headers: bearer, body: { text: "canary-body" } })
      yield* call("/canary-path?canary-query", { headers })
      yield* flush
      const text = collector.text()
      expect(text).toContain("POST /api/v1/test/:room/work")
      for (const secret of ["canary", key, key.slice(-20)]) expect(text).not.toContain(secret)
    })
  )
})

describe("a tracer within a call", () => {
  test("names failures by their tags, for spans of any origin", () => {
    const spans: Array<Tracer.Span> = []
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        spans.push(span)
        return span
      }
    })
    const inner = Effect.fn("inner")((end: Effect.Effect<never, unknown>) => end)
    for (const end of [
      Effect.fail(new InvalidInput({ field: "text", message: "canary" })),
      Effect.fail("canary"),
      Effect.die(new Error("canary")),
      Effect.interrupt
    ])
      Effect.runSyncExit(
        Effect.provideService(
          Spans.around(inner(end), () => ({ name: "outer" })),
          Tracer.Tracer,
          tracer
        )
      )
    const failed = (error: string) => ({ _tag: "Ended", exit: error === "cancelled" ? Exit.interrupt() : Exit.fail(error) })
    const told = ["invalid_input", "error", "defect", "cancelled"].flatMap((error) => [
      ["outer", error, failed(error)],
      ["inner", undefined, failed(error)]
    ])
    expect(spans.map(({ name, attributes, status }) => [name, attributes.get("error.type"), status])).toMatchObject(told)
  })
})

describe("an Effect host that serves the routes itself", () => {
  const served = (layer: Layer.Layer<never>, isShared = true) =>
    Effect.gen(function* () {
      const collector = yield* Collector.open
      const otlp = Otlp.layerJson({ baseUrl: collector.url, resource: { serviceName: "shop" }, loggerMergeWithExisting: false })
      const exporting = Layer.mergeAll(Layer.provide(otlp, FetchHttpClient.layer), layer)
      const built = Http.layer(api).pipe(Layer.provide(services()), Layer.orDie)
      const routes: Layer.Layer<never, never, HttpRouter.HttpRouter> = isShared
        ? Layer.provideMerge(built, exporting)
        : Layer.provide(built, exporting)
      const { handler, dispose } = HttpRouter.toWebHandler(routes, { disableLogger: true })
      yield* Effect.promise(async () => {
        await handler(new Request("http://localhost/health?canary", { headers: { traceparent } }))
        await dispose()
      })
      // Beside those of what the host does by itself
      return { ...collector, spans: () => collector.spans().filter(({ traceId }) => traceId === TRACE) }
    })

  tracing(
    "has each request traced once, with our spans in place of its own, and with its log lines",
    Effect.gen(function* () {
      const collector = yield* served(RequestSpan.layer)
      const [request, ...more] = collector.spans()
      expect([request?.name, request?.parentSpanId, more]).toEqual(["GET /health", PARENT, []])
      const lines = collector.logs().filter(({ body }) => "stringValue" in body && body.stringValue === "request")
      expect(lines.map(({ traceId, spanId }) => [traceId, spanId])).toEqual([[TRACE, request?.spanId]])
      expect(collector.text()).not.toContain("canary")
    })
  )

  tracing(
    "has requests traced if only the routes have the tracer",
    Effect.gen(function* () {
      const collector = yield* served(Layer.empty, false)
      expect(collector.spans().map(({ name, parentSpanId }) => [name, parentSpanId])).toEqual([["GET /health", PARENT]])
    })
  )

  tracing(
    "has requests traced once if it keeps its own spans",
    Effect.gen(function* () {
      const collector = yield* served(Layer.empty)
      expect(collector.spans().map(({ name, parentSpanId }) => [name, parentSpanId])).toEqual([["GET", PARENT]])
    })
  )
})

const plain = (attributes: Parameters<typeof Collector.plain>[0] | undefined) => Collector.plain(attributes ?? [])
