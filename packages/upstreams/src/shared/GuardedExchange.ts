/**
 * One request to the outside, with its redirects. A configured service is reached wherever it is. Any other host, and any that a redirect
 * leads to, is reached only at a known port of a public address: its name is resolved once, and the checked address connected to.
 */
import { UpstreamUnavailable } from "@millrace/core"
import { Clock, Data, type Duration, Effect, Result } from "effect"
import { FetchHttpClient, HttpClientRequest } from "effect/http"
import * as ByteService from "./ByteService.ts"
import * as CheckedUrl from "./CheckedUrl.ts"
import * as PinnedHost from "./PinnedHost.ts"
import * as Retries from "./Retries.ts"

export interface Options extends PinnedHost.Options, Retries.Options {
  /** The service's name in errors. */
  readonly upstream: string
  /** The configured service. Without one, all hosts are callers'. */
  readonly base?: URL
  /** Headers that the configured service alone is sent, such as the host's own credentials. */
  readonly credentials?: Readonly<Record<string, string>>
  /** Allowed ports of other hosts; 80 and 443 by default. */
  readonly ports?: ReadonlyArray<number>
  /** Milliseconds for which no more requests are served, by what a reply says; undefined if it says nothing of that. */
  readonly limitedFor: (reply: ByteService.Reply, now: number) => number | undefined
  /** The most redirects to follow: 5 by default. */
  readonly redirects?: number
  readonly timeLimit: Duration.Input
  /** Of a body, after it was decompressed. */
  readonly byteLimit: number
}

export interface Request {
  readonly url: URL
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>
  /** Sent by POST, as JSON. What is sent this way must be a read, too, because it may be repeated. */
  readonly body?: unknown
}

/** A URL, or one that it redirects to, may not be read: it leads to no public address, or to nowhere. */
export class Refused extends Data.TaggedError("Refused")<{}> {}

export type Exchange = (request: Request) => Effect.Effect<ByteService.Reply, Refused | UpstreamUnavailable>

const REDIRECTS = 5

/**
 * Returns the function that sends requests, and repeats them where that may help. `UpstreamUnavailable` with `retryAfter` if the upstream
 * serves no more requests for so long.
 */
export const make = (options: Options): Effect.Effect<Exchange> =>
  Effect.map(ByteService.make(options), (once): Exchange => {
    const { redirects = REDIRECTS, upstream } = options
    const send = Retries.make(unlimited(once, options), options)
    return (request) =>
      Effect.gen(function* () {
        let url: URL = request.url
        for (let hop = 0; hop <= redirects; hop++) {
          const reply = yield* hopTo(url, request, send, options)
          const { location } = reply.headers
          if (!CheckedUrl.REDIRECTS.has(reply.status) || location === undefined || request.body !== undefined) return reply
          if (redirects === 0) return reply
          const next = URL.parse(location, url.href)
          if (next === null) return yield* new Refused()
          url = next
        }
        return yield* new UpstreamUnavailable({ upstream, reason: "it redirects too often" })
      })
  }).pipe(Effect.provide(FetchHttpClient.layer))

const isOwn = ({ origin }: URL, { base }: Options): boolean => origin === base?.origin

/** Fails for a reply that says that no more requests are served. */
const unlimited =
  (ask: ByteService.Ask, { limitedFor, upstream }: Options): ByteService.Ask =>
  (request) =>
    Effect.flatMap(ask(request), (reply) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const pause = limitedFor(reply, now)
        if (pause === undefined) return Effect.succeed(reply)
        const retryAfter = Math.max(1, Math.ceil(pause / 1_000))
        return Effect.fail(
          new UpstreamUnavailable({ upstream, reason: `it serves no more requests for ${retryAfter} s`, isolated: true, retryAfter })
        )
      })
    )

const hopTo = (url: URL, { body, headers }: Request, send: ByteService.Ask, options: Options): ReturnType<Exchange> => {
  const own = isOwn(url, options)
  const sent = {
    accept: "application/json",
    "user-agent": "millrace",
    ...headers,
    ...(own ? options.credentials : {})
  }
  const request =
    body === undefined
      ? HttpClientRequest.get(url.href, { headers: sent })
      : HttpClientRequest.bodyJsonUnsafe(HttpClientRequest.post(url.href, { headers: sent }), body)
  if (own) return send(request)
  return Effect.gen(function* () {
    if (Result.isFailure(CheckedUrl.parse(url.href, options.ports))) return yield* new Refused()
    const addresses = yield* Effect.mapError(PinnedHost.addressesOf(url, options), (trouble) =>
      trouble === "refused"
        ? new Refused()
        : new UpstreamUnavailable({ upstream: options.upstream, reason: "its name cannot be resolved now" })
    )
    return yield* Effect.acquireUseRelease(
      Effect.promise(async () => (await import("./PinnedAgent.ts")).fetchTo(addresses)),
      ({ fetch }) => Effect.provideService(send(request), FetchHttpClient.Fetch, fetch),
      ({ close }) => Effect.promise(close)
    )
  })
}
