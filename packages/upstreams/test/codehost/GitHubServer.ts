/**
 * A server that speaks GitHub's REST API: it replays the recordings of `@octokit/fixtures` and what else the API's own types allow, with
 * conditional requests, pages and limits.
 */
import { createHash } from "node:crypto"
import recorded from "@octokit/fixtures/scenarios/api.github.com/get-repository/normalized-fixture.json" with { type: "json" }
import moved from "@octokit/fixtures/scenarios/api.github.com/rename-repository/normalized-fixture.json" with { type: "json" }
import type { components } from "@octokit/openapi-types"
import type { Answer, Received } from "../shared/LocalService.ts"

type Schemas = components["schemas"]

const API = "https://api.github.com"

/** The recorded repository. */
export const repository = recorded[0]?.response as unknown as Schemas["full-repository"]

const owner = repository.owner

export const user: Schemas["public-user"] = {
  ...owner,
  ...{ login: "octocat", id: 583231, type: "User", gravatar_id: "", html_url: "https://github.com/octocat" },
  ...{
    name: "The Octocat",
    company: "@github",
    blog: "https://github.blog",
    location: "San Francisco",
    email: null,
    hireable: null,
    bio: null
  },
  ...{ public_repos: 8, public_gists: 8, followers: 3938, following: 9 },
  ...{ created_at: "2011-01-25T18:44:36Z", updated_at: "2024-01-22T12:00:00Z" }
}

/** What only the token's owner can see. */
export const secret: Schemas["full-repository"] = {
  ...repository,
  name: "secret",
  full_name: "octocat/secret",
  private: true,
  visibility: "private"
}
export const internal: Schemas["full-repository"] = {
  ...secret,
  name: "internal",
  full_name: "octocat/internal",
  private: false,
  visibility: "internal"
}

const found = (repository: Schemas["full-repository"]): Schemas["repo-search-result-item"] =>
  ({ ...repository, score: 1 }) as Schemas["repo-search-result-item"]

const actor = { id: Number(user.id), login: user.login, gravatar_id: "", url: user.url, avatar_url: user.avatar_url }
const at = { id: Number(repository.id), name: repository.full_name, url: repository.url }

/** An event as the API sends it: a payload has many more fields than are read. */
const event = (type: string, payload: object, id = "1"): Schemas["event"] => ({
  ...{ id, type, actor, repo: at, public: true, created_at: "2026-01-22T12:00:00Z" },
  payload: payload as Schemas["event"]["payload"]
})

const issue = { id: 1, number: 7, title: "A title", state: "open", html_url: "https://github.com/a/b/issues/7", user: actor }
const comment = { id: 9, body: "A comment", html_url: "https://github.com/a/b/issues/7#9", user: actor }

/** One of each type. */
export const events: ReadonlyArray<Schemas["event"]> = [
  event("PushEvent", {
    ...{ repository_id: 1, push_id: 2, size: 1, ref: "refs/heads/main", head: "a1", before: "b2" },
    commits: [{ sha: "a1", message: "Fix it", author: { name: "A person", email: "person@example.com" }, distinct: true }]
  }),
  event("PushEvent", { repository_id: 1, push_id: 2, ref: "refs/heads/main", head: "a1", before: "b2" }),
  event("CreateEvent", { ref: null, ref_type: "repository", master_branch: "main", description: null, pusher_type: "user" }),
  event("DeleteEvent", { ref: "old", ref_type: "branch", pusher_type: "user" }),
  event("ForkEvent", { action: "forked", forkee: repository }),
  event("GollumEvent", {
    pages: [{ page_name: "Home", title: "Home", action: "edited", sha: "a", html_url: "https://github.com/a/b/wiki" }]
  }),
  event("IssuesEvent", { action: "opened", issue }),
  event("IssueCommentEvent", { action: "created", issue, comment }),
  event("CommitCommentEvent", { action: "created", comment: { ...comment, commit_id: "a1" } }),
  event("MemberEvent", { action: "added", member: actor }),
  event("PublicEvent", {}),
  event("PullRequestEvent", { action: "opened", number: 7, pull_request: { id: 1, number: 7, url: "https://api.github.com/pulls/7" } }),
  event("PullRequestReviewEvent", {
    action: "created",
    pull_request: issue,
    review: { id: 3, state: "approved", body: null, user: actor }
  }),
  event("PullRequestReviewCommentEvent", { action: "created", pull_request: issue, comment }),
  event("ReleaseEvent", { action: "published", release: { tag_name: "v1", name: null, prerelease: false, draft: false } }),
  event("WatchEvent", { action: "started" }),
  event("DiscussionEvent", { action: "created", discussion: { number: 3, labels: [{ name: "idea" }] } })
]

