/**
 * `VideoSite` on youtubei.js, which speaks to the site as its own pages and apps do: no key is needed, and downloads have links. What it does may
 * stop without notice, as the site promises nothing to such clients. What the site does not tell there is null.
 */
import { InvalidInput, NotFound, type Operation, UpstreamUnavailable, Video } from "@millrace/core"
import { Effect, Layer } from "effect"
import { type Helpers, Utils, type YT, YTNodes } from "youtubei.js"
import * as Details from "./Details.ts"
import * as Downloads from "./Downloads.ts"
import * as Listed from "./Listed.ts"
import type { Options } from "./Options.ts"
import * as Pages from "./Pages.ts"
import * as PageTokens from "./PageTokens.ts"
import * as Playability from "./Playability.ts"
import * as Players from "./Players.ts"
import * as Playlists from "./Playlists.ts"
import * as SiteClient from "./SiteClient.ts"

export type { Client, Options } from "./Options.ts"

const CHANNEL_ID = /^UC[\w-]{22}$/u

type Read<A> = Operation.Read<A>
type Nodes = PageTokens.Slice<Helpers.YTNode>

const together = (...reads: ReadonlyArray<Pick<Read<unknown>, "cache">>): Operation.CacheResult =>
  reads.every(({ cache }) => cache === "hit") ? "hit" : "miss"

/** A request without a page cannot have a wrong one. */
const unpaged = <A>(effect: Effect.Effect<A, SiteClient.Failure>): Effect.Effect<A, NotFound | UpstreamUnavailable> =>
  Effect.catchTag(effect, "InvalidInput", () => Effect.fail(SiteClient.invalidReply("it refuses a page that was not asked for")))

const robot = () => new UpstreamUnavailable({ upstream: SiteClient.UPSTREAM, reason: "it takes this host for a robot" })

const video = ({ use }: SiteClient.SiteClient) => {
  const gone = new NotFound({ resource: "video" })
  return (id: string) =>
    Effect.gen(function* () {
      const { cache, data } = yield* use(gone, async (site) => {
        try {
          const info = await site.getInfo(id)
          return { data: Details.videoOf(info), told: Playability.toldOf(info.playability_status) }
        } catch (cause) {
          const told = Playability.toldByError(cause)
          if (told === undefined) throw cause
          return { data: undefined, told }
        }
      })
      if (data.data !== undefined) return { data: data.data, cache }
      return yield* Playability.verdictOf(data.told) === "bot" ? robot() : gone
    })
}

/** Channels by id or handle, and the playlists of their uploads. */
const channels = ({ use }: SiteClient.SiteClient) => {
  const gone = new NotFound({ resource: "channel" })

  const idOf = (name: string): Effect.Effect<Read<string>, SiteClient.Failure> => {
    if (CHANNEL_ID.test(name)) return Effect.succeed({ data: name, cache: "hit" })
    const handle = encodeURIComponent(name.startsWith("@") ? name.slice(1) : name)
    return use(gone, async (site) => {
      const { payload } = await site.resolveURL(`https://www.youtube.com/@${handle}`)
      if (!CHANNEL_ID.test(payload?.browseId)) throw gone
      return String(payload.browseId)
    })
  }

  const open = Effect.fnUntraced(function* <A>(name: string, read: (channel: YT.Channel) => A | Promise<A>) {
    const id = yield* idOf(name)
    const found = yield* use(gone, async (site) => {
      const channel = await site.getChannel(id.data).catch((cause) => {
        // The site's own words for a channel that was closed
        throw cause instanceof Utils.ChannelError ? gone : cause
      })
      if (channel.metadata.external_id !== id.data) throw new SiteClient.Misread()
      return await read(channel)
    })
    return { data: found.data, cache: together(id, found) }
  })

  /** The box about the channel, which is a request of its own. */
  const aboutOf = async (channel: YT.Channel) => {
    const more = channel.page.header_memo?.getType(YTNodes.ContinuationItem)[0]
    if (more === undefined) return undefined
    const reply = await more.endpoint.call(channel.actions, { parse: true })
    return reply.on_response_received_endpoints_memo?.getType(YTNodes.AboutChannel)[0]?.metadata
  }

  return { open, aboutOf }
}

