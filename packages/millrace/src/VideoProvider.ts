/** Who tells of videos: the YouTube Data API with a key, or the site itself by the package @millrace/upstream-youtubei. */
import { type DailyQuotas, Video } from "@millrace/core"
import { YouTubeVideoSite } from "@millrace/upstreams"
import { Config, Effect, type Layer, Option } from "effect"
import { CommandFailed, fail } from "./Failure.ts"
import * as Setting from "./Setting.ts"

const KINDS = ["youtube", "youtubei"] as const

const addressOf = (text: string) => (/^https?:/u.test(text) && URL.canParse(text) ? new URL(text) : undefined)

export const video: Setting.Kind<(typeof KINDS)[number]> = {
  metavar: "youtube|youtubei",
  parse: (text) => KINDS.find((kind) => kind === text),
  expected: "youtube or youtubei"
}
const url: Setting.Kind<URL> = { metavar: "url", parse: addressOf, expected: "such as https://youtube.googleapis.com", secret: true }
const quota: Setting.Kind<number> = {
  metavar: "units",
  parse: (text) => (/^[1-9][0-9]{0,9}$/u.test(text) ? Number(text) : undefined),
  expected: "the units of a day: at least 1"
}

export const flags = {
  video: Setting.optional(
    "video",
    "Provider of videos: youtube, the YouTube Data API, with MILLRACE_YOUTUBE_KEY; or youtubei, the site itself, with downloads and without a key, of the package @millrace/upstream-youtubei",
    video
  ),
  youtubeUrl: Setting.optional("youtube-url", "Where the API, or the site, is, such as a proxy of yours", url),
  youtubeQuota: Setting.optional("youtube-quota", "Units that the API gives a day: 10000 when left out", quota)
}

export interface Choice {
  readonly video: Option.Option<(typeof KINDS)[number]>
  readonly youtubeUrl: Option.Option<URL>
  readonly youtubeQuota: Option.Option<number>
}

/** The names of the options and variables beside `video`. */
export const kinds = { youtubeUrl: url, youtubeQuota: quota }

const given = <A>(choice: Option.Option<A>, variable: string, { expected, parse }: Setting.Kind<A>) =>
  Effect.gen(function* () {
    if (Option.isSome(choice)) return choice.value
    const text = Option.getOrUndefined(yield* Config.String(variable).pipe(Config.option))
    const value = text === undefined ? undefined : parse(text)
    return text !== undefined && value === undefined ? yield* fail(`${variable} cannot be used: give ${expected}`) : value
  })

/** Loaded only where it is chosen. */
const youtubei = Effect.tryPromise({
  try: async () => (await import("@millrace/upstream-youtubei")).YoutubeiVideoSite,
  catch: () => new CommandFailed("youtubei is not installed: npm install @millrace/upstream-youtubei")
})

export const layer = Effect.fnUntraced(function* (
  choice: Choice
): Effect.fn.Return<Layer.Layer<Video.VideoSite, never, DailyQuotas>, CommandFailed | Config.ConfigError> {
  if (Option.isNone(choice.video)) return Video.VideoSite.unconfigured
  const baseUrl = yield* given(choice.youtubeUrl, "MILLRACE_YOUTUBE_URL", url)
  const place = baseUrl === undefined ? {} : { baseUrl }
  if (choice.video.value === "youtubei") return (yield* youtubei).layer(place)
  const apiKey = Option.getOrUndefined(yield* Config.Redacted("MILLRACE_YOUTUBE_KEY").pipe(Config.option))
  if (apiKey === undefined) return yield* fail("youtube needs a key of the YouTube Data API: set MILLRACE_YOUTUBE_KEY")
  const dailyQuota = yield* given(choice.youtubeQuota, "MILLRACE_YOUTUBE_QUOTA", quota)
  return YouTubeVideoSite.layer({ apiKey, ...place, ...(dailyQuota === undefined ? {} : { dailyQuota }) })
})
