/** Serves a web page and the files that it loads, all of them known: no folder is read for a request. Takes nothing but the files. */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { CurrentExchange } from "./Exchange.ts"
import { problemOf, responseOf } from "./Problem.ts"
import { RouteNotFound } from "./Refusal.ts"
import * as Cookies from "./sessions/Cookies.ts"

/** A file in the forms in which it is sent. */
export interface WebFile {
  /** Below the page, such as `assets/main-3f5a7c9b.js`; empty for the page itself. A file other than the page has its hash in its name. */
  readonly path: string
  /** Its media type, with the charset of a text. */
  readonly type: string
  readonly bytes: Uint8Array
  readonly gzip: Uint8Array
  readonly brotli: Uint8Array
}

export interface Options {
  /** The path of the page: `/` by default. Its files are below it. */
  readonly path?: `/${string}`
}

/**
 * What the page may do: load its own files, call this server, and show what it got from there. Frames are those that the page writes
 * itself, which inherit this policy. Nothing inline runs, and nothing is asked of anyone else.
 */
export const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  "connect-src 'self'",
  "frame-src 'self' blob:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'"
].join("; ")

/** Of the page: the page is asked for again with each visit, since it names the files of its version. */
const OF_THE_PAGE = {
  "cache-control": "private, no-cache",
  "content-security-policy": POLICY,
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()"
}
/** Of a file with its hash in its name: it never changes. */
const OF_A_FILE = { "cache-control": "public, max-age=31536000, immutable", "cross-origin-resource-policy": "same-origin" }

/**
 * The routes of the page. `files`: run for the first request, and again for the next one where it fails. The page must not be at a path of
 * the API.
 */
export const layer = <E>(
  files: Effect.Effect<ReadonlyArray<WebFile>, E>,
  { path = "/" }: Options = {}
): Layer.Layer<never, never, HttpRouter.HttpRouter> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const router = yield* HttpRouter.HttpRouter
      const loaded = yield* cachedSuccess(Effect.map(files, (all) => new Map(all.map((file) => [file.path, file]))))
      const base = path === "/" ? "" : path
      const respond = (route: string, name: (request: HttpServerRequest.HttpServerRequest) => string) =>
        Effect.gen(function* () {
          const exchange = yield* CurrentExchange
          exchange.route = route
          const request = yield* HttpServerRequest.HttpServerRequest
          const file = (yield* Effect.orDie(loaded)).get(name(request))
          if (file === undefined) return responseOf(problemOf(new RouteNotFound()), exchange.id)
          return answer(request, file, base)
        })
      const nameOf = ({ url }: HttpServerRequest.HttpServerRequest) => (url.split(/[?#]/u, 1)[0] ?? "").slice(base.length + 1)
      yield* router.addAll([
        HttpRouter.route(
          "GET",
          path,
          respond(path, () => "")
        ),
        HttpRouter.route("GET", `${base}/assets/:file`, respond(`${base}/assets/:file`, nameOf))
      ])
    })
  )

/** Runs an effect until it has succeeded once. */
const cachedSuccess = Effect.fnUntraced(function* <A, E>(effect: Effect.Effect<A, E>) {
  const [cached, forget] = yield* Effect.cachedInvalidateWithTTL(Effect.uninterruptible(effect), "365 days")
  return Effect.tapError(cached, () => forget)
})

const answer = (request: HttpServerRequest.HttpServerRequest, file: WebFile, base: string): HttpServerResponse.HttpServerResponse => {
  const { bytes, encoding } = encoded(file, request.headers["accept-encoding"] ?? "")
  const isPage = file.path === ""
  const shared = { vary: "accept-encoding", ...(isPage ? OF_THE_PAGE : OF_A_FILE) }
  if (isPage) {
    const html = Buffer.from(file.bytes).toString().replaceAll(BASE, base)
    const session = Cookies.sessionOf(request) === undefined ? "none" : "sent"
    return HttpServerResponse.text(html.replaceAll(SESSION, session), { contentType: file.type, headers: shared })
  }
  return HttpServerResponse.uint8Array(bytes, {
    contentType: file.type,
    headers: { ...shared, ...(encoding === undefined ? {} : { "content-encoding": encoding }) }
  })
}

/** What stands in the page for the path at which it is mounted: only this place knows it, and the page names its files by it. */
export const BASE = "{{base}}"

/** What stands in the page for whether its request had the cookie of a session, which a page cannot see: `sent` or `none`. */
export const SESSION = "{{session}}"

/** The smallest form that a client takes. RFC 9110, section 12.5.3; a coding of weight 0 is refused. */
const encoded = ({ bytes, brotli, gzip }: WebFile, accepted: string): { readonly bytes: Uint8Array; readonly encoding?: "br" | "gzip" } => {
  const codings = new Set(
    accepted
      .toLowerCase()
      .split(",")
      .flatMap((item) => {
        const [name = "", ...parameters] = item.split(";").map((part) => part.trim())
        return parameters.some((parameter) => /^q=0(?:\.0*)?$/u.test(parameter)) ? [] : [name]
      })
  )
  if (codings.has("br")) return { bytes: brotli, encoding: "br" }
  if (codings.has("gzip")) return { bytes: gzip, encoding: "gzip" }
  return { bytes }
}
