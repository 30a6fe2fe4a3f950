/** The fields of replies of the YouTube Data API v3 that are used (https://developers.google.com/youtube/v3/docs), and what they become. */
import type { Video } from "@millrace/core"
import { Schema } from "effect"

const Text = Schema.optionalKey(Schema.String)
const Flag = Schema.optionalKey(Schema.Boolean)

/** Counts are decimal digits in a string. */
const Count = Schema.optionalKey(Schema.String.check(Schema.isPattern(/^[0-9]{1,15}$/u)))

const Thumbnail = Schema.Struct({ url: Schema.String, width: Schema.optionalKey(Schema.Int), height: Schema.optionalKey(Schema.Int) })
const Thumbnails = Schema.optionalKey(Schema.Record(Schema.String, Thumbnail))

const listOf = <S extends Schema.Codec<unknown, unknown>>(item: S) =>
  Schema.Struct({
    /** Left out where there are none. */
    items: Schema.optionalKey(Schema.Array(item)),
    nextPageToken: Text,
    pageInfo: Schema.optionalKey(Schema.Struct({ totalResults: Schema.optionalKey(Schema.Int) }))
  })

const VideoItem = Schema.Struct({
  id: Schema.String,
  snippet: Schema.Struct({
    publishedAt: Schema.String,
    channelId: Schema.String,
    channelTitle: Schema.String,
    title: Schema.String,
    description: Schema.String,
    thumbnails: Thumbnails,
    tags: Schema.optionalKey(Schema.Array(Schema.String)),
    categoryId: Text,
    liveBroadcastContent: Schema.optionalKey(Schema.Literals(["none", "live", "upcoming"])),
    defaultLanguage: Text,
    defaultAudioLanguage: Text
  }),
  contentDetails: Schema.optionalKey(Schema.Struct({ duration: Text, definition: Text, caption: Text })),
  status: Schema.optionalKey(Schema.Struct({ license: Text, embeddable: Flag, madeForKids: Flag })),
  statistics: Schema.optionalKey(Schema.Struct({ viewCount: Count, likeCount: Count, commentCount: Count }))
})
export const Videos = listOf(VideoItem)

const ChannelItem = Schema.Struct({
  id: Schema.String,
  snippet: Schema.Struct({
    title: Schema.String,
    description: Schema.String,
    customUrl: Text,
    publishedAt: Schema.String,
    country: Text,
    thumbnails: Thumbnails
  }),
  contentDetails: Schema.Struct({ relatedPlaylists: Schema.Struct({ uploads: Text }) }),
  statistics: Schema.Struct({ viewCount: Count, subscriberCount: Count, hiddenSubscriberCount: Flag, videoCount: Count }),
  brandingSettings: Schema.optionalKey(Schema.Struct({ image: Schema.optionalKey(Schema.Struct({ bannerExternalUrl: Text })) }))
})
export const Channels = listOf(ChannelItem)

const PlaylistEntry = Schema.Struct({ contentDetails: Schema.Struct({ videoId: Schema.String }) })
export const PlaylistItems = listOf(PlaylistEntry)

const PlaylistItem = Schema.Struct({
  id: Schema.String,
  snippet: Schema.Struct({
    publishedAt: Schema.String,
    channelId: Schema.String,
    channelTitle: Text,
    title: Schema.String,
    description: Schema.String,
    thumbnails: Thumbnails
  }),
  contentDetails: Schema.Struct({ itemCount: Schema.Int })
})
export const Playlists = listOf(PlaylistItem)

const Found = Schema.Struct({ id: Schema.Struct({ videoId: Text }) })
export const SearchResults = listOf(Found)

const Thread = Schema.Struct({
  id: Schema.String,
  snippet: Schema.Struct({
    totalReplyCount: Schema.Int,
    topLevelComment: Schema.Struct({
      snippet: Schema.Struct({
        textDisplay: Schema.String,
        authorDisplayName: Schema.String,
        authorProfileImageUrl: Text,
        authorChannelId: Schema.optionalKey(Schema.Struct({ value: Text })),
        likeCount: Schema.Int,
        publishedAt: Schema.String,
        updatedAt: Schema.String
      })
    })
  })
})
export const CommentThreads = listOf(Thread)

/** The error of any reply but a success. */
export const Failure = Schema.Struct({
  error: Schema.Struct({
    message: Text,
    errors: Schema.optionalKey(Schema.Array(Schema.Struct({ reason: Text }))),
    /** Of newer parts of the API. */
    details: Schema.optionalKey(Schema.Array(Schema.Struct({ reason: Text })))
  })
})

// what they become

