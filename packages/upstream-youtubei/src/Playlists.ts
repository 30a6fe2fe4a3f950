/** What the site tells of a playlist itself, in the older head of its page or the newer one. */
import type { Video } from "@millrace/core"
import { Utils, type YT, YTNodes } from "youtubei.js"
import { Misread } from "./SiteClient.ts"
import * as SiteTexts from "./SiteTexts.ts"

/** The library throws the site's alert in place of a playlist. */
export const isGone = (cause: unknown): boolean =>
  cause instanceof Utils.InnertubeError && /does not exist|private|unviewable|unavailable|removed|terminated/iu.test(cause.message)

type About = Omit<Video.Records.Playlist, "videos" | "next_page_token">

/** `25 videos`, among the texts of the head. */
const countIn = (texts: ReadonlyArray<string | undefined>): number | null =>
  texts.flatMap((text) => (/\bvideos?\b/u.test(text ?? "") ? (SiteTexts.countOf(text) ?? []) : []))[0] ?? null

const newHeadOf = (playlist: YT.Playlist) => {
  const [head] = playlist.memo.getType(YTNodes.PageHeader)
  const parts = (head?.content?.metadata?.metadata_rows ?? []).flatMap(({ metadata_parts }) => metadata_parts ?? [])
  const owner = parts.flatMap(({ avatar_stack: stack }) => {
    const id: unknown = stack?.text?.endpoint?.payload?.browseId ?? stack?.renderer_context?.command_context?.on_tap?.payload?.browseId
    return typeof id === "string" ? [{ id, name: stack?.text?.text?.replace(/^by /u, "") }] : []
  })[0]
  return { texts: parts.map(({ text }) => text?.text), owner }
}

export const aboutOf = (id: string, playlist: YT.Playlist): About => {
  const { author, description, thumbnails, title, total_items } = playlist.info
  if (title === undefined) throw new Misread()
  const { owner, texts } = newHeadOf(playlist)
  const [header] = playlist.memo.getType(YTNodes.PlaylistHeader)
  const { id: channel_id, name: channel_title } = author ?? owner ?? {}
  return {
    ...{ id, url: `https://www.youtube.com/playlist?list=${id}`, title, description: description ?? "" },
    ...{ channel_id: channel_id ?? null, channel_title: channel_title ?? null, published_at: null },
    thumbnail_url: thumbnails?.[0]?.url ?? null,
    video_count: countIn([total_items, header?.num_videos.text, ...texts])
  }
}