const NOT_FOUND = { message: "Not Found", documentation_url: "https://docs.github.com/rest", status: "404" }

interface Reply {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

const ok = (body: unknown, headers: Readonly<Record<string, string>> = {}): Reply => ({ status: 200, body, headers })

/** A recorded exchange. */
const replayed = (path: string): Reply | undefined => {
  const one = [...recorded, ...moved].find((exchange) => exchange.method === "get" && exchange.path === path)
  if (one === undefined) return undefined
  const { location } = one.headers as { readonly location?: string }
  return { status: one.status, body: one.response, ...(location === undefined ? {} : { headers: { location } }) }
}

const answerTo = ({ headers, path }: Received): Reply => {
  const url = new URL(path, API)
  const isOwner = headers.authorization === `Bearer ${TOKEN}`
  switch (url.pathname) {
    case "/users/octocat":
      // The owner of the token is shown more of himself
      return ok(isOwner ? { ...user, private_gists: 81, total_private_repos: 100, two_factor_authentication: true } : user)
    case "/users/octocat/events/public": {
      const [page, size] = [Number(url.searchParams.get("page")), Number(url.searchParams.get("per_page"))]
      const last = Math.ceil(events.length / size)
      const to = (page: number, rel: string) => `<${API}/user/583231/events/public?page=${page}>; rel="${rel}"`
      const link = page < last ? { link: [to(page + 1, "next"), to(last, "last")].join(", ") } : { link: to(1, "first") }
      return ok(events.slice((page - 1) * size, page * size), link)
    }
    case "/search/repositories": {
      const q = url.searchParams.get("q") ?? ""
      if (q.includes("user:nobody"))
        return { status: 422, body: { message: "Validation Failed", errors: [{ resource: "Search", field: "q" }] } }
      const items = [repository, ...(isOwner ? [secret, internal] : [])].map(found)
      return ok({ total_count: q.includes("many") ? 5_000 : items.length, incomplete_results: false, items })
    }
    case "/repos/octocat/secret":
      return isOwner ? ok(secret) : { status: 404, body: NOT_FOUND }
    case "/repos/octocat/internal":
      return isOwner ? ok(internal) : { status: 404, body: NOT_FOUND }
    case "/repos/octocat/fork":
      return ok({ ...repository, fork: true, parent: secret })
    case "/repos/octocat/taken-down":
      return { status: 451, body: { message: "Repository access blocked" } }
    default:
      return replayed(url.pathname) ?? { status: 404, body: NOT_FOUND }
  }
}

export const TOKEN = "ghp_owner"

/** Answers each request, with `Cache-Control` and an `ETag`; one that the client has already, with 304. `before` may answer otherwise. */
export const answer =
  (before: (request: Received) => Reply | undefined = () => undefined): Answer =>
  (response, request) => {
    const { body, headers = {}, status } = before(request) ?? answerTo(request)
    // Links and redirects lead to this server
    const local = (text: string) => text.replaceAll(API, `http://${request.headers.host}`)
    const text = local(JSON.stringify(body))
    const etag = `"${createHash("sha256").update(text).digest("hex")}"`
    const sent = {
      "content-type": "application/json; charset=utf-8",
      ...(status === 200 ? { etag, "cache-control": "private, max-age=60, s-maxage=60", vary: "Accept, Authorization, Cookie" } : {}),
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, local(value)]))
    }
    if (status === 200 && request.headers["if-none-match"] === etag) response.writeHead(304, sent).end()
    else response.writeHead(status, sent).end(text)
  }