const numberOf = (count: string | undefined): number | null => (count === undefined ? null : Number(count))

const DURATION = /^P(?:(?<days>\d+)D)?(?:T(?:(?<hours>\d+)H)?(?:(?<minutes>\d+)M)?(?:(?<seconds>\d+)S)?)?$/u

/** Seconds of a duration by ISO 8601; null for any other text, and for `P0D`, which a broadcast has that did not end. */
export const secondsOf = (duration: string | undefined): number | null => {
  const groups = DURATION.exec(duration ?? "")?.groups
  if (groups === undefined || duration === "P0D") return null
  const [days, hours, minutes, seconds] = ["days", "hours", "minutes", "seconds"].map((unit) => Number(groups[unit] ?? 0))
  return (((days ?? 0) * 24 + (hours ?? 0)) * 60 + (minutes ?? 0)) * 60 + (seconds ?? 0)
}

type Images = typeof Thumbnails.Type

const thumbnailsOf = (images: Images = {}): ReadonlyArray<typeof Thumbnail.Type> =>
  Object.values(images).toSorted((a, b) => (a.width ?? 0) - (b.width ?? 0))

const largestOf = (images: Images | undefined): string | null => thumbnailsOf(images).at(-1)?.url ?? null

const thumbnailOf = (thumbnails: Images | undefined) => ({ thumbnail_url: largestOf(thumbnails) })

export const summaryOf = ({ contentDetails, id, snippet, statistics }: typeof VideoItem.Type): Video.Records.VideoSummary => ({
  id,
  url: `https://www.youtube.com/watch?v=${id}`,
  title: snippet.title,
  description: snippet.description,
  channel_id: snippet.channelId,
  channel_title: snippet.channelTitle,
  published_at: snippet.publishedAt,
  ...thumbnailOf(snippet.thumbnails),
  duration_seconds: secondsOf(contentDetails?.duration),
  views: numberOf(statistics?.viewCount),
  likes: numberOf(statistics?.likeCount),
  comments: numberOf(statistics?.commentCount),
  live: snippet.liveBroadcastContent ?? "none"
})

export const detailsOf = (video: typeof VideoItem.Type): Video.Records.VideoDetails => {
  const { contentDetails, snippet, status } = video
  return {
    ...summaryOf(video),
    tags: snippet.tags ?? [],
    category_id: snippet.categoryId ?? null,
    language: snippet.defaultLanguage ?? null,
    audio_language: snippet.defaultAudioLanguage ?? null,
    definition: contentDetails?.definition ?? null,
    captions: contentDetails?.caption === "true",
    license: status?.license ?? null,
    embeddable: status?.embeddable ?? null,
    made_for_kids: status?.madeForKids ?? null,
    thumbnails: thumbnailsOf(snippet.thumbnails).map(({ height = null, url, width = null }) => ({ url, width, height }))
  }
}

export const channelOf = ({ brandingSettings, id, snippet, statistics }: typeof ChannelItem.Type): Video.Records.Channel => {
  const banner = brandingSettings?.image?.bannerExternalUrl
  return {
    id,
    handle: snippet.customUrl?.startsWith("@") === true ? snippet.customUrl : null,
    url: `https://www.youtube.com/channel/${id}`,
    title: snippet.title,
    description: snippet.description,
    country: snippet.country ?? null,
    published_at: snippet.publishedAt,
    ...thumbnailOf(snippet.thumbnails),
    banner_url: banner ?? null,
    subscribers: statistics.hiddenSubscriberCount === true ? null : numberOf(statistics.subscriberCount),
    views: numberOf(statistics.viewCount),
    videos: numberOf(statistics.videoCount)
  }
}

export const playlistOf = ({ contentDetails, id, snippet }: typeof PlaylistItem.Type) => ({
  id,
  url: `https://www.youtube.com/playlist?list=${id}`,
  title: snippet.title,
  description: snippet.description,
  channel_id: snippet.channelId,
  channel_title: snippet.channelTitle ?? "",
  published_at: snippet.publishedAt,
  ...thumbnailOf(snippet.thumbnails),
  video_count: contentDetails.itemCount
})

export const commentOf = ({ id, snippet }: typeof Thread.Type): Video.Records.Comments["comments"][number] => {
  const comment = snippet.topLevelComment.snippet
  return {
    id,
    text: comment.textDisplay,
    author: {
      name: comment.authorDisplayName,
      channel_id: comment.authorChannelId?.value ?? null,
      avatar_url: comment.authorProfileImageUrl || null
    },
    likes: comment.likeCount,
    replies: snippet.totalReplyCount,
    published_at: comment.publishedAt,
    updated_at: comment.updatedAt
  }
}