/** A page of a list: the site's first page is given, the others are read by their continuations. */
const paged = ({ use }: SiteClient.SiteClient) =>
  Effect.fnUntraced(function* <A>(
    list: PageTokens.List,
    { page_token, per_page }: Video.Page,
    source: {
      readonly resource: string
      readonly path: "/browse" | "/search" | "/next"
      readonly first: Effect.Effect<Read<Nodes>, SiteClient.Failure>
      readonly itemsOf: (nodes: ReadonlyArray<Helpers.YTNode>) => ReadonlyArray<A>
    }
  ) {
    const place = yield* PageTokens.placeOf(list, page_token)
    const caches: Array<Pick<Read<unknown>, "cache">> = []
    const load = (continuation: string | undefined) => {
      const reading =
        continuation === undefined
          ? source.first
          : use({ resource: source.resource, page: true }, (site) => Pages.next(site, source.path, continuation))
      return Effect.map(reading, ({ cache, data }): PageTokens.Slice<A> => {
        caches.push({ cache })
        return { items: source.itemsOf(data.items), continuation: data.continuation }
      })
    }
    const { items, next_page_token } = yield* PageTokens.read(list, place, per_page, load)
    return { data: { items, next_page_token }, cache: together(...caches) }
  })

const ORDERS = { relevance: "relevance", views: "popularity" } as const

/** The orders that the site has left to its pages. */
const orderOf = (order: Video.Search["order"]) =>
  order === "relevance" || order === "views"
    ? Effect.succeed(ORDERS[order])
    : Effect.fail(new InvalidInput({ field: "order", message: "the provider of this host sorts by relevance or views only" }))

const searches = (client: SiteClient.SiteClient) =>
  Effect.fnUntraced(function* ({ order, q, ...page }: Video.Search) {
    const prioritize = yield* orderOf(order)
    let total: number | null = null
    const first = client.use({ resource: "video" }, async (site) => {
      const search = await site.search(q, { type: "video", prioritize })
      total = search.estimated_results || (Listed.of(search.results).length === 0 ? 0 : null)
      return Pages.ofSearch(search)
    })
    const found = yield* paged(client)(["search", q, order], page, { resource: "video", path: "/search", first, itemsOf: Listed.of })
    const { items, next_page_token } = found.data
    return { data: { total_results: total, videos: items.map(({ video }) => video), next_page_token }, cache: found.cache }
  })

const playlists = (client: SiteClient.SiteClient) => {
  const gone = new NotFound({ resource: "playlist" })
  const { open } = channels(client)

  /** The playlist, and its first videos. */
  const read = (id: string) =>
    client.use(gone, async (site) => {
      const playlist = await site.getPlaylist(id).catch((cause) => {
        throw Playlists.isGone(cause) ? gone : cause
      })
      return { about: Playlists.aboutOf(id, playlist), slice: Pages.ofPlaylist(playlist) }
    })
  const source = { resource: gone.resource, path: "/browse", itemsOf: Listed.of } as const

  const playlist = Effect.fnUntraced(function* (id: string, page: Video.Page) {
    const head = yield* read(id)
    const first = Effect.succeed({ data: head.data.slice, cache: head.cache })
    const { cache, data } = yield* paged(client)(["playlist", id], page, { ...source, first })
    const videos = data.items.map(({ video }) => video)
    return { data: { ...head.data.about, videos, next_page_token: data.next_page_token }, cache: together(head, { cache }) }
  })

  /** A channel without uploads has no playlist of them. */
  const uploads = Effect.fnUntraced(function* (name: string, page: Video.Page) {
    const owner = yield* open(name, ({ metadata }) => ({ id: metadata.external_id ?? "", title: metadata.title ?? "" }))
    const { id, title } = owner.data
    const first = Effect.map(read(`UU${id.slice(2)}`), ({ cache, data }) => ({ data: data.slice, cache })).pipe(
      Effect.catchTag("NotFound", () => Effect.succeed({ data: { items: [], continuation: undefined }, cache: "miss" as const }))
    )
    const { cache, data } = yield* paged(client)(["uploads", id], page, { ...source, first })
    const videos = data.items.map(({ video }) => ({ ...video, channel_id: id, channel_title: title }))
    const ages = new Map(data.items.flatMap(({ age, video }) => (age === null ? [] : [[video.id, age] as const])))
    const { next_page_token } = data
    return { data: { channel_id: id, channel_title: title, videos, next_page_token, ages }, cache: together(owner, { cache }) }
  })

  return { playlist, uploads }
}

