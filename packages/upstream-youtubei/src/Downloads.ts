/** The direct links of a video, from one of the site's clients that still gets them. */
import { DownloadUnavailable, NotFound, type Operation, UpstreamUnavailable, type Video } from "@millrace/core"
import { Effect } from "effect"
import { type Innertube, type Misc, Player, type YT } from "youtubei.js"
import type { Client } from "./Options.ts"
import * as Playability from "./Playability.ts"
import type { Players } from "./Players.ts"
import { type Failure, invalidReply, type SiteClient, UPSTREAM } from "./SiteClient.ts"

/** Those of apps get links as they are. Links of other clients need the code of the site's player. */
const READY: ReadonlySet<Client> = new Set<Client>(["ANDROID_VR", "ANDROID", "IOS", "VISIONOS"])

/** The site tells pages of browsers no links any more. */
export const CLIENTS: ReadonlyArray<Client> = ["ANDROID_VR", "TV"]

type Format = Misc.Format

/** Only the site's own file servers. */
const isFile = (url: string | null): url is string => {
  const parsed = url === null ? null : URL.parse(url)
  return parsed?.protocol === "https:" && /(^|\.)googlevideo\.com$/u.test(parsed.hostname)
}

const expiryOf = (url: string): string | undefined => {
  const seconds = Number(new URL(url).searchParams.get("expire") ?? Number.NaN)
  return Number.isSafeInteger(seconds) && seconds > 0 && seconds < 1e11 ? new Date(seconds * 1_000).toISOString() : undefined
}

const numberOf = (value: number | undefined): number | null => (value === undefined || !Number.isFinite(value) ? null : Math.round(value))

const MIME = /^((?:video|audio)\/([\w.+-]+))(?:;\s*codecs="([^"]*)")?$/u

/** None for a link of another kind: text, encrypted, or without an expiry. */
const streamOf = (format: Format, url: string): ReadonlyArray<Video.Records.Stream> => {
  const mime = MIME.exec(format.mime_type)
  const expires_at = expiryOf(url)
  if (mime === null || expires_at === undefined || (format.drm_families?.length ?? 0) > 0) return []
  const [, mime_type = "", container = "", codecs = ""] = mime
  const kind = format.has_video ? (format.has_audio ? "video_and_audio" : "video") : "audio"
  const duration = numberOf(format.approx_duration_ms)
  return [
    {
      ...{ url, expires_at, kind, mime_type, container, codecs: codecs.split(",").flatMap((codec) => codec.trim() || []) },
      quality: format.quality_label ?? format.audio_quality?.replace("AUDIO_QUALITY_", "").toLowerCase() ?? null,
      ...{ width: numberOf(format.width), height: numberOf(format.height), fps: numberOf(format.fps) },
      ...{ bitrate: numberOf(format.bitrate), size: numberOf(format.content_length) },
      duration_seconds: duration === null ? null : Math.round(duration / 1_000),
      language: format.has_audio ? (format.language ?? null) : null
    }
  ]
}

const KINDS = { video_and_audio: 0, video: 1, audio: 2 } as const

const byUse = (a: Video.Records.Stream, b: Video.Records.Stream): number =>
  KINDS[a.kind] - KINDS[b.kind] || (b.height ?? 0) - (a.height ?? 0) || (b.bitrate ?? 0) - (a.bitrate ?? 0) || (a.url < b.url ? -1 : 1)

const refused = (verdict: Exclude<Playability.Verdict, "playable">) => {
  if (verdict === "gone") return new NotFound({ resource: "video" })
  if (verdict === "bot") return new UpstreamUnavailable({ upstream: UPSTREAM, reason: "it takes this host for a robot" })
  return new DownloadUnavailable({ reason: verdict })
}

type Told = { readonly told: Playability.Told } | { readonly info: YT.VideoInfo }

