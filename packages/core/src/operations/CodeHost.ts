/**
 * Public data of a platform that hosts code: users, repositories, and what users did. The names of the fields are those of GitHub's REST
 * API, which developers know. Private repositories are never returned.
 */
import { Context, Effect, Layer, Schema } from "effect"
import * as Operation from "../work/Operation.ts"
import { InvalidInput, type NotFound, UpstreamNotConfigured, type UpstreamUnavailable } from "../work/OperationError.ts"
import { PER_PAGE } from "./CommonLimits.ts"
import * as Activity from "./codehost/Activity.ts"

export { Activity }

const Text = Schema.NullOr(Schema.String)

export const User = Schema.Struct({
  login: Schema.String,
  id: Schema.Int,
  /** Such as `User`, `Organization` or `Bot`. */
  type: Schema.String,
  name: Text,
  bio: Text,
  company: Text,
  location: Text,
  /** The user's own website. */
  blog: Text,
  /** The address that the user shows to everybody. */
  email: Text,
  twitter_username: Text,
  avatar_url: Text,
  html_url: Schema.String,
  public_repos: Schema.Int,
  public_gists: Schema.Int,
  followers: Schema.Int,
  following: Schema.Int,
  created_at: Schema.String,
  updated_at: Schema.String
})
export type User = typeof User.Type

export const Owner = Schema.Struct({ login: Schema.String, type: Text, avatar_url: Text, html_url: Text })

export const Repository = Schema.Struct({
  id: Schema.Int,
  name: Schema.String,
  /** `owner/name`. */
  full_name: Schema.String,
  owner: Owner,
  html_url: Schema.String,
  clone_url: Text,
  description: Text,
  homepage: Text,
  /** The language that most of its code is in. */
  language: Text,
  topics: Schema.Array(Schema.String),
  /** SPDX identifier. */
  license: Text,
  default_branch: Schema.String,
  fork: Schema.Boolean,
  archived: Schema.Boolean,
  stargazers_count: Schema.Int,
  forks_count: Schema.Int,
  open_issues_count: Schema.Int,
  /** Kilobytes. */
  size: Schema.Int,
  created_at: Text,
  updated_at: Text,
  pushed_at: Text
})
export type Repository = typeof Repository.Type

export const RepositoryDetail = Schema.Struct({
  ...Repository.fields,
  subscribers_count: Schema.NullOr(Schema.Int),
  /** What it is a fork of; null if it is none, or a fork of a private one. */
  parent: Schema.NullOr(Schema.Struct({ full_name: Schema.String, html_url: Schema.String }))
})
export type RepositoryDetail = typeof RepositoryDetail.Type

export const RepositorySearch = Schema.Struct({
  /** All repositories that match. Only the first 1,000 of them can be read. */
  total_count: Schema.Int,
  /** Whether the platform ended the search early. */
  incomplete_results: Schema.Boolean,
  items: Schema.Array(Repository)
})
export type RepositorySearch = typeof RepositorySearch.Type

export const UserActivity = Schema.Struct({
  /** The newest comes first. */
  events: Schema.Array(Activity.Event),
  /** Null on the last page. */
  next_page: Schema.NullOr(Schema.Int)
})
export type UserActivity = typeof UserActivity.Type

export interface SearchQuery {
  readonly q: string
  readonly sort: "stars" | "forks" | "help-wanted-issues" | "updated" | undefined
  readonly order: "asc" | "desc"
  readonly page: number
  readonly per_page: number
}

export class CodeHost extends Context.Service<
  CodeHost,
  {
    /** Fails without a provider. */
    readonly configured: Effect.Effect<void, UpstreamNotConfigured>
    readonly user: (username: string) => Effect.Effect<Operation.Read<User>, Failure>
    /** `NotFound` for a private repository, too. */
    readonly repository: (owner: string, repo: string) => Effect.Effect<Operation.Read<RepositoryDetail>, Failure>
    /** `InvalidInput` with the field `q` if the platform refuses the query. */
    readonly search: (query: SearchQuery) => Effect.Effect<Operation.Read<RepositorySearch>, Failure | InvalidInput>
    readonly activity: (
      username: string,
      page: { readonly page: number; readonly per_page: number }
    ) => Effect.Effect<Operation.Read<UserActivity>, Failure>
  }