const COMMENT_ORDERS = { relevance: "TOP_COMMENTS", time: "NEWEST_FIRST" } as const

const comments = (client: SiteClient.SiteClient) => {
  const gone = new NotFound({ resource: "video with comments" })
  const itemsOf = (nodes: ReadonlyArray<Helpers.YTNode>) => {
    const threads = nodes.filter((node) => node.is(YTNodes.CommentThread))
    const told = threads.flatMap((thread) => Details.commentOf(thread) ?? [])
    return { threads: threads.length, told }
  }
  return Effect.fnUntraced(function* (id: string, { order, ...page }: Parameters<Video.VideoSite["Service"]["comments"]>[1]) {
    const first = client.use(gone, async (site) => {
      const { page } = await site.getComments(id, COMMENT_ORDERS[order])
      const nodes = Pages.added(page.on_response_received_endpoints) ?? []
      // Without a header there is only a sentence: comments are turned off
      if (!nodes.some((node) => node.is(YTNodes.CommentsHeader))) throw gone
      const slice = Pages.ofAdded(nodes)
      const { threads, told } = itemsOf(slice.items)
      if (threads > told.length) throw new SiteClient.Misread()
      return slice
    })
    const source = { resource: gone.resource, path: "/next", first, itemsOf: (nodes: Nodes["items"]) => itemsOf(nodes).told } as const
    const { cache, data } = yield* paged(client)(["comments", id, order], page, source)
    return { data: { video_id: id, comments: data.items, next_page_token: data.next_page_token }, cache }
  })
}

/** A reply may have 4 MiB and 10 seconds by default. Downloads may start a worker thread, which ends after a minute without one. */
export const layer = ({ downloadClients = Downloads.CLIENTS, ...options }: Options = {}): Layer.Layer<Video.VideoSite> =>
  Layer.effect(
    Video.VideoSite,
    Effect.gen(function* () {
      const client = yield* SiteClient.make(options)
      const players = yield* Players.make(client.base, client.reader)
      const { aboutOf, open } = channels(client)
      const { playlist, uploads } = playlists(client)
      const read = { video: video(client), search: searches(client), comments: comments(client) }
      const download = Downloads.download(client, players, downloadClients)
      return Video.VideoSite.of({
        configured: Effect.void,
        downloads: Effect.void,
        video: Effect.fn("YoutubeiVideoSite.video")((id) => unpaged(read.video(id))),
        channel: Effect.fn("YoutubeiVideoSite.channel")(function* (name) {
          const { cache, data } = yield* unpaged(open(name, async (channel) => Details.channelOf(channel, await aboutOf(channel))))
          return data === undefined ? yield* SiteClient.invalidReply("it does not tell the channel") : { data, cache }
        }),
        channelVideos: Effect.fn("YoutubeiVideoSite.channelVideos")(uploads),
        search: Effect.fn("YoutubeiVideoSite.search")(read.search),
        playlist: Effect.fn("YoutubeiVideoSite.playlist")(playlist),
        comments: Effect.fn("YoutubeiVideoSite.comments")(read.comments),
        download: Effect.fn("YoutubeiVideoSite.download")(download)
      })
    })
  )
