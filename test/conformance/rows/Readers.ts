/** Readers of public data: a platform that hosts code, and one that shows videos. */
import { choice, type Given, id, integer, type Row, row, text } from "../Row.ts"

const ANSWER = "names of the answer's fields"
const PARAMETERS = "names of the query and pagination parameters"

const name = (sample: string) =>
  text({ required: true, sample, ofLength: null, malformed: ["two words", "a/b", "a?b"], unknown: "nobody-of-this-name" })

const perPage = integer({ minimum: 1, maximum: 100, sample: 10 })

const codeHost = (path: string, key: string, places: Pick<Given, "path" | "query">, notShown: ReadonlyArray<string>): Row =>
  row("GET", `/social/codehost${path}`, `codeHost.${key}`, { ...places, price: 0.5, notShown })

const video = (path: string, key: string, price: number): Row => {
  const identifier = /\{(\w+)\}/u.exec(path)?.[1]
  return row("GET", `/social/videosite${path}`, `video.${key}`, {
    ...(identifier === undefined ? {} : { path: { [identifier]: id() } }),
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

  video("/videos/{id}/stats", "stats", 0.5),
  video("/channels/{channel}/videos", "channelVideos", 0.5),
  video("/channels/{channel}/outliers", "outliers", 1),
  video("/search", "search", 0.5),
  video("/videos/{id}/download", "download", 1),
  video("/videos/{id}/comments", "comments", 1),
  video("/channels/{handle}/about", "about", 0.5),
  video("/playlists/{id}", "playlist", 0.3),
  video("/videos/{id}/tags", "tags", 0.5),
  video("/videos/{id}/details", "details", 1)
]