>()("@millrace/core/operations/CodeHost") {
  static readonly unconfigured: Layer.Layer<CodeHost> = Layer.sync(CodeHost, () => {
    const missing = Effect.fail(new UpstreamNotConfigured({ upstream: "code hosting" }))
    return { configured: missing, user: () => missing, repository: () => missing, search: () => missing, activity: () => missing }
  })
}

type Failure = NotFound | UpstreamUnavailable | UpstreamNotConfigured

const configured = CodeHost.use(({ configured }) => configured)

/** Names of people, organisations and bots (`dependabot[bot]`), of all servers that speak this API. */
const Username = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][\w.-]{0,99}(?:\[bot\])?$/u, {
    expected: "the name of a user, of letters, digits, hyphens, underscores and dots"
  })
)

const RepositoryName = Schema.String.check(
  Schema.isPattern(/^\.{0,99}[\w-][\w.-]{0,99}$/u, {
    expected: "the name of a repository, of letters, digits, hyphens, underscores and dots"
  })
)

/** The most results of a search that the platform gives. */
const MOST = 1_000

const perPage = Schema.optionalKey(Schema.Int.check(Schema.isBetween(PER_PAGE)))

const KEPT = "An answer may come from the platform's own cache time, of a minute or so; `X-Cache` says so."

export const user = Operation.make("codeHost.user", {
  summary: "Read the public profile of a user or an organisation",
  description: `What the platform shows to everybody. ${KEPT}`,
  price: 0.5,
  cached: true,
  route: { method: "GET", path: "/social/codehost/users/:username", params: { username: Username } },
  success: User,
  configured,
  run: ({ username }) => CodeHost.use((host) => host.user(username)),
  example: {
    input: { username: "octocat" },
    data: {
      ...{ login: "octocat", id: 583231, type: "User", name: "The Octocat", bio: null, company: "@github", location: "San Francisco" },
      ...{ blog: "https://github.blog", email: "octocat@github.com", twitter_username: null },
      ...{ avatar_url: "https://avatars.githubusercontent.com/u/583231?v=4", html_url: "https://github.com/octocat" },
      ...{ public_repos: 8, public_gists: 8, followers: 20000, following: 9 },
      ...{ created_at: "2011-01-25T18:44:36Z", updated_at: "2026-01-22T12:00:00Z" }
    }
  },
  links: [{ operation: "codeHost.activity", parameters: { username: "/login" } }]
})

const HELLO_WORLD: Repository = {
  ...{ id: 1296269, name: "Hello-World", full_name: "octocat/Hello-World" },
  owner: {
    login: "octocat",
    type: "User",
    avatar_url: "https://avatars.githubusercontent.com/u/583231?v=4",
    html_url: "https://github.com/octocat"
  },
  ...{ html_url: "https://github.com/octocat/Hello-World", clone_url: "https://github.com/octocat/Hello-World.git" },
  ...{ description: "My first repository on GitHub!", homepage: null, language: null, topics: [], license: null, default_branch: "master" },
  ...{ fork: false, archived: false, stargazers_count: 2900, forks_count: 2800, open_issues_count: 1500, size: 1 },
  ...{ created_at: "2011-01-26T19:01:12Z", updated_at: "2026-01-22T12:00:00Z", pushed_at: "2024-08-20T23:54:42Z" }
}

