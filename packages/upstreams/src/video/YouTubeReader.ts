/** Reads the YouTube Data API v3 within its daily quota, and tells its errors apart. */
import { DailyQuotas, InvalidInput, type NotFound, type Operation, type UpstreamUnavailable } from "@millrace/core"
import { Effect, Option, Redacted, Schema } from "effect"
import type { Reply } from "../shared/ByteService.ts"
import * as JsonService from "../shared/JsonService.ts"
import * as PublicReader from "../shared/PublicReader.ts"
import * as RetryAfter from "../shared/RetryAfter.ts"
import { Failure } from "./YouTubeShapes.ts"

export interface Options extends PublicReader.ReadLimits {
  /** `https://youtube.googleapis.com` by default. */
  readonly baseUrl?: URL
  readonly apiKey: Redacted.Redacted
  /** Units of a day: 10,000 by default, as new projects have. */
  readonly dailyQuota?: number
}

const UPSTREAM = "video"

/** Quotas are of a day, which begins at midnight Pacific Time. */
const TIME_ZONE = "America/Los_Angeles"
const DEFAULT_QUOTA = 10_000

/** Units of a request (https://developers.google.com/youtube/v3/determine_quota_cost). */
const SEARCH = 100
const LIST = 1

/** Milliseconds to wait where a limit of each minute is reached. */
const MINUTE = 60_000

const decodeFailure = Schema.decodeUnknownOption(Schema.fromJsonString(Failure))

/** Why a request was refused, such as `quotaExceeded`. */
const reasonsOf = ({ bytes }: Reply): ReadonlyArray<string> => {
  const failure = Option.getOrUndefined(decodeFailure(new TextDecoder().decode(bytes)))?.error
  return [...(failure?.errors ?? []), ...(failure?.details ?? [])].flatMap(({ reason = [] }) => reason)
}

const says = (reply: Reply, reasons: ReadonlySet<string>): boolean => reasonsOf(reply).some((reason) => reasons.has(reason))

const USED_UP: ReadonlySet<string> = new Set(["quotaExceeded", "dailyLimitExceeded"])
const TOO_FAST: ReadonlySet<string> = new Set(["rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED"])
const WRONG_KEY: ReadonlySet<string> = new Set(["keyInvalid", "keyExpired", "API_KEY_INVALID", "API_KEY_EXPIRED"])
const WRONG_TOKEN: ReadonlySet<string> = new Set(["invalidPageToken"])

/** What a caller asks for is kept by its owner from everybody, so it does not exist for the host. */
const CLOSED: ReadonlySet<string> = new Set(["commentsDisabled", "playlistItemsNotAccessible", "channelClosed", "channelSuspended"])

const isDenied = (reply: Reply): boolean =>
  reply.status === 401 || (reply.status === 403 && !says(reply, CLOSED)) || (reply.status === 400 && says(reply, WRONG_KEY))

const unknownPage = () => new InvalidInput({ field: "page_token", message: "is of no page here: give a next_page_token of the same call" })

const refusalFor = (gone: NotFound) => (reply: Reply) => {
  if (reply.status === 400 && says(reply, WRONG_TOKEN)) return unknownPage()
  return reply.status === 403 && says(reply, CLOSED) ? gone : undefined
}

export type Parameters = Readonly<Record<string, string | undefined>>

export type List = <A>(
  shape: Schema.Decoder<A>,
  resource: NotFound,
  path: string,
  parameters: Parameters
) => Effect.Effect<Operation.Read<A>, InvalidInput | NotFound | UpstreamUnavailable>

/**
 * Returns the function that reads a list of a resource, such as `videos`. A request is sent once: another attempt would take more units.
 * `InvalidInput` with the field `page_token` if there is no such page.
 */
export const make = Effect.fnUntraced(function* ({ apiKey, baseUrl, dailyQuota = DEFAULT_QUOTA, ...limits }: Options) {
  const base = baseUrl ?? new URL("https://youtube.googleapis.com")
  const quota = yield* DailyQuotas.use(({ of }) => of({ upstream: UPSTREAM, limit: dailyQuota, timeZone: TIME_ZONE }))

  const limitedFor = (reply: Reply, now: number): number | undefined => {
    if (reply.status !== 403 && reply.status !== 429) return undefined
    if (says(reply, USED_UP)) return quota.exhaust(now)
    return reply.status === 429 || says(reply, TOO_FAST) ? (RetryAfter.millisOf(reply.headers["retry-after"], now) ?? MINUTE) : undefined
  }
  const reading = (units: number) =>
    PublicReader.make({
      ...limits,
      upstream: UPSTREAM,
      base,
      limitedFor,
      isDenied,
      turn: quota.take(units),
      credentials: { "x-goog-api-key": Redacted.value(apiKey) }
    })
  const [search, others] = [yield* reading(SEARCH), yield* reading(LIST)]

  const list: List = (shape, gone, path, parameters) => {
    const url = JsonService.below(base, `youtube/v3/${path}`)
    for (const [name, value] of Object.entries(parameters)) if (value !== undefined) url.searchParams.set(name, value)
    const { json } = path === "search" ? search : others
    return json(shape, gone.resource, refusalFor(gone))({ url })
  }
  return list
})
