/** The trace of a call at the services that it asks: passed on, shown by where they are, never by what they were asked. */
import { Bin, PaymentGateway, TraceContext } from "@millrace/core"
import { BinlistBinDirectory } from "@millrace/upstreams"
import { Stripe } from "@millrace/upstreams/payments"
import { Effect, Exit, Option, Redacted, type Scope, Tracer } from "effect"
import { FetchHttpClient, HttpClientRequest } from "effect/http"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import * as ByteService from "../../src/shared/ByteService.ts"
import { json, nobody, serve } from "./LocalService.ts"

const TRACE = "0af7651916cd43dd8448eb211c80319c"
const inbound = { traceparent: `00-${TRACE}-b7ad6b7169203331-01`, tracestate: "congo=t61rcWkgMzE" }

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Effect.scoped(effect).pipe(Effect.provide(TestClock.layer())))

const lookup = (baseUrl: URL) =>
  Bin.BinDirectory.use((directory) => directory.lookup("45717360")).pipe(Effect.provide(BinlistBinDirectory.layer({ baseUrl })))

/** Runs in the caller's trace. */
const within = <A, E, R>(effect: Effect.Effect<A, E, R>) => {
  const caller = TraceContext.fromHeaders(inbound)
  return caller === undefined ? effect : Effect.provideService(effect, Tracer.ParentSpan, caller)
}

/** Records the spans that end. */
const recorder = () => {
  const spans: Array<Tracer.Span> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return { spans, tracer }
}

const traceOf = ({ traceparent, tracestate }: Readonly<Record<string, unknown>>) => ({ traceparent, tracestate })

describe("a service that is asked during a call", () => {
  test("gets the caller's trace unchanged where this host does not trace", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(json({ scheme: "visa" }))
        yield* within(lookup(service.url))
        const { headers } = yield* service.received
        expect(traceOf(headers)).toEqual(inbound)
        expect(headers).not.toHaveProperty("b3")
      })
    ))

  test("gets the caller's trace where a library makes the request", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(json({}))
        const stripe = Stripe.layer({ apiKey: Redacted.make("sk_test_1"), webhookSecrets: [], baseUrl: service.url, retries: 0 })
        const standing = PaymentGateway.PaymentGateway.use((gateway) => gateway.standing({ paymentId: "pay_1", reference: "pi_1" }))
        yield* Effect.flip(within(Effect.provide(standing, stripe)))
        expect(traceOf((yield* service.received).headers)).toEqual(inbound)
      })
    ))

  test("cannot be sent a malformed header, which is not told", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* serve(json({}))
        const ask = yield* ByteService.make({ upstream: "some", timeLimit: "20 seconds", byteLimit: 100 })
        const error = yield* Effect.flip(ask(HttpClientRequest.bearerToken(HttpClientRequest.get(url), "two\nlines")))
        expect(error.reason).toBe("TransportError: a header of the request is malformed")
      }).pipe(Effect.provide(FetchHttpClient.layer))
    ))

  test("gets no trace without a tracer", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(json({ scheme: "visa" }))
        yield* Effect.withSpan(lookup(service.url), "unseen")
        expect(traceOf((yield* service.received).headers)).toEqual({})
      })
    ))

  test("gets the span of its exchange, which shows nothing of the request", () =>
    run(
      Effect.gen(function* () {
        const { spans, tracer } = recorder()
        const service = yield* serve(json({ scheme: "visa" }))
        yield* within(Effect.withSpan(lookup(service.url), "call")).pipe(Effect.provideService(Tracer.Tracer, tracer))
        expect(spans.map(({ name }) => name)).toEqual(["call", "BinlistBinDirectory.lookup", "GET"])
        const [, lookedUp, asked] = spans
        expect([asked?.kind, asked?.parent]).toEqual(["client", Option.fromUndefinedOr(lookedUp)])
        expect(Object.fromEntries(asked?.attributes ?? [])).toEqual({
          "http.request.method": "GET",
          "http.response.status_code": 200,
          "millrace.upstream": "binlist",
          "server.address": "127.0.0.1",
          "server.port": Number(service.url.port),
          "url.scheme": "http"
        })
        const { headers } = yield* service.received
        expect(traceOf(headers)).toEqual({ traceparent: `00-${TRACE}-${asked?.spanId}-01`, tracestate: inbound.tracestate })
      })
    ))

  test("gets no trace where spans are disabled", () =>
    run(
      Effect.gen(function* () {
        const { spans, tracer } = recorder()
        const service = yield* serve(json({ scheme: "visa" }))
        yield* Effect.withSpan(lookup(service.url), "call").pipe(
          Effect.withTracerEnabled(false),
          Effect.provideService(Tracer.Tracer, tracer)
        )
        expect(spans).toEqual([])
        expect(traceOf((yield* service.received).headers)).toEqual({})
      })
    ))

  test.each([
    ["refuses", 500, "upstream_unavailable"],
    ["does not know", 404, "not_found"]
  ])("that %s is shown as a failure, by its name", (_, status, error) =>
    run(
      Effect.gen(function* () {
        const { spans, tracer } = recorder()
        const service = yield* serve(json({}, status))
        yield* Effect.exit(lookup(service.url)).pipe(Effect.provideService(Tracer.Tracer, tracer))
        const asked = spans.find(({ kind }) => kind === "client")
        expect(asked?.attributes.get("http.response.status_code")).toBe(status)
        expect(asked?.attributes.get("error.type")).toBe(error)
        expect(asked?.status).toMatchObject({ _tag: "Ended", exit: Exit.fail(error) })
      })
    )
  )

  test("that cannot be reached is shown as a failure", () =>
    run(
      Effect.gen(function* () {
        const { spans, tracer } = recorder()
        const error = yield* Effect.flip(lookup(yield* nobody)).pipe(Effect.provideService(Tracer.Tracer, tracer))
        expect(spans.find(({ kind }) => kind === "client")?.attributes.get("error.type")).toBe("upstream_unavailable")
        expect(JSON.stringify(error)).not.toContain("45717360")
      })
    ))
})
