/**
 * What is told of videos, channels, playlists and comments. Times are in ISO 8601, a day alone where the platform tells no time. What the
 * owner hides, or the provider does not tell, is null.
 */
import { Schema } from "effect"

const Text = Schema.NullOr(Schema.String)
const Count = Schema.NullOr(Schema.Int)

export const VideoSummary = Schema.Struct({
  id: Schema.String,
  url: Schema.String,
  title: Schema.String,
  description: Text,
  channel_id: Text,
  channel_title: Text,
  /** Null where the platform's list tells only a rough age. */
  published_at: Text,
  thumbnail_url: Text,
  /** Null while it is live or to come. */
  duration_seconds: Count,
  views: Count,
  likes: Count,
  comments: Count,
  live: Schema.Literals(["none", "live", "upcoming"])
})
export type VideoSummary = typeof VideoSummary.Type

export const VideoDetails = Schema.Struct({
  ...VideoSummary.fields,
  tags: Schema.Array(Schema.String),
  category_id: Text,
  /** BCP 47, as is `audio_language`. */
  language: Text,
  audio_language: Text,
  /** `hd` or `sd`. */
  definition: Text,
  captions: Schema.Boolean,
  /** Such as `youtube` or `creativeCommon`. */
  license: Text,
  embeddable: Schema.NullOr(Schema.Boolean),
  made_for_kids: Schema.NullOr(Schema.Boolean),
  /** The smallest comes first. */
  thumbnails: Schema.Array(Schema.Struct({ url: Schema.String, width: Count, height: Count }))
})
export type VideoDetails = typeof VideoDetails.Type

export const VideoStats = Schema.Struct({
  id: Schema.String,
  title: Schema.String,
  channel_id: Text,
  published_at: Text,
  views: Count,
  likes: Count,
  comments: Count
})

export const VideoTags = Schema.Struct({ id: Schema.String, tags: Schema.Array(Schema.String) })

/** Of the next page; null on the last. */
const next_page_token = Text

export const ChannelVideos = Schema.Struct({
  channel_id: Schema.String,
  channel_title: Schema.String,
  /** The newest comes first. */
  videos: Schema.Array(VideoSummary),
  next_page_token
})
export type ChannelVideos = typeof ChannelVideos.Type

export const VideoSearch = Schema.Struct({
  /** What the platform estimates. */
  total_results: Count,
  videos: Schema.Array(VideoSummary),
  next_page_token
})
export type VideoSearch = typeof VideoSearch.Type

export const Playlist = Schema.Struct({
  id: Schema.String,
  url: Schema.String,
  title: Schema.String,
  description: Schema.String,
  channel_id: Text,
  channel_title: Text,
  published_at: Text,
  thumbnail_url: Text,
  /** Deleted and private videos included, which `videos` leaves out. */
  video_count: Count,
  /** In the order of the playlist. */
  videos: Schema.Array(VideoSummary),
  next_page_token
})
export type Playlist = typeof Playlist.Type

export const Comments = Schema.Struct({
  video_id: Schema.String,
  /** Without replies to them. */
  comments: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      text: Schema.String,
      author: Schema.Struct({ name: Schema.String, channel_id: Text, avatar_url: Text }),
      likes: Schema.Int,
      replies: Schema.Int,
      published_at: Text,
      updated_at: Text
    })
  ),
  next_page_token
})
export type Comments = typeof Comments.Type

export const Channel = Schema.Struct({
  id: Schema.String,
  /** With its `@`. */
  handle: Text,
  url: Schema.String,
  title: Schema.String,
  description: Schema.String,
  /** ISO 3166-1 alpha-2. */
  country: Text,
  published_at: Text,
  thumbnail_url: Text,
  banner_url: Text,
  /** Rounded by the platform to three digits. */
  subscribers: Count,
  views: Count,
  videos: Count
})
export type Channel = typeof Channel.Type

export const Stream = Schema.Struct({
  /** Direct, and good until `expires_at`. The platform may refuse it to other addresses than that of this service. */
  url: Schema.String,
  expires_at: Schema.String,
  /** What it has: a file with picture and sound, or one of them alone. */
  kind: Schema.Literals(["video_and_audio", "video", "audio"]),
  /** Such as `video/mp4`. */
  mime_type: Schema.String,
  /** Such as `mp4` or `webm`. */
  container: Schema.String,
  /** As RFC 6381 names them, such as `avc1.640028`. */
  codecs: Schema.Array(Schema.String),
  /** Such as `1080p60` or `medium`. */
  quality: Text,
  width: Count,
  height: Count,
  fps: Count,
  /** Bits a second. */
  bitrate: Count,
  /** Bytes. */
  size: Count,
  duration_seconds: Count,
  /** BCP 47, of the sound. */
  language: Text
})
export type Stream = typeof Stream.Type

export const Download = Schema.Struct({
  id: Schema.String,
  title: Schema.String,
  duration_seconds: Count,
  /** When the first of the links expires. */
  expires_at: Schema.String,
  /** Files with picture and sound come first, then the largest picture and the highest bitrate. At least one. */
  streams: Schema.NonEmptyArray(Stream)
})
export type Download = typeof Download.Type
