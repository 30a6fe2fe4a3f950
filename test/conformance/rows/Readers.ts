/** Readers of public data: a platform that hosts code, and one that shows videos. */
import { type Given, id, type Row, row, text } from "../Row.ts"

const ANSWER = "names of the answer's fields"
const PARAMETERS = "names of the query and pagination parameters"

const name = (sample: string) => text({ required: true, sample, ofLength: null, unknown: "nobody-of-this-name" })

const codeHost = (path: string, key: string, params: Given["path"], notShown: ReadonlyArray<string>): Row =>
  row("GET", `/social/codehost${path}`, `codeHost.${key}`, {
    ...(params === undefined ? {} : { path: params }),
    price: 0.5,
    notShown
  })

const video = (path: string, key: string, price: number): Row => {
  const identifier = /\{(\w+)\}/u.exec(path)?.[1]
  return row("GET", `/social/videosite${path}`, `video.${key}`, {
    ...(identifier === undefined ? {} : { path: { [identifier]: id() } }),
    price,
    notShown: [PARAMETERS, ANSWER]
  })
}

export const readers: ReadonlyArray<Row> = [
  codeHost("/users/{username}", "user", { username: name("octocat") }, [ANSWER]),
  codeHost("/repos", "searchRepositories", undefined, [PARAMETERS, ANSWER]),
  codeHost("/users/{username}/activity", "activity", { username: name("octocat") }, [ANSWER]),
  codeHost("/repos/{owner}/{repo}", "repository", { owner: name("octocat"), repo: name("hello-world") }, [ANSWER]),

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
