/** A client of an untrusted HTTP service with JSON replies: {@link ByteService} with decoding. */
import type { UpstreamUnavailable } from "@millrace/core"
import { type Duration, Effect, type Schema, SchemaIssue } from "effect"
import * as ByteService from "./ByteService.ts"

/** The time limit of an exchange, from the connection to the last byte, and the most bytes of a reply's body. */
export interface ExchangeLimits {
  readonly timeLimit?: Duration.Input
  readonly byteLimit?: number
}

/** The URL of a path below a base URL, with or without a trailing slash. */
export const below = (base: URL, path: string): URL =>
  new URL(`${base.pathname.endsWith("/") ? base.pathname : `${base.pathname}/`}${path}`, base)

/**
 * Returns the function that sends requests. It returns the decoded body of a reply with status 200; `refusal` maps any other status to an
 * error. All other failures are `UpstreamUnavailable`, whose reason never quotes a reply, as it may contain a caller's text.
 */
export const make = <A, E>(
  options: ByteService.Options & {
    readonly reply: Schema.Decoder<A>
    readonly refusal: (status: number) => E
  }
) =>
  Effect.suspend(() => {
    const decode = decoder(options.upstream, options.reply)
    return ByteService.makeReading(
      options,
      (reply): Effect.Effect<A, E | UpstreamUnavailable> =>
        reply.status === 200 ? decode(reply) : Effect.fail(options.refusal(reply.status))
    )
  })

/** Decodes a reply. The reason of a failure names the malformed places, without the values. */
export const decoder = <A>(upstream: string, shape: Schema.Decoder<A>) => ByteService.decoder(upstream, shape, placesOf)

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** The places where the reply does not match its schema, without the values. */
const placesOf = (error: Schema.SchemaError): string => {
  const paths = format(error.issue).issues.flatMap(({ path }) => (path === undefined || path.length === 0 ? [] : [path.join(".")]))
  return paths.length === 0 ? "" : ` at ${paths.join(", ")}`
}
