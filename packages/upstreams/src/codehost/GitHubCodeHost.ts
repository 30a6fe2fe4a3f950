/**
 * `CodeHost` on GitHub's REST API (https://docs.github.com/rest), public or GitHub Enterprise Server. No token is needed; one raises the
 * limits. What only the token could see is never returned.
 */
import { CodeHost, InvalidInput, NotFound, type Operation } from "@millrace/core"
import { Effect, Layer, Redacted } from "effect"
import type { Reply } from "../shared/ByteService.ts"
import * as JsonService from "../shared/JsonService.ts"
import * as PublicReader from "../shared/PublicReader.ts"
import * as RetryAfter from "../shared/RetryAfter.ts"
import * as Shapes from "./GitHubShapes.ts"

export interface Options extends PublicReader.ReadLimits {
  /** `https://api.github.com` by default; of an Enterprise Server such as `https://github.example.com/api/v3`. */
  readonly baseUrl?: URL
  readonly token?: Redacted.Redacted
}

const HEADERS = { accept: "application/vnd.github+json", "x-github-api-version": "2022-11-28" }

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/**
 * The primary limit says when it is over; a secondary one says for how long, or the documentation says that it is a minute at least
 * (https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api).
 */
const limitedFor = ({ bytes, headers, status }: Reply, now: number): number | undefined => {
  if (status !== 403 && status !== 429) return undefined
  const asked = RetryAfter.millisOf(headers["retry-after"], now)
  if (asked !== undefined) return asked
  if (headers["x-ratelimit-remaining"] === "0") {
    const reset = Number(headers["x-ratelimit-reset"]) * 1_000 - now
    return reset > 0 ? Math.min(reset, HOUR) : MINUTE
  }
  return status === 429 || /rate limit/iu.test(new TextDecoder().decode(bytes)) ? MINUTE : undefined
}

/** Pages are linked as RFC 8288 says. */
const hasNext = (headers: Reply["headers"]): boolean => /;\s*rel="next"/u.test(headers["link"] ?? "")

const isPublic = (repository: { readonly private: boolean; readonly visibility: string | null }): boolean =>
  !repository.private && (repository.visibility ?? "public") === "public"

const repositoryOf = ({ license, private: _, visibility: __, ...rest }: typeof Shapes.Repository.Type): CodeHost.Repository => ({
  ...rest,
  license: license?.spdx_id ?? null
})

const detailOf = ({ parent, subscribers_count, ...rest }: typeof Shapes.RepositoryDetail.Type): CodeHost.RepositoryDetail => ({
  ...repositoryOf(rest),
  subscribers_count,
  parent: parent === null || !isPublic(parent) ? null : { full_name: parent.full_name, html_url: parent.html_url }
})

const refusedQuery = ({ status }: Reply) =>
  status === 422 ? new InvalidInput({ field: "q", message: "the platform refuses this query: look at its qualifiers" }) : undefined

const read = <A, B>({ cache, data }: Operation.Read<A>, to: (data: A) => B): Operation.Read<B> => ({ data: to(data), cache })

/** A reply may have 4 MiB and 10 seconds by default. */
export const layer = ({ baseUrl = new URL("https://api.github.com"), token, ...limits }: Options = {}): Layer.Layer<CodeHost.CodeHost> =>
  Layer.effect(
    CodeHost.CodeHost,
    Effect.gen(function* () {
      const { json } = yield* PublicReader.make({
        ...limits,
        upstream: "code hosting",
        base: baseUrl,
        limitedFor,
        ...(token === undefined ? {} : { credentials: { authorization: `Bearer ${Redacted.value(token)}` } })
      })
      const readUser = json(Shapes.User, "user")
      const readRepository = json(Shapes.RepositoryDetail, "repository")
      const readEvents = json(Shapes.Events, "user")
      const search = json(Shapes.RepositorySearch, "repository", refusedQuery)
      const at = (path: ReadonlyArray<string>, query: Readonly<Record<string, string>> = {}, bucket = "core"): PublicReader.Request => {
        const url = JsonService.below(baseUrl, path.map(encodeURIComponent).join("/"))
        for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
        return { url, headers: HEADERS, bucket }
      }
      return {
        configured: Effect.void,
        user: Effect.fn("GitHubCodeHost.user")(function* (username) {
          return read(yield* readUser(at(["users", username])), (user) => user)
        }),
        repository: Effect.fn("GitHubCodeHost.repository")(function* (owner, repo) {
          const found = yield* readRepository(at(["repos", owner, repo]))
          return isPublic(found.data) ? read(found, detailOf) : yield* new NotFound({ resource: "repository" })
        }),
        search: Effect.fn("GitHubCodeHost.search")(function* ({ order, page, per_page, q, sort }) {
          const sorted: Record<string, string> = sort === undefined ? {} : { sort, order }
          // Of several qualifiers all must hold, so a caller's own `is:private` finds nothing. It comes first: a quote that does not end would
          // take it in
          const query = { q: `is:public ${q}`, ...sorted, page: String(page), per_page: String(per_page) }
          return read(yield* search(at(["search", "repositories"], query, "search")), ({ items, total_count, ...counts }) => {
            const open = items.filter(isPublic)
            return { ...counts, total_count: total_count - (items.length - open.length), items: open.map(repositoryOf) }
          })
        }),
        activity: Effect.fn("GitHubCodeHost.activity")(function* (username, { page, per_page }) {
          const query = { page: String(page), per_page: String(per_page) }
          const found = yield* readEvents(at(["users", username, "events", "public"], query))
          return read(found, (events) => ({ events, next_page: hasNext(found.headers) ? page + 1 : null }))
        })
      }
    })
  )
