/** A video, a channel and comments as youtubei.js parses them, and what they become. */
import type { Video } from "@millrace/core"
import { type YT, YTNodes } from "youtubei.js"
import * as SiteTexts from "./SiteTexts.ts"

/** The ids of the API for the names on the site (https://developers.google.com/youtube/v3/docs/videoCategories). */
const CATEGORIES: Readonly<Record<string, string>> = {
  "Film & Animation": "1",
  "Autos & Vehicles": "2",
  Music: "10",
  "Pets & Animals": "15",
  Sports: "17",
  "Travel & Events": "19",
  Gaming: "20",
  "People & Blogs": "22",
  Comedy: "23",
  Entertainment: "24",
  "News & Politics": "25",
  "Howto & Style": "26",
  Education: "27",
  "Science & Technology": "28",
  "Nonprofits & Activism": "29"
}

const numberOf = (value: number | undefined | null): number | null =>
  value === undefined || value === null || Number.isNaN(value) ? null : value

/** From this height on, in pixels. */
const HIGH_DEFINITION = 720

const definitionOf = ({ streaming_data: data }: YT.VideoInfo): string | null => {
  const heights = [...(data?.formats ?? []), ...(data?.adaptive_formats ?? [])].flatMap(({ height }) => height ?? [])
  return heights.length === 0 ? null : Math.max(...heights) >= HIGH_DEFINITION ? "hd" : "sd"
}

/** Without those that the site has made by itself. */
const hasCaptions = ({ captions }: YT.VideoInfo): boolean => (captions?.caption_tracks ?? []).some(({ kind }) => kind !== "asr")

const spokenIn = ({ captions }: YT.VideoInfo): string | null =>
  captions?.caption_tracks?.find(({ kind }) => kind === "asr")?.language_code ?? null

/** Undefined where the site tells nothing of the video. */
export const videoOf = (info: YT.VideoInfo): Video.Records.VideoDetails | undefined => {
  const { basic_info: basic, comments_entry_point_header: comments, page, playability_status: playability } = info
  const [{ microformat }] = page
  if (basic.id === undefined || basic.title === undefined || basic.channel_id === undefined) return undefined
  const live = basic.is_upcoming === true ? "upcoming" : basic.is_live === true ? "live" : "none"
  const thumbnails = (basic.thumbnail ?? []).toSorted((a, b) => a.width - b.width)
  return {
    ...{ id: basic.id, url: `https://www.youtube.com/watch?v=${basic.id}`, title: basic.title },
    ...{ description: basic.short_description ?? "", channel_id: basic.channel_id, channel_title: basic.author ?? null },
    published_at: microformat?.is(YTNodes.PlayerMicroformat) === true ? SiteTexts.timeOf(microformat.publish_date) : null,
    thumbnail_url: thumbnails.at(-1)?.url ?? null,
    duration_seconds: live === "none" ? numberOf(basic.duration) : null,
    ...{ views: numberOf(basic.view_count), likes: numberOf(basic.like_count) },
    comments: SiteTexts.countOf(comments?.comment_count?.text),
    ...{ live, tags: basic.keywords ?? [], category_id: CATEGORIES[basic.category ?? ""] ?? null },
    ...{ language: null, audio_language: spokenIn(info), definition: definitionOf(info), captions: hasCaptions(info), license: null },
    ...{ embeddable: playability?.embeddable ?? null, made_for_kids: null },
    thumbnails: thumbnails.map(({ height, url, width }) => ({ url, width, height }))
  }
}

const bannerOf = ({ header }: YT.Channel): string | null => {
  if (header?.is(YTNodes.PageHeader) === true) return header.content?.banner?.image[0]?.url ?? null
  return header?.is(YTNodes.C4TabbedHeader) === true ? (header.banner?.[0]?.url ?? null) : null
}

/** `about`: the site's box about the channel. Undefined where the site does not tell who it is. */
export const channelOf = (channel: YT.Channel, about: YTNodes.AboutChannelView | null | undefined): Video.Records.Channel | undefined => {
  const { avatar, description, external_id: id, title, vanity_channel_url: address } = channel.metadata
  if (id === undefined || title === undefined) return undefined
  return {
    id,
    handle: /\/(@[^/]+)$/u.exec(decodeURIComponent(address ?? ""))?.[1] ?? null,
    url: `https://www.youtube.com/channel/${id}`,
    title,
    description: about?.description ?? description ?? "",
    country: SiteTexts.countryOf(about?.country),
    published_at: SiteTexts.dayOf(about?.joined_date?.text),
    thumbnail_url: Array.isArray(avatar) ? (avatar[0]?.url ?? null) : null,
    banner_url: bannerOf(channel),
    subscribers: SiteTexts.countOf(about?.subscriber_count),
    views: SiteTexts.countOf(about?.view_count),
    videos: SiteTexts.countOf(about?.video_count)
  }
}

type Comment = Video.Records.Comments["comments"][number]

/** Undefined where the site tells nothing of the comment. */
export const commentOf = ({ comment }: YTNodes.CommentThread): Comment | undefined => {
  if (comment?.content === undefined || comment.author === undefined) return undefined
  const { author, comment_id: id, content, like_count, reply_count } = comment
  return {
    ...{ id, text: content.text ?? "" },
    author: { name: author.name, channel_id: author.id ?? null, avatar_url: author.best_thumbnail?.url ?? null },
    likes: SiteTexts.countOf(like_count?.trim() === "" ? "0" : like_count) ?? 0,
    replies: SiteTexts.countOf(reply_count?.trim() === "" ? "0" : reply_count) ?? 0,
    ...{ published_at: null, updated_at: null }
  }
}
