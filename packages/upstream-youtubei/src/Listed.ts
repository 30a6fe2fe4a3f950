/** Videos in the site's lists: its several shapes of them, as youtubei.js parses them, and what they become. */
import type { Video } from "@millrace/core"
import { type Helpers, YTNodes } from "youtubei.js"
import * as SiteTexts from "./SiteTexts.ts"

export interface Listed {
  readonly video: Video.Records.VideoSummary
  /** Milliseconds since it was published, at least; null where the site does not tell. */
  readonly age: number | null
}

interface Told {
  readonly id: string
  readonly title: string | undefined
  readonly description?: string | null
  readonly channel: { readonly id?: string | undefined; readonly name?: string | undefined }
  readonly thumbnails: ReadonlyArray<{ readonly url: string; readonly width: number }>
  readonly duration: number | null
  readonly live: Video.Records.VideoSummary["live"]
  /** Such as `1.2M views` and `3 years ago`, in any order. */
  readonly texts: ReadonlyArray<string>
}

const listedOf = ({ channel, description, duration, id, live, texts, thumbnails, title = "" }: Told): Listed => {
  const views = texts.find((text) => /\bview(s|ers?)?\b/u.test(text))
  return {
    video: {
      ...{ id, url: `https://www.youtube.com/watch?v=${id}`, title, description: description || null },
      ...{ channel_id: channel.id ?? null, channel_title: channel.name === "N/A" ? null : (channel.name ?? null) },
      published_at: null,
      thumbnail_url: thumbnails.toSorted((a, b) => b.width - a.width)[0]?.url ?? null,
      duration_seconds: live === "none" ? duration : null,
      // Of a live video it counts who watches it now
      views: live === "none" ? SiteTexts.countOf(views) : null,
      ...{ likes: null, comments: null, live }
    },
    age: texts.map(SiteTexts.ageOf).find((age) => age !== null) ?? null
  }
}

const liveOf = (item: { readonly is_live: boolean; readonly is_upcoming?: boolean | undefined }) =>
  item.is_live ? "live" : item.is_upcoming === true ? "upcoming" : "none"

const ofSearch = (item: YTNodes.Video): Listed =>
  listedOf({
    ...{ id: item.video_id, title: item.title.text, description: item.description, channel: item.author, thumbnails: item.thumbnails },
    // Whether it is still to come: the library compares it with the machine's clock
    live: item.is_live ? "live" : item.upcoming === undefined ? "none" : "upcoming",
    duration: SiteTexts.secondsOf(item.duration.text),
    texts: [item.view_count?.text ?? item.short_view_count?.text ?? "", item.published?.text ?? ""]
  })

const ofPlaylist = (item: YTNodes.PlaylistVideo): ReadonlyArray<Listed> =>
  // Deleted and private videos
  item.is_playable
    ? [
        listedOf({
          ...{ id: item.id, title: item.title.text, channel: item.author, thumbnails: item.thumbnails, live: liveOf(item) },
          duration: Number.isNaN(item.duration.seconds) ? null : item.duration.seconds,
          texts: (item.video_info.text ?? "").split(" • ")
        })
      ]
    : []

const badgesOf = (image: YTNodes.LockupView["content_image"]): ReadonlyArray<string> =>
  image?.is(YTNodes.ThumbnailView) !== true
    ? []
    : image.overlays.flatMap((overlay) =>
        overlay.is(YTNodes.ThumbnailOverlayBadgeView, YTNodes.ThumbnailBottomOverlayView)
          ? overlay.badges.map(({ text }) => text ?? "")
          : []
      )

const ofLockup = (item: YTNodes.LockupView): ReadonlyArray<Listed> => {
  if (item.content_type !== "VIDEO" || item.metadata === null) return []
  const { metadata, title } = item.metadata
  const parts = (metadata?.metadata_rows ?? []).flatMap(({ metadata_parts }) => metadata_parts ?? []).flatMap(({ text }) => text ?? [])
  const channel = parts.flatMap((text) => {
    const id = (text.endpoint ?? text.runs?.flatMap((run) => ("endpoint" in run && run.endpoint) || [])[0])?.payload?.browseId
    return typeof id === "string" && id.startsWith("UC") ? [{ id, name: text.text }] : []
  })[0]
  const badges = badgesOf(item.content_image)
  const image = item.content_image
  return [
    listedOf({
      ...{ id: item.content_id, title: title.text, channel: channel ?? {} },
      thumbnails: image?.is(YTNodes.ThumbnailView) === true ? image.image : [],
      duration: badges.map(SiteTexts.secondsOf).find((seconds) => seconds !== null) ?? null,
      live: badges.includes("LIVE") ? "live" : badges.includes("UPCOMING") ? "upcoming" : "none",
      texts: parts.map(({ text = "" }) => text)
    })
  ]
}

/** The videos of a page, in its order. What is no video is left out. */
export const of = (items: ReadonlyArray<Helpers.YTNode>): ReadonlyArray<Listed> =>
  items.flatMap((item) => {
    if (item.is(YTNodes.Video)) return [ofSearch(item)]
    if (item.is(YTNodes.PlaylistVideo)) return ofPlaylist(item)
    return item.is(YTNodes.LockupView) ? ofLockup(item) : []
  })
