/** Readers of public data: a platform that hosts code, and one that shows videos. */
import * as YouTubeServer from "../../../packages/upstreams/test/video/YouTubeServer.ts"
import { choice, type Given, id, integer, number, type Parameters, type Row, row, text } from "../Row.ts"

const ANSWER = "names of the answer's fields"
const PARAMETERS = "names of the query and pagination parameters"

const name = (sample: string) =>
  text({ required: true, sample, ofLength: null, malformed: ["two words", "a/b", "a?b"], unknown: "nobody-of-this-name" })

const perPage = integer({ minimum: 1, maximum: 100, sample: 10 })

const codeHost = (path: string, key: string, places: Pick<Given, "path" | "query">, notShown: ReadonlyArray<string>): Row =>
  row("GET", `/social/codehost${path}`, `codeHost.${key}`, { ...places, price: 0.5, notShown })

const named = (sample: string) => text({ ...id(), sample, malformed: ["two words"] })

const VIDEO = named(YouTubeServer.idOf(0))
const CHANNEL = text({ ...named(YouTubeServer.CHANNEL), malformed: ["two words", "@", "a@b"] })

/** The query of a list is ours, since the specification shows none. */
const pages: Parameters = {
  page_token: text({ sample: "PAGE-10", ofLength: null, malformed: ["", "two words"] }),
  per_page: integer({ minimum: 1, maximum: 50 })
}

const video = (path: string, key: string, price: number, identifier?: Parameters[string], query: Parameters = {}): Row => {
  const name = /\{(\w+)\}/u.exec(path)?.[1]
  return row("GET", `/social/videosite${path}`, `video.${key}`, {
    ...(name === undefined || identifier === undefined ? {} : { path: { [name]: identifier } }),
    query,
    price,
    notShown: [PARAMETERS, ANSWER]
  })
}

export const readers: ReadonlyArray<Row> = [
  codeHost("/users/{username}", "user", { path: { username: name("octocat") } }, [ANSWER]),
  codeHost(
    "/repos",
    "searchRepositories",
    {
      query: {
        q: text({ required: true, minLength: 1, maxLength: 240, malformed: ["", "  "] }),
        sort: choice(["stars", "forks", "help-wanted-issues", "updated"]),
        order: choice(["asc", "desc"]),
        page: integer({ minimum: 1, sample: 2 }),
        per_page: perPage
      }
    },
    [PARAMETERS, ANSWER]
  ),
  codeHost(
    "/users/{username}/activity",
    "activity",
    { path: { username: name("octocat") }, query: { page: integer({ minimum: 1, maximum: 100 }), per_page: perPage } },
    [ANSWER]
  ),
  codeHost("/repos/{owner}/{repo}", "repository", { path: { owner: name("octokit-fixture-org"), repo: name("hello-world") } }, [ANSWER]),

  video("/videos/{id}/stats", "stats", 0.5, VIDEO),
  video("/channels/{channel}/videos", "channelVideos", 0.5, CHANNEL, pages),
  video("/channels/{channel}/outliers", "outliers", 1, CHANNEL, { min_multiplier: number({ minimum: 1, maximum: 1_000, sample: 2.5 }) }),
  video("/search", "search", 0.5, undefined, {
    q: text({ required: true, minLength: 1, maxLength: 200, malformed: ["", "  "] }),
    order: choice(["relevance", "date", "rating", "views"]),
    ...pages
  }),
  video("/videos/{id}/download", "download", 1, VIDEO),
  video("/videos/{id}/comments", "comments", 1, VIDEO, { order: choice(["relevance", "time"]), ...pages }),
  video("/channels/{handle}/about", "about", 0.5, CHANNEL),
  video("/playlists/{id}", "playlist", 0.3, named(YouTubeServer.PLAYLIST), pages),
  video("/videos/{id}/tags", "tags", 0.5, VIDEO),
  video("/videos/{id}/details", "details", 1, VIDEO)
]
