/**
 * Reads public data over HTTP: the one way out of all readers ({@link GuardedExchange}). Replies are kept for as long as the upstream allows,
 * and identical reads in flight are one. An upstream that serves no more requests is left alone for as long as it says.
 */
import { NotFound, type Operation, UpstreamUnavailable } from "@millrace/core"
import { Clock, Duration, Effect, type Schema } from "effect"
import { LRUCache } from "lru-cache"
import type { Reply } from "./ByteService.ts"
import * as GuardedExchange from "./GuardedExchange.ts"
import * as InFlight from "./InFlight.ts"
import * as JsonService from "./JsonService.ts"
import type * as PinnedHost from "./PinnedHost.ts"
import { keyOf, ResponseCache } from "./ResponseCache.ts"
import type * as Retries from "./Retries.ts"
import * as RetryAfter from "./RetryAfter.ts"
import * as Wire from "./Wire.ts"

/** The options of readers that a host may set. */
export interface ReadLimits extends JsonService.ExchangeLimits, Retries.Options {
  /** Bytes of replies that are kept: 16 MiB by default. */
  readonly cacheLimit?: number
}

/** The time limit is that of a read with its redirects and repetitions. */
export interface Options
  extends ReadLimits,
    PinnedHost.Options,
    Pick<GuardedExchange.Options, "upstream" | "base" | "credentials" | "ports">,
    Partial<Pick<GuardedExchange.Options, "limitedFor">> {
  /** Waits until a request may be sent. Then a read is one request: it is not repeated, and redirects are not followed. */
  readonly turn?: Effect.Effect<void, UpstreamUnavailable>
  /** Whether a reply refuses the host itself or its credentials, which the host's log is told: by status 401 or 403 by default. */
  readonly isDenied?: (reply: Reply) => boolean
}

export interface Request extends GuardedExchange.Request {
  /** Requests of one bucket share a limit of the upstream; those to a host by default. */
  readonly bucket?: string
}

export interface Read<A> extends Operation.Read<A> {
  readonly headers: Reply["headers"]
}

export interface Reader {
  /** A reply of any status. */
  readonly read: (request: Request) => Effect.Effect<Read<Reply>, GuardedExchange.Refused | UpstreamUnavailable>
  /**
   * The decoded body of a reply. `NotFound` if there is no such resource, or if no such host of a caller. `UpstreamUnavailable` for all else:
   * with `invalidReply` if the body does not match the schema. `refusal` may tell an error of its own from a reply.
   */
  readonly json: <A, E = never>(
    shape: Schema.Decoder<A>,
    resource: string,
    refusal?: (reply: Reply) => E | undefined
  ) => (request: Request) => Effect.Effect<Read<A>, E | NotFound | UpstreamUnavailable>
}

/** Milliseconds to leave an upstream alone that does not say for how long. */
const PAUSE = 5_000

/** The most buckets whose pauses are known. */
const BUCKETS = 1_000

/** By status 429. */
export const limitedFor = ({ headers, status }: Reply, now: number): number | undefined =>
  status === 429 ? (RetryAfter.millisOf(headers["retry-after"], now) ?? PAUSE) : undefined

export const make = Effect.fnUntraced(function* (given: Options) {
  const alone = given.turn === undefined ? {} : { retries: 0, redirects: 0 }
  const options = { limitedFor, isDenied, timeLimit: "10 seconds", byteLimit: 4 * 1024 * 1024, ...given, ...alone } as const
  const clock = yield* Clock.Clock
  const reading: Reading = {
    options,
    clock,
    cache: new ResponseCache(clock, options.cacheLimit ?? 16 * 1024 * 1024),
    shared: yield* InFlight.make,
    exchange: yield* GuardedExchange.make(options),
    pauses: new LRUCache({ max: BUCKETS })
  }
  const reader: Reader = {
    read: (request) => Effect.suspend(() => (request.body === undefined ? readKept(reading, request) : readAnew(reading, request))),
    json: <A, E>(shape: Schema.Decoder<A>, resource: string, refusal: (reply: Reply) => E | undefined = () => undefined) => {
      const decode = JsonService.decoder(options.upstream, shape)
      const decoded = (reply: Reply): Effect.Effect<A, E | NotFound | UpstreamUnavailable> => {
        const refused = refusal(reply)
        return refused === undefined ? Effect.flatMap(succeeded(reading, resource, reply), decode) : Effect.fail(refused)
      }
      return (request: Request) =>
        reader.read(request).pipe(
          Effect.catchTag("Refused", () => Effect.fail(refused(options, resource))),
          Effect.flatMap(({ data: reply, ...read }) => Effect.map(decoded(reply), (data): Read<A> => ({ ...read, data }))),
          Effect.mapError((error) => isolated(options, error))
        )
    }
  }
  return reader
})

interface Reading {
  readonly options: Options & Pick<GuardedExchange.Options, "limitedFor" | "timeLimit" | "byteLimit"> & Required<Pick<Options, "isDenied">>
  readonly clock: Clock.Clock
  readonly cache: ResponseCache
  readonly shared: Effect.Success<typeof InFlight.make>
  readonly exchange: GuardedExchange.Exchange
  /** Until when a bucket is left alone, milliseconds since 1970. */
  readonly pauses: LRUCache<string, number>
}

