/** What operators can measure: names, units and values, in a format that Prometheus reads, and where it may be read. */
import { Metrics as Meters } from "@millrace/core"
import { EventStore } from "@millrace/event-sourcing"
import { Context, Deferred, Effect, Layer, Metric, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { assert, property, string } from "fast-check"
import { describe, expect, test } from "vitest"
import { Http, Metrics, WebHandler } from "../src/index.ts"
import { api, eventually, host, send, services, testing } from "./Host.ts"
import { type Family, parse } from "./Prometheus.ts"

/** A test with a registry of its own. */
const measuring = (name: string, body: Effect.Effect<unknown, unknown, Scope.Scope>): void =>
  testing(
    name,
    Effect.suspend(() => Effect.provideService(body, Metric.MetricRegistry, new Map()))
  )

const families: Effect.Effect<ReadonlyMap<string, Family>> = Effect.map(Metrics.text, parse)

/** The samples of a family by their labels, without buckets. */
const samples = (name: string): Effect.Effect<ReadonlyArray<readonly [Readonly<Record<string, string>>, number]>> =>
  Effect.map(families, (families) =>
    (families.get(name)?.samples ?? []).flatMap(({ name, labels, value }) =>
      name.endsWith("_bucket") || name.endsWith("_sum") ? [] : [[labels, value] as const]
    )
  )

const GET = { http_request_method: "GET", url_scheme: "http" }
const POST = { http_request_method: "POST", url_scheme: "http" }

describe("requests", () => {
  measuring(
    "are measured by method, route, status and error type",
    Effect.gen(function* () {
      const { call, account } = yield* host()
      const { bearer } = yield* account()
      yield* call("/health")
      yield* call("/api/v1/bin/457173", { headers: bearer })
      yield* call("/api/v1/bin/457174?secret=1", { headers: bearer })
      yield* call("/api/v1/bin/457173")
      yield* call("/nothing/here", { headers: bearer })
      yield* call("/api/v1/test/attic/work", { method: "POST", headers: bearer, body: { how: "throw" } })
      const room = { http_route: "/api/v1/test/:room/work" }
      expect(yield* samples("http_server_request_duration_seconds")).toEqual([
        [{ ...GET, http_route: "/health", http_response_status_code: "200" }, 1],
        [{ ...GET, http_route: "/api/v1/bin/:bin", http_response_status_code: "200" }, 2],
        [{ ...GET, http_route: "/api/v1/bin/:bin", http_response_status_code: "401" }, 1],
        [{ ...GET, http_response_status_code: "404" }, 1],
        [{ ...POST, ...room, http_response_status_code: "500", error_type: "500" }, 1]
      ])
      const buckets = (yield* families).get("http_server_request_duration_seconds")?.samples.filter(({ labels }) => "le" in labels) ?? []
      expect([...new Set(buckets.map(({ labels }) => labels["le"]))]).toEqual(
        "0.005 0.01 0.025 0.05 0.075 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10 +Inf".split(" ")
      )
    })
  )

  measuring(
    "count as active until they are answered, also when their client disconnects",
    Effect.gen(function* () {
      const { call, account, bench } = yield* host()
      const { bearer } = yield* account()
      const active = samples("http_server_active_requests")
      const request = { method: "POST", headers: bearer, body: { how: "when told" } }
      const goes = new AbortController()
      const [stays, leaves] = ["stays", "leaves"].map((room, i) =>
        Effect.forkChild(Effect.exit(call(`/api/v1/test/${room}/work`, i === 0 ? request : { ...request, signal: goes.signal })))
      )
      yield* stays ?? Effect.void
      yield* leaves ?? Effect.void
      yield* eventually(
        Effect.sync(() => bench.started),
        (started) => started.length === 2
      )
      expect(yield* active).toEqual([[POST, 2]])
      goes.abort()
      expect(yield* eventually(active, ([first]) => first?.[1] === 1)).toEqual([[POST, 1]])
      yield* Deferred.succeed(bench.finish, undefined)
      expect(yield* eventually(active, ([first]) => first?.[1] === 0)).toEqual([[POST, 0]])
      const route = "/api/v1/test/:room/work"
      expect(yield* samples("http_server_request_duration_seconds")).toEqual([
        [{ ...POST, http_route: route, http_response_status_code: "499" }, 1],
        [{ ...POST, http_route: route, http_response_status_code: "201" }, 1]
      ])
    })
  )

  measuring(
    "add no series beyond routes, methods and statuses",
    Effect.gen(function* () {
      const { handler, account } = yield* host()
      const { accountId, key } = yield* account()
      const ask = (method: string, path: string) =>
        Effect.promise(() =>
          handler.handle(new Request(`https://shop.example${path}`, { method, headers: { authorization: `Bearer ${key}` } }))
        )
      yield* ask("MAKE-UP", "/0")
      yield* ask("GET", "/0")
      yield* ask("GET", "/api/v1/test/unpriced?q=0")
      const before = yield* Metrics.text
      for (let i = 1; i < 50; i++) {
        yield* ask(`MAKE-UP-${i}`, `/${i}`)
        yield* ask("GET", `/${i}`)
        yield* ask("GET", `/api/v1/test/unpriced?q=${i}`)
      }
      const after = yield* Metrics.text
      expect(after.split("\n").length).toBe(before.split("\n").length)
      expect(yield* samples("http_server_request_duration_seconds")).toContainEqual([
        { http_request_method: "_OTHER", url_scheme: "https", http_response_status_code: "404" },
        50
      ])
      for (const secret of [accountId, key, key.slice(-20), "MAKE-UP", "shop.example"]) expect(after).not.toContain(secret)
    })
  )
})

describe("calls", () => {
  measuring(
    "are counted by operation and outcome, with their credits",
    Effect.gen(function* () {
      const { call, account } = yield* host()
      const rich = yield* account()
      const poor = yield* account(0.25)
      const once = { method: "POST", headers: { ...rich.bearer, "idempotency-key": "order-1" }, body: { how: "at once" } }
      yield* call("/api/v1/test/attic/work", once)
      yield* call("/api/v1/test/attic/work", once)
      yield* call("/api/v1/test/attic/work", { ...once, headers: rich.bearer, body: { how: "throw" } })
      yield* call("/api/v1/bin/457173", { headers: rich.bearer })
      yield* call("/api/v1/bin/000000", { headers: rich.bearer })
      yield* call("/api/v1/bin/457173", { headers: poor.bearer })
      yield* call("/api/v1/account/billing", { headers: poor.bearer })
      yield* call("/api/v1/open/hello")
      const charges = yield* samples("millrace_charges_total")
      expect(charges.slice().sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)))).toEqual([
        [{ operation: "account.billing", outcome: "free" }, 1],
        [{ operation: "bin.lookup", outcome: "charged" }, 1],
        [{ operation: "bin.lookup", outcome: "insufficient_credits" }, 1],
        [{ operation: "bin.lookup", outcome: "not_found" }, 1],
        [{ operation: "test.open", outcome: "free" }, 1],
        [{ operation: "test.work", outcome: "charged" }, 1],
        [{ operation: "test.work", outcome: "defect" }, 1],
        [{ operation: "test.work", outcome: "replayed" }, 1]
      ])
      expect(yield* samples("millrace_credits_granted_total")).toEqual([[{}, 200.25]])
      expect(yield* samples("millrace_credits_charged_total")).toEqual([[{}, 2.5]])
      // The work that threw, and the BIN that is not there
      expect(yield* samples("millrace_credits_refunded_total")).toEqual([[{ stage: "reserved" }, 2.5]])
      expect(yield* samples("millrace_upstream_duration_seconds")).toContainEqual([{ upstream: "bin", outcome: "not_found" }, 1])
      expect(yield* samples("millrace_upstream_duration_seconds")).toContainEqual([{ upstream: "test", outcome: "success" }, 2])
      const [[outcome, appends] = [{}, 0]] = yield* samples("millrace_ledger_append_duration_seconds")
      expect(outcome).toEqual({ outcome: "success" })
      expect(appends).toBeGreaterThanOrEqual(8)
    })
  )

  measuring(
    "of a failing upstream show its open circuit until it is back",
    Effect.gen(function* () {
      const { call, account } = yield* host()
      const { bearer } = yield* account()
      const check = (text: string) => call("/api/v1/grammar/check", { method: "POST", headers: bearer, body: { text } })
      const circuit = samples("millrace_upstream_circuit_open")
      for (let i = 0; i < 4; i++) yield* check("upstream down")
      expect(yield* circuit).toEqual([[{ upstream: "grammar" }, 0]])
      yield* check("upstream down")
      yield* check("Fine")
      expect(yield* circuit).toEqual([[{ upstream: "grammar" }, 1]])
      expect(yield* samples("millrace_charges_total")).toEqual([[{ operation: "grammar.check", outcome: "upstream_unavailable" }, 6]])
      yield* TestClock.adjust("10 seconds")
      yield* check("Fine")
      expect(yield* circuit).toEqual([[{ upstream: "grammar" }, 0]])
    })
  )
})

