/**
 * `VideoSite` on the YouTube Data API v3 (https://developers.google.com/youtube/v3). Calls of one unit are preferred: a channel's videos are
 * read from its playlist of uploads. Only a search takes 100 units. The API gives no downloads.
 */
import { type DailyQuotas, type InvalidInput, NotFound, type Operation, UpstreamUnavailable, Video } from "@millrace/core"
import { Effect, Layer } from "effect"
import * as YouTubeReader from "./YouTubeReader.ts"
import * as Shapes from "./YouTubeShapes.ts"

export type Options = YouTubeReader.Options

type Failure = InvalidInput | NotFound | UpstreamUnavailable
type Read<A> = Operation.Read<A>

/** Of several reads: a hit made no request at all. */
const together = (...reads: ReadonlyArray<Read<unknown>>): Operation.CacheResult =>
  reads.every(({ cache }) => cache === "hit") ? "hit" : "miss"

const CHANNEL_ID = /^UC[\w-]{22}$/u

/** A request without a page cannot have a wrong one. */
const unpaged = <A, R>(effect: Effect.Effect<A, Failure, R>): Effect.Effect<A, NotFound | UpstreamUnavailable, R> =>
  Effect.catchTag(effect, "InvalidInput", () =>
    Effect.fail(new UpstreamUnavailable({ upstream: "video", reason: "it refuses a page that was not asked for", invalidReply: true }))
  )

const ORDERS = { relevance: "relevance", date: "date", rating: "rating", views: "viewCount" } as const

const VIDEO_PARTS = "snippet,contentDetails,status,statistics"

const make = (list: YouTubeReader.List) => {
  const goneVideo = new NotFound({ resource: "video" })
  const goneChannel = new NotFound({ resource: "channel" })
  const gonePlaylist = new NotFound({ resource: "playlist" })

  /** Videos in the order of their ids, without those that nobody may see. */
  const videos = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
    if (ids.length === 0) return { data: [], cache: "hit" } satisfies Read<ReadonlyArray<never>>
    const parameters = { part: VIDEO_PARTS, id: ids.join(","), maxResults: String(ids.length) }
    const { cache, data } = yield* unpaged(list(Shapes.Videos, goneVideo, "videos", parameters))
    const byId = new Map((data.items ?? []).map((video) => [video.id, video]))
    return { data: ids.flatMap((id) => byId.get(id) ?? []), cache }
  })

  const summaries = (ids: ReadonlyArray<string>) =>
    Effect.map(videos(ids), ({ cache, data }) => ({ data: data.map(Shapes.summaryOf), cache }))

  const channel = Effect.fnUntraced(function* (name: string) {
    const which = CHANNEL_ID.test(name) ? { id: name } : { forHandle: name.startsWith("@") ? name : `@${name}` }
    const parameters = { part: "snippet,contentDetails,statistics,brandingSettings", ...which }
    const { cache, data } = yield* unpaged(list(Shapes.Channels, goneChannel, "channels", parameters))
    const [found] = data.items ?? []
    return found === undefined ? yield* goneChannel : { data: found, cache }
  })

  /** A page of a playlist's videos. */
  const items = Effect.fnUntraced(function* (playlistId: string, { page_token, per_page }: Video.Page) {
    const parameters = { part: "contentDetails", playlistId, maxResults: String(per_page), pageToken: page_token }
    const page = yield* list(Shapes.PlaylistItems, gonePlaylist, "playlistItems", parameters)
    const found = yield* summaries((page.data.items ?? []).map(({ contentDetails }) => contentDetails.videoId))
    return { data: { videos: found.data, next_page_token: page.data.nextPageToken ?? null }, cache: together(page, found) }
  })

  /** A channel without videos has no playlist of them. */
  const uploads = (playlistId: string | undefined, page: Video.Page): ReturnType<typeof items> => {
    const none = Effect.succeed({ data: { videos: [], next_page_token: null }, cache: "miss" as const })
    return playlistId === undefined ? none : Effect.catchTag(items(playlistId, page), "NotFound", () => none)
  }

  return Video.VideoSite.of({
    configured: Effect.void,
    ...Video.VideoSite.withoutDownloads,
    video: Effect.fn("YouTubeVideoSite.video")(function* (id) {
      const { cache, data } = yield* videos([id])
      const [video] = data
      return video === undefined ? yield* goneVideo : { data: Shapes.detailsOf(video), cache }
    }),
    channel: Effect.fn("YouTubeVideoSite.channel")(function* (name) {
      const { cache, data } = yield* channel(name)
      return { data: Shapes.channelOf(data), cache }
    }),
    channelVideos: Effect.fn("YouTubeVideoSite.channelVideos")(function* (name, page) {
      const owner = yield* channel(name)
      const { contentDetails, id, snippet } = owner.data
      const found = yield* uploads(contentDetails.relatedPlaylists.uploads, page)
      return { data: { channel_id: id, channel_title: snippet.title, ...found.data }, cache: together(owner, found) }
    }),
    search: Effect.fn("YouTubeVideoSite.search")(function* ({ order, page_token, per_page, q }) {
      const paged = { maxResults: String(per_page), pageToken: page_token }
      const parameters = { part: "id", type: "video", q, order: ORDERS[order], ...paged }
      const page = yield* list(Shapes.SearchResults, goneVideo, "search", parameters)
      const found = yield* summaries((page.data.items ?? []).flatMap(({ id }) => id.videoId ?? []))
      const { nextPageToken = null, pageInfo } = page.data
      return {
        data: { total_results: pageInfo?.totalResults ?? found.data.length, videos: found.data, next_page_token: nextPageToken },
        cache: together(page, found)
      }
    }),
    playlist: Effect.fn("YouTubeVideoSite.playlist")(function* (id, page) {
      const about = yield* unpaged(list(Shapes.Playlists, gonePlaylist, "playlists", { part: "snippet,contentDetails", id }))
      const [playlist] = about.data.items ?? []
      if (playlist === undefined) return yield* gonePlaylist
      const found = yield* items(id, page)
      return { data: { ...Shapes.playlistOf(playlist), ...found.data }, cache: together(about, found) }
    }),
    comments: Effect.fn("YouTubeVideoSite.comments")(function* (id, { order, page_token, per_page }) {
      const paged = { maxResults: String(per_page), pageToken: page_token }
      const parameters = { part: "snippet", videoId: id, order, textFormat: "plainText", ...paged }
      const gone = new NotFound({ resource: "video with comments" })
      const { cache, data } = yield* list(Shapes.CommentThreads, gone, "commentThreads", parameters)
      const { items = [], nextPageToken = null } = data
      return { data: { video_id: id, comments: items.map(Shapes.commentOf), next_page_token: nextPageToken }, cache }
    })
  })
}

/** A reply may have 4 MiB and 10 seconds by default. */
export const layer = (options: Options): Layer.Layer<Video.VideoSite, never, DailyQuotas> =>
  Layer.effect(Video.VideoSite, Effect.map(YouTubeReader.make(options), make))