/** Reads by GET, from the cache where the reply is fresh. */
const readKept = (reading: Reading, request: Request): ReturnType<Reader["read"]> => {
  const { cache, options } = reading
  const known = { method: "GET", url: request.url.href, headers: request.headers ?? {} }
  const found = cache.find(known)
  if (found._tag === "Fresh") return Effect.succeed({ data: found.reply, cache: "hit", headers: found.reply.headers })
  const conditional = found._tag === "Stale" ? { ...request, headers: { ...request.headers, ...found.conditions } } : request
  const taken = Effect.flatMap(asked(reading, conditional), (reply) => {
    const kept = cache.take(known, found, reply)
    return kept === undefined ? Effect.fail(unasked(options)) : Effect.succeed(kept)
  })
  return together(reading, keyOf(known), taken)
}

const readAnew = (reading: Reading, request: Request): ReturnType<Reader["read"]> => {
  const key = keyOf({ method: "POST", url: request.url.href, headers: request.headers ?? {} })
  return together(reading, `${key}${JSON.stringify(request.body)}`, asked(reading, request))
}

/** Joins an identical read that is in flight. */
const together = ({ shared }: Reading, key: string, work: ReturnType<GuardedExchange.Exchange>): ReturnType<Reader["read"]> =>
  Effect.map(shared(key, work), ({ joined, value }) => ({ data: value, cache: joined ? "hit" : "miss", headers: value.headers }))

/** Asks the upstream, unless it is to be left alone. */
const asked = ({ clock, exchange, options, pauses }: Reading, request: Request): ReturnType<GuardedExchange.Exchange> =>
  Effect.suspend(() => {
    const { timeLimit, turn = Effect.void, upstream } = options
    const bucket = request.bucket ?? request.url.host
    const rest = (pauses.get(bucket) ?? 0) - clock.currentTimeMillisUnsafe()
    if (rest > 0) {
      const retryAfter = Math.ceil(rest / 1_000)
      return Effect.fail(new UpstreamUnavailable({ upstream, reason: `it is left alone for ${retryAfter} s`, isolated: true, retryAfter }))
    }
    const answered = Effect.tapError(exchange(request), (error) =>
      Effect.sync(() => {
        if (error._tag === "UpstreamUnavailable" && error.retryAfter !== undefined)
          pauses.set(bucket, clock.currentTimeMillisUnsafe() + error.retryAfter * 1_000)
      })
    )
    return Effect.timeoutOrElse(Effect.andThen(turn, answered), { duration: timeLimit, orElse: () => Effect.fail(tooLate(options)) })
  })

// failures

/** The error of a status that a service should not answer. */
export const unexpected = Wire.unexpected

const tooLate = ({ timeLimit, upstream }: Reading["options"]) =>
  new UpstreamUnavailable({ upstream, reason: `it took longer than ${Duration.toMillis(timeLimit)} ms` })

const unasked = ({ upstream }: Options) =>
  new UpstreamUnavailable({ upstream, reason: "it answered with status 304, unasked", invalidReply: true })

/** A caller's host that leads to no public address is no host. A configured service has no reason to redirect there. */
const refused = ({ base, upstream }: Options, resource: string): NotFound | UpstreamUnavailable =>
  base === undefined
    ? new NotFound({ resource })
    : new UpstreamUnavailable({ upstream, reason: "it redirects to where nothing may be read", invalidReply: true })

/** What fails at a caller's host says nothing of others. */
const isolated = <E>({ base }: Options, error: E): E | UpstreamUnavailable =>
  base === undefined && error instanceof UpstreamUnavailable ? new UpstreamUnavailable({ ...error, isolated: true }) : error

const GONE: ReadonlySet<number> = new Set([404, 410, 451])

/** By status 401 or 403. */
export const isDenied = ({ status }: Reply): boolean => status === 401 || status === 403

/** A reply with status 200. */
const succeeded = ({ clock, options }: Reading, resource: string, reply: Reply): Effect.Effect<Reply, NotFound | UpstreamUnavailable> => {
  const { base, upstream } = options
  const { headers, status } = reply
  if (status === 200) return Effect.succeed(reply)
  if (GONE.has(status)) return Effect.fail(new NotFound({ resource }))
  const wait = RetryAfter.millisOf(headers["retry-after"], clock.currentTimeMillisUnsafe())
  const { reason } = Wire.unexpected(upstream, status)
  const retryAfter = status < 500 || wait === undefined ? {} : { retryAfter: Math.max(1, Math.ceil(wait / 1_000)) }
  const unavailable = Effect.fail(new UpstreamUnavailable({ upstream, reason, ...retryAfter }))
  return base !== undefined && options.isDenied(reply)
    ? Effect.andThen(Effect.logError(`${upstream} refuses this host or its credentials: it answered with status ${status}`), unavailable)
    : unavailable
}
