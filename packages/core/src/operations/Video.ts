/** Public data of a platform that shows videos: videos, channels, playlists, comments, and a search. */
import { Clock, Effect, Schema } from "effect"
import * as Operation from "../work/Operation.ts"
import { InvalidInput } from "../work/OperationError.ts"
import { PER_PAGE } from "./CommonLimits.ts"
import * as Outliers from "./video/Outliers.ts"
import * as Records from "./video/Records.ts"
import { type Page, VideoSite } from "./video/VideoSite.ts"

export type { Page, Search, Uploads } from "./video/VideoSite.ts"
export { Outliers, Records, VideoSite }

const configured = VideoSite.use(({ configured }) => configured)

// parameters

const VideoId = Schema.String.check(Schema.isPattern(/^[\w-]{1,64}$/u, { expected: "the id of a video, such as dQw4w9WgXcQ" }))

const PlaylistId = Schema.String.check(Schema.isPattern(/^[\w-]{1,100}$/u, { expected: "the id of a playlist" }))

/** Handles have letters of all scripts. Tools read the pattern without the flag `u`, so it says which signs they do not have. */
const ChannelName = Schema.String.check(
  Schema.isPattern(/^@?[^\s!-,/:-@[-^`{-~]{1,60}$/u, { expected: "the id of a channel, or a handle such as @GoogleDevelopers" })
)

/** The most items that the platform gives at once. */
const MOST = 50

const paging = {
  /** `next_page_token` of the page before. */
  page_token: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^[\w=-]{1,4096}$/u, { expected: "a next_page_token" }))),
  /** 25 by default. */
  per_page: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: MOST })))
}

const pageOf = ({ page_token, per_page = PER_PAGE.default }: { readonly page_token?: string; readonly per_page?: number }): Page => ({
  page_token,
  per_page
})

const PAGES = "`next_page_token` leads to the next page, as `page_token`; it is null on the last."
const CHANNEL = "A channel is given by its id, or by its handle with or without `@`."

// examples

const SUMMARY: Records.VideoSummary = {
  ...{ id: "Ks-_Mh1QhMc", url: "https://www.youtube.com/watch?v=Ks-_Mh1QhMc", title: "Your body language may shape who you are" },
  ...{ description: "Body language affects how others see us.", channel_id: "UCAuUUnT6oDeKwE6v1NGQxug", channel_title: "TED" },
  ...{ published_at: "2012-10-01T15:27:35Z", thumbnail_url: "https://i.ytimg.com/vi/Ks-_Mh1QhMc/hqdefault.jpg" },
  ...{ duration_seconds: 1263, views: 25000000, likes: 420000, comments: 9000, live: "none" }
}

const DETAILS: Records.VideoDetails = {
  ...SUMMARY,
  ...{ tags: ["TED", "psychology"], category_id: "22", language: "en", audio_language: "en", definition: "hd", captions: true },
  ...{ license: "youtube", embeddable: true, made_for_kids: false },
  thumbnails: [{ url: "https://i.ytimg.com/vi/Ks-_Mh1QhMc/default.jpg", width: 120, height: 90 }]
}

const TED = { channel_id: "UCAuUUnT6oDeKwE6v1NGQxug", channel_title: "TED" }

const CHANNEL_VIDEOS: Records.ChannelVideos = { ...TED, videos: [SUMMARY], next_page_token: "EAAaBlBUOkNBVQ" }

// a video

const of = (path: "stats" | "details" | "tags" | "download") =>
  ({ method: "GET", path: `/social/videosite/videos/:id/${path}`, params: { id: VideoId } }) as const

export const stats = Operation.make("video.stats", {
  summary: "Read how often a video was watched, liked and commented",
  price: 0.5,
  cached: true,
  route: of("stats"),
  success: Records.VideoStats,
  configured,
  run: Effect.fnUntraced(function* ({ id }) {
    const { cache, data } = yield* VideoSite.use((site) => site.video(id))
    const { channel_id, comments, likes, published_at, title, views } = data
    return { data: { id: data.id, title, channel_id, published_at, views, likes, comments }, cache }
  }),
  example: {
    input: { id: "Ks-_Mh1QhMc" },
    data: {
      ...{ id: SUMMARY.id, title: SUMMARY.title, channel_id: SUMMARY.channel_id, published_at: SUMMARY.published_at },
      ...{ views: 25000000, likes: 420000, comments: 9000 }
    }
  }
})

export const tags = Operation.make("video.tags", {
  summary: "Read the tags of a video",
  description: "The list is empty if its owner gave none.",
  price: 0.5,
  cached: true,
  route: of("tags"),
  success: Records.VideoTags,
  configured,
  run: Effect.fnUntraced(function* ({ id }) {
    const { cache, data } = yield* VideoSite.use((site) => site.video(id))
    return { data: { id: data.id, tags: data.tags }, cache }
  }),
  example: { input: { id: "Ks-_Mh1QhMc" }, data: { id: "Ks-_Mh1QhMc", tags: ["TED", "psychology"] } }
})

export const details = Operation.make("video.details", {
  summary: "Read all that is known of a video",
  price: 1,
  cached: true,
  route: of("details"),
  success: Records.VideoDetails,
  configured,
  run: ({ id }) => VideoSite.use((site) => site.video(id)),
  example: { input: { id: "Ks-_Mh1QhMc" }, data: DETAILS },
  links: [{ operation: "video.about", parameters: { handle: "/channel_id" } }]
})

export const comments = Operation.make("video.comments", {
  summary: "Read the comments on a video",
  description: `\`order\` is \`relevance\` by default. A video with its comments turned off is answered 404. ${PAGES}`,
  price: 1,
  cached: true,
  route: {
    method: "GET",
    path: "/social/videosite/videos/:id/comments",
    params: { id: VideoId },
    query: { order: Schema.optionalKey(Schema.Literals(["relevance", "time"])), ...paging }
  },
  success: Records.Comments,
  configured,
  run: ({ id, order = "relevance", ...page }) => VideoSite.use((site) => site.comments(id, { order, ...pageOf(page) })),
  example: {
    input: { id: "Ks-_Mh1QhMc", per_page: 1 },
    data: {
      video_id: "Ks-_Mh1QhMc",
      comments: [
        {
          ...{ id: "UgxKREWxIgDrw8w2e_Z4AaABAg", text: "I watch this before each interview.", likes: 12, replies: 1 },
          author: { name: "@ada", channel_id: "UC8butISFwT-Wl7EV0hUK0BQ", avatar_url: null },
          ...{ published_at: "2026-11-01T08:00:00Z", updated_at: "2026-11-01T08:00:00Z" }
        }
      ],
      next_page_token: null
    }
  }
})

export const download = Operation.make("video.download", {
  summary: "Get the direct links to the files of a video",
  description:
    "Each link has its expiry, size and type. A video that cannot be downloaded is answered by an error: `download_private`, " +
    "`download_members_only`, `download_age_restricted`, `download_region_blocked`, `download_live`, `download_upcoming` or " +
    "`download_unavailable`; one that was removed is answered 404.",
  price: 1,
  cached: true,
  route: of("download"),
  // A provider may have to read the platform's player first
  timeout: "1 minute",
  success: Records.Download,
  configured: VideoSite.use(({ downloads }) => downloads),
  run: ({ id }) => VideoSite.use((site) => site.download(id)),
  example: {
    input: { id: "Ks-_Mh1QhMc" },
    data: {
      ...{ id: SUMMARY.id, title: SUMMARY.title, duration_seconds: SUMMARY.duration_seconds, expires_at: "2026-11-24T14:00:00Z" },
      streams: [
        {
          url: "https://rr1---sn-example.googlevideo.com/videoplayback?expire=1795615200&itag=18",
          ...{ expires_at: "2026-11-24T14:00:00Z", kind: "video_and_audio", mime_type: "video/mp4", container: "mp4" },
          ...{ codecs: ["avc1.42001E", "mp4a.40.2"], quality: "360p", width: 640, height: 360, fps: 30, bitrate: 503_000 },
          ...{ size: 79_000_000, duration_seconds: 1263, language: null }
        }
      ]
    }
  }
})

// a channel

export const about = Operation.make("video.about", {
  summary: "Read about a channel",
  description: CHANNEL,
  price: 0.5,
  cached: true,
  route: { method: "GET", path: "/social/videosite/channels/:handle/about", params: { handle: ChannelName } },
  success: Records.Channel,
  configured,
  run: ({ handle }) => VideoSite.use((site) => site.channel(handle)),
  example: {
    input: { handle: "@TED" },
    data: {
      ...{ id: "UCAuUUnT6oDeKwE6v1NGQxug", handle: "@TED", url: "https://www.youtube.com/channel/UCAuUUnT6oDeKwE6v1NGQxug" },
      ...{ title: "TED", description: "Ideas change everything.", country: "US", published_at: "2006-12-06T07:20:39Z" },
      ...{ thumbnail_url: null, banner_url: null, subscribers: 26500000, views: 2900000000, videos: 5400 }
    }
  },
  links: [{ operation: "video.channelVideos", parameters: { channel: "/id" } }]
})

export const channelVideos = Operation.make("video.channelVideos", {
  summary: "List the videos of a channel",
  description: `The newest comes first. ${CHANNEL} ${PAGES}`,
  price: 0.5,
  cached: true,
  route: { method: "GET", path: "/social/videosite/channels/:channel/videos", params: { channel: ChannelName }, query: paging },
  success: Records.ChannelVideos,
  configured,
  run: Effect.fnUntraced(function* ({ channel, ...page }) {
    const { cache, data } = yield* VideoSite.use((site) => site.channelVideos(channel, pageOf(page)))
    const { ages: _, ...videos } = data
    return { data: videos, cache }
  }),
  example: { input: { channel: "@TED", per_page: 1 }, data: CHANNEL_VIDEOS }
})

const Outlier = Schema.Struct({
  ...Records.VideoSummary.fields,
  /** Days since it was published, as is `expected_views` with one decimal. */
  age_days: Schema.Finite,
  /** The median of the views of videos that are as old. */
  expected_views: Schema.Finite,
  /** `views` divided by `expected_views`, with two decimals. */
  multiplier: Schema.Finite
})

export const ChannelOutliers = Schema.Struct({
  channel_id: Schema.String,
  channel_title: Schema.String,
  /** Videos with a multiplier; 0 if the channel has too few to compare. */
  judged: Schema.Int,
  /** Videos that are too young to judge. */
  too_young: Schema.Int,
  /** The greatest multiplier comes first. */
  outliers: Schema.Array(Outlier)
})

/** Pages of videos that are looked at. */
const LOOKED_AT = 2

const DAY = 86_400_000

const rounded = (number: number, decimals: number): number => Math.round(number * 10 ** decimals) / 10 ** decimals

/** The newest videos of a channel. */
const newest = Effect.fnUntraced(function* (channel: string) {
  const site = yield* VideoSite
  const first = yield* site.channelVideos(channel, { page_token: undefined, per_page: MOST })
  const pages = [first]
  for (let last = first; pages.length < LOOKED_AT && last.data.next_page_token !== null; ) {
    last = yield* site.channelVideos(channel, { page_token: last.data.next_page_token, per_page: MOST })
    pages.push(last)
  }
  const cache: Operation.CacheResult = pages.every(({ cache }) => cache === "hit") ? "hit" : "miss"
  const ages = new Map(pages.flatMap(({ data }) => [...(data.ages ?? [])]))
  return { data: { ...first.data, videos: pages.flatMap(({ data }) => data.videos), ages }, cache }
})

export const outliers = Operation.make("video.outliers", {
  summary: "Find the videos of a channel that were watched more than others as old",
  description:
    "The newest 100 videos are compared. The multiplier of a video is its views divided by the median of the views of the ten videos that are " +
    "nearest to its age. A video younger than 48 hours is not judged, nor is any with fewer than four others. `min_multiplier` is 2 by " +
    `default. ${CHANNEL}`,
  price: 1,
  cached: true,
  route: {
    method: "GET",
    path: "/social/videosite/channels/:channel/outliers",
    params: { channel: ChannelName },
    query: { min_multiplier: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 1_000 }))) }
  },
  success: ChannelOutliers,
  configured,
  run: Effect.fnUntraced(function* ({ channel, min_multiplier = 2 }) {
    const { cache, data } = yield* newest(channel)
    const now = yield* Clock.currentTimeMillis
    const watched = data.videos.flatMap((video) => {
      const { id, live, published_at, views } = video
      const age = published_at === null ? data.ages.get(id) : now - Date.parse(published_at)
      return views === null || age === undefined || live !== "none" ? [] : [{ id, views, age, video }]
    })
    const judged = Outliers.judge(watched)
    const found = judged.filter(({ multiplier }) => multiplier >= min_multiplier).toSorted((a, b) => b.multiplier - a.multiplier)
    return {
      data: {
        channel_id: data.channel_id,
        channel_title: data.channel_title,
        judged: judged.length,
        too_young: watched.filter(({ age }) => age < Outliers.LEAST_AGE).length,
        outliers: found.map(({ expected, multiplier, video: { age, video } }) => ({
          ...video,
          age_days: rounded(age / DAY, 1),
          expected_views: expected,
          multiplier: rounded(multiplier, 2)
        }))
      },
      cache
    }
  }),
  example: {
    input: { channel: "@TED", min_multiplier: 3 },
    data: {
      ...{ ...TED, judged: 98, too_young: 2 },
      outliers: [{ ...SUMMARY, age_days: 5166.4, expected_views: 2500000, multiplier: 10 }]
    }
  }
})

