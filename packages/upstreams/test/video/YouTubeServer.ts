/** A platform that speaks the YouTube Data API v3: one channel, its videos, playlists and comments, and the errors of the API. */
import type { youtube_v3 as Api } from "@googleapis/youtube"
import { type Answer, json } from "../shared/LocalService.ts"

export const KEY = "AIza-the-key-of-the-host"
export const CHANNEL = "UC_x5XG1OV2P6uZZ5FSM9Ttw"
export const HANDLE = "@GoogleDevelopers"
export const UPLOADS = "UU_x5XG1OV2P6uZZ5FSM9Ttw"
export const PLAYLIST = "PLOU2XLYxmsIJyiwUPCou_OVTpRIn_8UMd"
/** A channel without any upload. */
export const SILENT = "UC_silent_____________00"
/** A video with its comments turned off. */
export const MUTE = idOf(1)
export const HIT = idOf(30)

const COUNT = 60

/** Ids have eleven characters. */
export function idOf(index: number): string {
  return `video-${String(index).padStart(5, "0")}`
}

const DAY = 86_400_000
/** When the newest was published. */
export const NEWEST = Date.parse("2026-01-01T00:00:00Z")

const thumbnails: Api.Schema$ThumbnailDetails = {
  default: { url: "https://i.ytimg.com/vi/x/default.jpg", width: 120, height: 90 },
  high: { url: "https://i.ytimg.com/vi/x/hqdefault.jpg", width: 480, height: 360 }
}

export const video = (index: number): Api.Schema$Video => ({
  kind: "youtube#video",
  etag: "x",
  id: idOf(index),
  snippet: {
    publishedAt: new Date(NEWEST - index * DAY).toISOString(),
    channelId: CHANNEL,
    channelTitle: "Google for Developers",
    title: `Video ${index}`,
    description: "A description",
    thumbnails,
    ...(index === 2 ? {} : { tags: ["web", "talk"] }),
    categoryId: "28",
    liveBroadcastContent: "none",
    defaultAudioLanguage: "en"
  },
  contentDetails: { duration: "PT1H2M3S", definition: "hd", caption: "true", licensedContent: true },
  status: { license: "youtube", embeddable: true, madeForKids: false, privacyStatus: "public" },
  // Likes are left out where the owner hides them
  statistics: { viewCount: idOf(index) === HIT ? "50000" : "1000", ...(index === 2 ? {} : { likeCount: "12" }), commentCount: "3" }
})

const channels: ReadonlyArray<Api.Schema$Channel> = [CHANNEL, SILENT].map((id) => ({
  id,
  snippet: {
    title: "Google for Developers",
    description: "About",
    customUrl: id === CHANNEL ? HANDLE.toLowerCase() : "@silent",
    publishedAt: "2007-08-23T00:34:43Z",
    country: "US",
    thumbnails
  },
  contentDetails: { relatedPlaylists: { likes: "", uploads: id === CHANNEL ? UPLOADS : "UU_silent" } },
  statistics: { viewCount: "300000", subscriberCount: "2500000", hiddenSubscriberCount: id === SILENT, videoCount: String(COUNT) },
  brandingSettings: { image: { bannerExternalUrl: "https://yt3.googleusercontent.com/banner" } }
}))

const comment = (index: number): Api.Schema$CommentThread => ({
  id: `comment-${index}`,
  snippet: {
    videoId: idOf(0),
    totalReplyCount: 2,
    topLevelComment: {
      snippet: {
        textDisplay: `Comment ${index}`,
        authorDisplayName: "@ada",
        authorProfileImageUrl: "",
        authorChannelId: { value: "UC-ada" },
        likeCount: 4,
        publishedAt: "2026-01-02T00:00:00Z",
        updatedAt: "2026-01-03T00:00:00Z"
      }
    }
  }
})

/** As the API writes errors. */
export const failure = (status: number, reason: string, message = reason): Answer =>
  json({ error: { code: status, message, errors: [{ message, domain: "youtube.common", reason }] } }, status)