describe("metrics of what follows the log", () => {
  measuring(
    "show how far a projection is behind",
    Effect.gen(function* () {
      yield* host()
      const lag = samples("millrace_projection_lag_seconds")
      expect(yield* eventually(lag, (all) => all.every(([, seconds]) => seconds === 0))).toEqual(
        expect.arrayContaining([
          [{ projection: "holds" }, 0],
          [{ projection: "keys" }, 0]
        ])
      )
      let caughtUp = true
      const status = Effect.sync(() => ({
        position: EventStore.start,
        caughtUp,
        rebuilding: false,
        behind: undefined,
        unstored: undefined,
        stopped: undefined
      }))
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Meters.lag("slow", status)
          yield* TestClock.adjust("1 minute")
          expect(yield* lag).toContainEqual([{ projection: "slow" }, 0])
          caughtUp = false
          yield* TestClock.adjust("1500 millis")
          expect(yield* lag).toContainEqual([{ projection: "slow" }, 1.5])
          caughtUp = true
          expect(yield* lag).toContainEqual([{ projection: "slow" }, 0])
        })
      )
      expect((yield* lag).filter(([{ projection }]) => projection === "slow")).toEqual([])
    })
  )
})

describe("the text format", () => {
  test.each([
    ["a sample that nobody announced", "a_total 1\n"],
    ["a family without help", "# TYPE a gauge\na 1\n"],
    ["a family twice", "# HELP a A\n# TYPE a gauge\na 1\n# HELP a A\n# TYPE a gauge\n"],
    ["a sample twice", "# HELP a A\n# TYPE a gauge\na 1\na 1\n"],
    ["a sample of another family", "# HELP a A\n# TYPE a gauge\nb 1\n"],
    ["a last line without an end", "# HELP a A\n# TYPE a gauge\na 1"],
    ["a label that is not escaped", '# HELP a A\n# TYPE a gauge\na{b="c"d"} 1\n'],
    ["a counter that is not named so", "# HELP a A\n# TYPE a counter\na 1\n"],
    ["a counter below zero", "# HELP a_total A\n# TYPE a_total counter\na_total -1\n"],
    ["a name that is none", "# HELP a A\n# TYPE a gauge\na.b 1\n"],
    ["a value that is none", "# HELP a A\n# TYPE a gauge\na Infinity\n"],
    ["a histogram that falls", '# HELP a A\n# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n'],
    ["a histogram without an end", '# HELP a A\n# TYPE a histogram\na_bucket{le="1"} 1\na_sum 1\na_count 1\n']
  ])("is not read with %s", (_, text) => expect(() => parse(text)).toThrow())

  test("reads back correctly for all names that a host may use", () =>
    assert(
      property(string({ unit: "binary" }), string({ unit: "binary", minLength: 1 }), (value, description) => {
        const context = Context.make(Metric.MetricRegistry, new Map())
        Metric.counter("shop.orders", { description, incremental: true, attributes: { "shop.kind": value } }).updateUnsafe(3, context)
        const read = parse(Effect.runSync(Effect.provideContext(Metrics.text, context)))
        expect([...read.values()]).toEqual([
          {
            name: "shop_orders_total",
            type: "counter",
            help: description,
            samples: [{ name: "shop_orders_total", labels: { shop_kind: value }, value: 3 }]
          }
        ])
      }),
      { seed: 1, numRuns: 300 }
    ))

  test.each([
    [Metric.counter("shop.sold", { incremental: true }), "shop_sold_total", "counter"],
    [Metric.counter("shop.sold_total", { incremental: true }), "shop_sold_total", "counter"],
    [Metric.counter("shop.in_stock"), "shop_in_stock", "gauge"],
    [Metric.gauge("shop.size", { attributes: { unit: "By" } }), "shop_size_bytes", "gauge"],
    [Metric.counter("shop.busy", { incremental: true, attributes: { unit: "s" } }), "shop_busy_seconds_total", "counter"],
    [Metric.histogram("shop.wait", { boundaries: [1, 2], attributes: { unit: "ms" } }), "shop_wait_milliseconds", "histogram"]
  ] as const)("names as OpenTelemetry has it for Prometheus: %#", (metric, name, type) => {
    const context = Context.make(Metric.MetricRegistry, new Map())
    metric.updateUnsafe(1, context)
    expect(Effect.runSync(Effect.provideContext(Metrics.text, context))).toContain(`# TYPE ${name} ${type}\n`)
  })
})