const ask = async (site: Innertube, id: string, client: Client): Promise<Told> => {
  try {
    return { info: await site.getBasicInfo(id, { client }) }
  } catch (cause) {
    const told = Playability.toldByError(cause)
    if (told === undefined) throw cause
    return { told }
  }
}

const formatsOf = ({ streaming_data: data }: YT.VideoInfo): ReadonlyArray<Format> => [
  ...(data?.formats ?? []),
  ...(data?.adaptive_formats ?? [])
]

const make = ({ use }: SiteClient, players: Players) => {
  /** The links of one client; none where the site gives it none. */
  const by = Effect.fnUntraced(function* (id: string, client: Client) {
    const player = READY.has(client) ? undefined : yield* players.current
    const { cache, data } = yield* use({ resource: "video" }, (site) => {
      if (player !== undefined) site.session.player = new Player(player.id, player.timestamp)
      return ask(site, id, client)
    })
    const verdict = Playability.verdictOf("told" in data ? data.told : Playability.toldOf(data.info.playability_status))
    if (verdict !== "playable" || "told" in data) return yield* refused(verdict === "playable" ? "gone" : verdict)
    const { basic_info: basic } = data.info
    if (basic.id !== id || basic.title === undefined) return yield* invalidReply("it answers for another video")
    if (basic.is_upcoming === true) return yield* refused("upcoming")
    if (basic.is_live === true || basic.is_post_live_dvr === true) return yield* refused("live")
    const formats = formatsOf(data.info).filter(({ cipher, signature_cipher, url }) => (url ?? signature_cipher ?? cipher) !== undefined)
    const locked = formats.map(({ cipher, signature_cipher, url }) => ({
      ...(url === undefined ? {} : { url }),
      ...(signature_cipher === undefined ? {} : { signature_cipher }),
      ...(cipher === undefined ? {} : { cipher })
    }))
    const urls = player === undefined || locked.length === 0 ? locked.map(({ url = null }) => url) : yield* players.unlock(player, locked)
    const streams = formats.flatMap((format, index) => {
      const url = urls[index] ?? null
      return isFile(url) ? streamOf(format, url) : []
    })
    const told: Pick<Video.Records.Download, "id" | "title" | "duration_seconds"> = {
      id,
      title: basic.title,
      duration_seconds: numberOf(basic.duration)
    }
    return { cache, told, streams: streams.toSorted(byUse) }
  })

  return by
}

/** Another client may get what this one did not. */
const isFinal = (failure: Failure | DownloadUnavailable): boolean => {
  if (failure._tag === "UpstreamUnavailable") return failure.retryAfter !== undefined
  return failure._tag !== "DownloadUnavailable" || (failure.reason !== "age_restricted" && failure.reason !== "unavailable")
}

/** Asks one client after another until one gets links. A reason that the site gave stands before the failure of a later client. */
export const download = (client: SiteClient, players: Players, clients: ReadonlyArray<Client>) => {
  const by = make(client, players)
  return (
    id: string
  ): Effect.Effect<Operation.Read<Video.Records.Download>, Exclude<Failure, { _tag: "InvalidInput" }> | DownloadUnavailable> =>
    Effect.gen(function* () {
      let failure: Failure | DownloadUnavailable | undefined
      for (const client of clients) {
        const found = yield* Effect.result(by(id, client))
        if (found._tag === "Failure") {
          if (failure?._tag !== "DownloadUnavailable") failure = found.failure
          if (isFinal(found.failure)) break
          continue
        }
        const { cache, streams, told } = found.success
        const [first, ...rest] = streams
        if (first === undefined) continue
        const expires_at = rest.reduce((least, stream) => (stream.expires_at < least ? stream.expires_at : least), first.expires_at)
        return { data: { ...told, expires_at, streams: [first, ...rest] }, cache }
      }
      const refusal = failure ?? new DownloadUnavailable({ reason: "unavailable" })
      return yield* refusal._tag === "InvalidInput" ? invalidReply("it refuses a page that was not asked for") : refusal
    })
}