/** As newer parts of the API write them. */
export const invalidKey: Answer = json(
  {
    error: {
      code: 400,
      message: "API key not valid. Please pass a valid API key.",
      errors: [{ message: "API key not valid.", domain: "global", reason: "badRequest" }],
      status: "INVALID_ARGUMENT",
      details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID", domain: "googleapis.com" }]
    }
  },
  400
)

const all = Array.from({ length: COUNT }, (_, index) => index)

/** A page of a list. Tokens are as opaque to clients as the platform's. */
const pageOf = <A>(items: ReadonlyArray<A>, query: URLSearchParams) => {
  const token = query.get("pageToken")
  const from = token === null ? 0 : Number(/^PAGE-(\d+)$/u.exec(token)?.[1] ?? Number.NaN)
  if (Number.isNaN(from)) return undefined
  const size = Number(query.get("maxResults") ?? 5)
  return {
    items: items.slice(from, from + size),
    pageInfo: { totalResults: items.length, resultsPerPage: size },
    ...(from + size < items.length ? { nextPageToken: `PAGE-${from + size}` } : {})
  }
}

const paged = (items: ReadonlyArray<unknown>, query: URLSearchParams): Answer => {
  const page = pageOf(items, query)
  return page === undefined ? failure(400, "invalidPageToken") : json(page)
}

const found = (index: number): Api.Schema$SearchResult => ({ id: { kind: "youtube#video", videoId: idOf(index) } })
const entry = (index: number): Api.Schema$PlaylistItem => ({ contentDetails: { videoId: idOf(index) } })

const playlist: Api.Schema$Playlist = {
  id: PLAYLIST,
  snippet: {
    ...{ publishedAt: "2020-01-01T00:00:00Z", channelId: CHANNEL, channelTitle: "Google for Developers" },
    ...{ title: "Talks", description: "", thumbnails }
  },
  contentDetails: { itemCount: COUNT + 1 }
}

const known = new Map(all.map((index) => [idOf(index), index]))

const lists: Readonly<Record<string, (query: URLSearchParams) => Answer>> = {
  videos: (query) => {
    const ids = query.get("id")?.split(",") ?? []
    return json({ items: ids.flatMap((id) => known.get(id) ?? []).map(video), pageInfo: { totalResults: ids.length } })
  },
  channels: (query) => {
    const handle = query.get("forHandle")?.toLowerCase()
    const one = channels.filter(({ id, snippet }) => id === query.get("id") || snippet?.customUrl === handle)
    // The API leaves the list out where nothing is found
    return json(one.length === 0 ? { pageInfo: { totalResults: 0 } } : { items: one })
  },
  playlists: (query) => json({ items: query.get("id") === PLAYLIST ? [playlist] : [] }),
  playlistItems: (query) => {
    // The platform also lists what was deleted
    const gone: Api.Schema$PlaylistItem = { contentDetails: { videoId: "deleted-one" } }
    if (query.get("playlistId") === UPLOADS) return paged(all.map(entry), query)
    return query.get("playlistId") === PLAYLIST ? paged([gone, ...all.map(entry)], query) : failure(404, "playlistNotFound")
  },
  search: (query) => paged(all.map(found), query),
  commentThreads: (query) => {
    if (query.get("videoId") === MUTE) return failure(403, "commentsDisabled")
    return known.has(query.get("videoId") ?? "") ? paged(all.map(comment), query) : failure(404, "videoNotFound")
  }
}

/** `instead` may answer first. */
export const answer =
  (instead: (path: string) => Answer | undefined = () => undefined): Answer =>
  (response, request) => {
    const url = new URL(request.path, "http://platform")
    const list = lists[url.pathname.replace("/youtube/v3/", "")]
    const isKnown = request.headers["x-goog-api-key"] === KEY
    const given = isKnown ? (instead(url.pathname) ?? list?.(url.searchParams)) : invalidKey
    ;(given ?? json({}, 404))(response, request)
  }
