/** An untrusted service over HTTP that answers in JSON: as {@link ByteService}, and its replies are decoded. */
import type { UpstreamUnavailable } from "@millrace/core"
import { type Duration, Effect, type Schema, SchemaIssue } from "effect"
import type { HttpClient, HttpClientRequest } from "effect/http"
import * as ByteService from "./ByteService.ts"

/** How long a whole exchange may take, from the connection to the last byte, and how many bytes the body of a reply may have. */
export interface ExchangeLimits {
  readonly timeLimit?: Duration.Input
  readonly byteLimit?: number
}

/** The address of a path below a base address, whether or not that ends in a slash. */
export const below = (base: URL, path: string): URL =>
  new URL(`${base.pathname.endsWith("/") ? base.pathname : `${base.pathname}/`}${path}`, base)

/** A way to ask the service. */
export type Ask<A, E> = (request: HttpClientRequest.HttpClientRequest) => Effect.Effect<A, E | UpstreamUnavailable>

/**
 * Makes a way to ask the service, which answers the decoded body of a reply with status 200; `refusal` says what any other status means.
 * All other failures are `UpstreamUnavailable`, whose reason never quotes a reply: it may repeat a caller's text.
 */
export const make = <A, E>(
  options: ByteService.Options & {
    readonly reply: Schema.Decoder<A>
    readonly refusal: (status: number) => E
  }
): Effect.Effect<Ask<A, E>, never, HttpClient.HttpClient> =>
  Effect.suspend(() => {
    const decode = ByteService.decoder(options.upstream, options.reply, placesOf)
    return ByteService.makeReading(
      options,
      (reply): Effect.Effect<A, E | UpstreamUnavailable> =>
        reply.status === 200 ? decode(reply) : Effect.fail(options.refusal(reply.status))
    )
  })

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** Where the reply differs from its shape, without what is there. */
const placesOf = (error: Schema.SchemaError): string => {
  const paths = format(error.issue).issues.flatMap(({ path }) => (path === undefined || path.length === 0 ? [] : [path.join(".")]))
  return paths.length === 0 ? "" : ` at ${paths.join(", ")}`
}
