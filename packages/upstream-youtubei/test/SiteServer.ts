/**
 * A site that shows videos, as its pages and apps see it: small documents in InnerTube's shapes, as the parser classes of youtubei.js read them.
 * One channel, its videos, a playlist, comments, searches, players, and the site's refusals.
 */
import { type Answer, json, type Received } from "../../upstreams/test/shared/LocalService.ts"
import * as Documents from "./SiteDocuments.ts"
import { BASE_JS, PLAYER_ID } from "./SitePlayer.ts"

export * from "./SiteDocuments.ts"

/** What the site is asked, without the library's own context. */
interface Asked {
  readonly videoId?: string
  readonly browseId?: string
  readonly continuation?: string
  readonly query?: string
  readonly params?: string
  readonly url?: string
  readonly context?: { readonly client?: { readonly clientName?: string } }
}

const invalid = json({ error: { code: 400, message: "Request contains an invalid argument.", status: "INVALID_ARGUMENT" } }, 400)
const unknown = json({ error: { code: 404, message: "Requested entity was not found.", status: "NOT_FOUND" } }, 404)

const script =
  (text: string): Answer =>
  (response) =>
    response.writeHead(200, { "content-type": "text/javascript" }).end(text)

const found = (document: object | undefined): Answer => (document === undefined ? unknown : json(document))

const browse = ({ browseId = "", continuation }: Asked): Answer => {
  if (continuation !== undefined) {
    const page = Documents.continued(continuation)
    return page === undefined ? invalid : json(page)
  }
  return browseId.startsWith("VL") ? found(Documents.playlist(browseId.slice(2))) : found(Documents.channel(browseId))
}

const next = ({ continuation, videoId = "" }: Asked): Answer => {
  if (continuation === undefined) return json(Documents.watchNext(videoId))
  const page = Documents.comments(continuation)
  return page === undefined ? invalid : json(page)
}

/** The routes of the site, by path. `other` answers instead, where it does. */
export const answer =
  (other: (request: Received, asked: Asked) => Answer | undefined = () => undefined): Answer =>
  (response, request) => {
    const path = request.path.split("?")[0] ?? ""
    const asked: Asked = request.method === "POST" ? JSON.parse(request.body) : {}
    const replies: Readonly<Record<string, () => Answer>> = {
      "/youtubei/v1/player": () => json(Documents.player(asked.videoId ?? "", asked.context?.client?.clientName ?? "")),
      "/youtubei/v1/next": () => next(asked),
      "/youtubei/v1/browse": () => browse(asked),
      "/youtubei/v1/search": () => (asked.continuation === undefined ? json(Documents.search(asked.query ?? "")) : browse(asked)),
      "/youtubei/v1/navigation/resolve_url": () => found(Documents.resolved(asked.url ?? "")),
      "/iframe_api": () =>
        script(`var scriptUrl = 'https:\\/\\/www.youtube.com\\/s\\/player\\/${PLAYER_ID}\\/www-widgetapi.vflset\\/www-widgetapi.js';`),
      [`/s/player/${PLAYER_ID}/player_es6.vflset/en_US/base.js`]: () => script(BASE_JS)
    }
    const reply = other(request, asked) ?? replies[path]?.() ?? unknown
    reply(response, request)
  }