// lists

export const search = Operation.make("video.search", {
  summary: "Search videos",
  description: `\`order\` is \`relevance\` by default. ${PAGES}`,
  price: 0.5,
  cached: true,
  route: {
    method: "GET",
    path: "/social/videosite/search",
    query: {
      q: Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(200)),
      order: Schema.optionalKey(Schema.Literals(["relevance", "date", "rating", "views"])),
      ...paging
    }
  },
  success: Records.VideoSearch,
  configured,
  check: ({ q }) =>
    q.trim() === "" ? Effect.fail(new InvalidInput({ field: "q", message: "must have a word to search for" })) : Effect.void,
  run: ({ order = "relevance", q, ...page }) => VideoSite.use((site) => site.search({ q, order, ...pageOf(page) })),
  example: {
    input: { q: "body language", order: "views", per_page: 1 },
    data: { total_results: 1000000, videos: [SUMMARY], next_page_token: "CAEQAA" }
  }
})

export const playlist = Operation.make("video.playlist", {
  summary: "Read a playlist and its videos",
  description: PAGES,
  price: 0.3,
  cached: true,
  route: { method: "GET", path: "/social/videosite/playlists/:id", params: { id: PlaylistId }, query: paging },
  success: Records.Playlist,
  configured,
  run: ({ id, ...page }) => VideoSite.use((site) => site.playlist(id, pageOf(page))),
  example: {
    input: { id: "PL70DEC2B0568B5469", per_page: 1 },
    data: {
      ...{ id: "PL70DEC2B0568B5469", url: "https://www.youtube.com/playlist?list=PL70DEC2B0568B5469", title: "The most popular talks" },
      ...{ description: "", ...TED, published_at: "2011-04-22T18:12:20Z", thumbnail_url: null, video_count: 25 },
      ...{ videos: [SUMMARY], next_page_token: null }
    }
  }
})