export const searchRepositories = Operation.make("codeHost.searchRepositories", {
  summary: "Search public repositories",
  description:
    "`q` takes the platform's own qualifiers, such as `language:typescript` or `stars:>100`. The best match comes first, or the first by `sort`. " +
    `Only the first ${MOST} results can be read; \`Link\` leads through them. ${KEPT}`,
  price: 0.5,
  cached: true,
  route: {
    method: "GET",
    path: "/social/codehost/repos",
    query: {
      q: Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(240)),
      sort: Schema.optionalKey(Schema.Literals(["stars", "forks", "help-wanted-issues", "updated"])),
      /** Of `sort`; `desc` by default. */
      order: Schema.optionalKey(Schema.Literals(["asc", "desc"])),
      page: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: MOST }))),
      /** 25 by default. */
      per_page: perPage
    }
  },
  success: RepositorySearch,
  configured,
  check: ({ page = 1, per_page = PER_PAGE.default, q }) => {
    if (q.trim() === "") return Effect.fail(new InvalidInput({ field: "q", message: "must have a word to search for" }))
    if (page * per_page <= MOST) return Effect.void
    return Effect.fail(new InvalidInput({ field: "page", message: `page ${page} of ${per_page} ends beyond the first ${MOST} results` }))
  },
  run: Effect.fnUntraced(function* ({ order = "desc", page = 1, per_page = PER_PAGE.default, q, sort }) {
    const { cache, data } = yield* CodeHost.use((host) => host.search({ q, sort, order, page, per_page }))
    // The last whole page of what can be read
    const total = Math.min(data.total_count, Math.floor(MOST / per_page) * per_page)
    return { data, cache, page: { number: page, size: per_page, total } }
  }),
  example: {
    input: { q: "hello world in:name", sort: "stars", per_page: 1 },
    data: { total_count: 1, incomplete_results: false, items: [HELLO_WORLD] }
  }
})

export const repository = Operation.make("codeHost.repository", {
  summary: "Read a public repository",
  description: `A repository that was renamed or moved is found by its old name, too. A private one does not exist. ${KEPT}`,
  price: 0.5,
  cached: true,
  route: { method: "GET", path: "/social/codehost/repos/:owner/:repo", params: { owner: Username, repo: RepositoryName } },
  success: RepositoryDetail,
  configured,
  run: ({ owner, repo }) => CodeHost.use((host) => host.repository(owner, repo)),
  example: { input: { owner: "octocat", repo: "Hello-World" }, data: { ...HELLO_WORLD, subscribers_count: 1800, parent: null } },
  links: [{ operation: "codeHost.user", parameters: { username: "/owner/login" } }]
})

export const activity = Operation.make("codeHost.activity", {
  summary: "Read what a user did in public",
  description:
    "Events of the last weeks, of which the platform keeps some hundreds. Each has a `type` that says what its `payload` is; the payload of a " +
    `type that is not listed here is as the platform sent it. ${KEPT}`,
  price: 0.5,
  cached: true,
  route: {
    method: "GET",
    path: "/social/codehost/users/:username/activity",
    params: { username: Username },
    query: {
      /** The platform decides how many there are. */
      page: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))),
      /** 25 by default. */
      per_page: perPage
    }
  },
  success: UserActivity,
  configured,
  run: ({ page = 1, per_page = PER_PAGE.default, username }) => CodeHost.use((host) => host.activity(username, { page, per_page })),
  example: {
    input: { username: "octocat", per_page: 1 },
    data: {
      events: [
        {
          id: "22249084964",
          type: "PushEvent",
          actor: { login: "octocat", avatar_url: "https://avatars.githubusercontent.com/u/583231?v=4" },
          repo: { id: 1296269, name: "octocat/Hello-World" },
          public: true,
          created_at: "2026-01-22T12:00:00Z",
          payload: {
            ref: "refs/heads/master",
            head: "7a8f3ac80e2ad2f6842cb86f576d4bfe2c03e300",
            before: "883efe034920928c47fe18598c01249d1a9fdabd",
            size: 1,
            commits: [{ sha: "7a8f3ac80e2ad2f6842cb86f576d4bfe2c03e300", message: "Fix the greeting" }]
          }
        }
      ],
      next_page: 2
    }
  }
})
