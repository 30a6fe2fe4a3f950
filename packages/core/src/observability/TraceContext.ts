/**
 * W3C Trace Context (https://www.w3.org/TR/trace-context/): reads a request's trace from its headers and passes it on to upstreams. A
 * process without a tracer passes the headers on unchanged.
 */
import { Context, Effect, Option, Tracer } from "effect"

/** The request's headers, kept with the external span that they name. */
interface Inbound {
  readonly traceparent: string
  readonly tracestate: string | undefined
}

const Inbound = Context.Reference<Inbound | undefined>("@millrace/core/observability/TraceContext/Inbound", {
  defaultValue: () => undefined
})

/** Version, trace, parent, flags. A later version may have more fields, which are ignored. */
const TRACEPARENT =
  /^(?!ff)(?<version>[0-9a-f]{2})-(?!0{32})(?<trace>[0-9a-f]{32})-(?!0{16})(?<parent>[0-9a-f]{16})-(?<flags>[0-9a-f]{2})(?<more>-|$)/u

const SAMPLED = 1

/** The `tracestate` length in characters that the standard requires to be passed on. Longer ones are dropped. */
const MAX_TRACESTATE = 512
const MAX_MEMBERS = 32
const MEMBER =
  /^[a-z0-9][a-z0-9_\-*/]{0,240}(?:@[a-z][a-z0-9_\-*/]{0,13})?=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/u

/** The caller's span. Undefined when the headers have none or a malformed one. Header names are in lower case. */
export const fromHeaders = (headers: Readonly<Record<string, string | undefined>>): Tracer.ExternalSpan | undefined => {
  const { traceparent } = headers
  if (traceparent === undefined) return undefined
  const { version, trace, parent, flags, more } = TRACEPARENT.exec(traceparent)?.groups ?? {}
  if (trace === undefined || parent === undefined || flags === undefined) return undefined
  if (version === "00" && more === "-") return undefined
  return Tracer.externalSpan({
    traceId: trace,
    spanId: parent,
    sampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED,
    annotations: Context.make(Inbound, { traceparent: `00-${trace}-${parent}-${flags}`, tracestate: stateOf(headers["tracestate"]) })
  })
}

/** A malformed `tracestate` is dropped; the trace itself is passed on. */
const stateOf = (tracestate: string | undefined): string | undefined => {
  if (tracestate === undefined || tracestate.length > MAX_TRACESTATE) return undefined
  const members = tracestate
    .split(",")
    .map((member) => member.trim())
    .filter((member) => member !== "")
  return members.length > 0 && members.length <= MAX_MEMBERS && members.every((member) => MEMBER.test(member))
    ? members.join(",")
    : undefined
}

/** Whether this process traces: Effect's own tracer drops every span. */
export const isTraced = (context: Context.Context<never>): boolean => Context.get(context, Tracer.Tracer) !== Tracer.nativeTracer

/** The span to propagate: this process's span if it traces, else the caller's. */
export const current = (context: Context.Context<never>): Tracer.AnySpan | undefined => {
  const traced = isTraced(context)
  let span = Option.getOrUndefined(Context.getOption(context, Tracer.ParentSpan))
  while (span?._tag === "Span" && (!traced || Context.get(span.annotations, Tracer.DisablePropagation))) span = parentOf(span)
  return span
}

/** The headers that continue the trace in a request to another service. Empty without a trace. */
export const headers: Effect.Effect<Readonly<Record<string, string>>> = Effect.withFiber((fiber) => {
  const span = current(fiber.context)
  return Effect.succeed(span === undefined ? {} : headersOf(span))
})

const headersOf = (span: Tracer.AnySpan): Readonly<Record<string, string>> => {
  const inbound = inboundOf(span)
  const traceparent =
    span._tag === "ExternalSpan" && inbound !== undefined
      ? inbound.traceparent
      : `00-${span.traceId.padStart(32, "0")}-${span.spanId}-${span.sampled ? "01" : "00"}`
  return { traceparent, ...(inbound?.tracestate === undefined ? {} : { tracestate: inbound.tracestate }) }
}

const inboundOf = (span: Tracer.AnySpan): Inbound | undefined => {
  let outermost: Tracer.AnySpan | undefined = span
  while (outermost?._tag === "Span") outermost = parentOf(outermost)
  return outermost && Context.get(outermost.annotations, Inbound)
}

const parentOf = ({ parent }: Tracer.Span): Tracer.AnySpan | undefined => Option.getOrUndefined(parent)
