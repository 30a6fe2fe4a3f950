/**
 * Keeps pages of other sites from using a session (cross-site request forgery). Browsers say where a request comes from: in
 * `Sec-Fetch-Site`, and the older ones in `Origin`. What changes something also needs a token that only pages of this host can read.
 */
import { Token } from "@millrace/core"
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { CrossSiteRequest } from "../Refusal.ts"

type Request = HttpServerRequest.HttpServerRequest

export const HEADER = "x-csrf-token"

/** `none`: the user typed the address, or opened a bookmark. */
const OWN: ReadonlySet<string> = new Set(["same-origin", "none"])
const SAFE: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"])

type Where = "here" | "elsewhere" | "unknown"

const hostOf = ({ headers, source }: Request): string | undefined =>
  // A web request has its host in its address
  headers["host"] ?? ("url" in source ? URL.parse(String(source.url))?.host : undefined)

/** Where the page is that caused a request. Programs that are no browsers say nothing. */
const origin = (request: Request): Where => {
  const { origin, "sec-fetch-site": site } = request.headers
  if (site !== undefined) return OWN.has(site) ? "here" : "elsewhere"
  if (origin === undefined) return "unknown"
  return URL.parse(origin)?.host === hostOf(request) ? "here" : "elsewhere"
}

const REFUSED = Effect.fail(new CrossSiteRequest())

/** Refuses a request without a session, such as a sign-up, that a page of another site caused. */
export const check = (request: Request): Effect.Effect<void, CrossSiteRequest> => (origin(request) === "elsewhere" ? REFUSED : Effect.void)

/**
 * Refuses a request by a session that a page of another site may have caused. A request that reads needs the token only where nothing says
 * that it comes from here: it may cost credits. `isFree`: it costs none, and needs no token.
 */
export const checkSession = (request: Request, csrfToken: string, isFree: boolean): Effect.Effect<void, CrossSiteRequest> => {
  const where = origin(request)
  const hasToken = Token.isEqual(csrfToken, request.headers[HEADER] ?? "")
  const needsToken = !SAFE.has(request.method) || (where === "unknown" && !isFree)
  return where === "elsewhere" || (needsToken && !hasToken) ? REFUSED : Effect.void
}