describe("the metrics", () => {
  measuring(
    "are served by the API only if a host adds the route",
    Effect.gen(function* () {
      const { call } = yield* host()
      expect((yield* call("/metrics")).status).toBe(404)
      const context = yield* Layer.build(services())
      const routes = Layer.mergeAll(Http.layer(api), Metrics.layer({ path: "/internal/metrics" }))
      const { handle } = yield* Effect.provideContext(WebHandler.make(routes), context)
      const ask = Effect.promise(() => handle(new Request("http://localhost/internal/metrics")))
      yield* ask
      const response = yield* ask
      expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8")
      expect(response.headers.get("cache-control")).toBe("no-store")
      const text = yield* Effect.promise(() => response.text())
      expect(parse(text).get("http_server_active_requests")?.samples).toEqual([
        { name: "http_server_active_requests", labels: GET, value: 1 }
      ])
    })
  )

  measuring(
    "are served by a server of their own, which has nothing else",
    Effect.gen(function* () {
      const { call } = yield* host()
      yield* call("/health")
      const context = yield* Layer.build(Metrics.MetricsServer.layer())
      const { host: address, url } = Context.get(context, Metrics.MetricsServer)
      expect(address).toBe("127.0.0.1")
      const { status, headers, body } = yield* Effect.promise(() => send(`${url}${Metrics.PATH}`))
      expect([status, headers["content-type"]]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8"])
      expect(parse(body).get("http_server_request_duration_seconds")?.samples.at(-1)?.value).toBe(1)
      for (const path of ["/", "/health", "/api/v1/bin/457173"]) {
        expect((yield* Effect.promise(() => send(`${url}${path}`))).status).toBe(404)
      }
      expect((yield* Effect.promise(() => send(`${url}${Metrics.PATH}`, { method: "POST" }))).status).toBe(404)
    })
  )
})
