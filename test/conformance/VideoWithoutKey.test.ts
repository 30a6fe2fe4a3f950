/** Videos over HTTP from a host without a key: what each call answers and costs, and the downloads that there are not. */
import { Effect } from "effect"
import { expect } from "vitest"
import * as SiteServer from "../../packages/upstream-youtubei/test/SiteServer.ts"
import type { Answer } from "../../packages/upstreams/test/shared/LocalService.ts"
import { hostWith, testing } from "./Host.ts"

const client = Effect.fnUntraced(function* (options: Parameters<typeof hostWith>[0] = {}) {
  const { balance, open, url } = yield* hostWith({ withoutApi: true, ...options })
  const { accountId, key } = yield* open(100)
  const get = (path: string) =>
    Effect.promise(async () => {
      const answer = await fetch(new URL(`/api/v1/social/videosite${path}`, url), { headers: { authorization: `Bearer ${key}` } })
      return { status: answer.status, headers: answer.headers, body: JSON.parse(await answer.text()) }
    })
  return { get, available: Effect.map(balance(accountId), ({ available }) => available) }
})

const { CHANNEL, HANDLE, idOf, PLAYLIST } = SiteServer

const CALLS: ReadonlyArray<readonly [path: string, price: number, data: object]> = [
  [`/videos/${idOf(0)}/stats`, 500, { id: idOf(0), views: 1_234_567, likes: 12_345, comments: 3_210 }],
  [`/videos/${idOf(0)}/tags`, 500, { tags: ["web", "talk"] }],
  [`/videos/${idOf(0)}/details`, 1_000, { category_id: "28", license: null }],
  [`/videos/${idOf(0)}/comments?per_page=1`, 1_000, { comments: [{ id: "comment-0", published_at: null }] }],
  [`/videos/${idOf(0)}/download`, 1_000, { id: idOf(0), streams: [{ kind: "video_and_audio" }, { kind: "video" }, { kind: "audio" }] }],
  [`/channels/${HANDLE}/about`, 500, { id: CHANNEL, published_at: "2007-08-23" }],
  [`/channels/${CHANNEL}/videos?per_page=1`, 500, { channel_id: CHANNEL, videos: [{ id: idOf(0), published_at: null }] }],
  ["/search?q=talk&per_page=1", 500, { total_results: 1_000_000, videos: [{ id: idOf(0) }] }],
  [`/playlists/${PLAYLIST}?per_page=1`, 300, { video_count: 61, videos: [{ id: idOf(0) }] }]
]

testing(
  "every call answers in the fields that it has with a key, at its price",
  Effect.gen(function* () {
    const { available, get } = yield* client()
    for (const [path, price, data] of CALLS) {
      const before = yield* available
      const { body, status } = yield* get(path)
      expect([path, status, body.data]).toMatchObject([path, 200, data])
      expect([path, before - (yield* available)]).toEqual([path, price])
    }
  })
)

testing(
  "an outlier is found by the ages that the site tells, and neither they nor a day are made up",
  Effect.gen(function* () {
    const { get } = yield* client()
    const { data } = (yield* get(`/channels/${CHANNEL}/outliers`)).body
    // Two are younger than 48 hours
    expect(data).toMatchObject({ judged: 58, too_young: 2, outliers: [{ id: SiteServer.HIT, expected_views: 1000, multiplier: 50 }] })
    expect(data.outliers[0]).toMatchObject({ published_at: null, age_days: 28 })
    const { body } = yield* get(`/channels/${CHANNEL}/videos`)
    expect(body.data).not.toHaveProperty("ages")
  })
)

const REFUSALS: ReadonlyArray<readonly [id: string, status: number, code: string]> = [
  ["is-private", 409, "download_private"],
  ["is-members", 409, "download_members_only"],
  ["is-aged", 409, "download_age_restricted"],
  ["is-blocked", 409, "download_region_blocked"],
  ["is-live", 409, "download_live"],
  ["is-upcoming", 409, "download_upcoming"],
  ["no-links", 503, "download_unavailable"],
  ["is-removed", 404, "not_found"],
  ["is-robot", 503, "upstream_unavailable"]
]

testing(
  "a download that there is not is an error with a code of its own, and refunded",
  Effect.gen(function* () {
    const { available, get } = yield* client()
    for (const [id, status, code] of REFUSALS) {
      const answer = yield* get(`/videos/${id}/download`)
      expect([id, answer.status, answer.body.error.code, yield* available]).toEqual([id, status, code, 100_000])
      expect(answer.headers.get("x-should-retry")).toBe(String(status === 503))
    }
  })
)

const PAGE = `<!DOCTYPE html><title>Before you continue</title>`
const FAILURES: ReadonlyArray<readonly [string, Answer, string]> = [
  ["a page of consent", (response) => void response.writeHead(200, { "content-type": "text/html" }).end(PAGE), "upstream_invalid_reply"],
  ["an error", (response) => void response.writeHead(500).end(), "upstream_unavailable"],
  ["a request for patience", (response) => void response.writeHead(429, { "retry-after": "60" }).end(), "upstream_unavailable"]
]

for (const [name, failure, code] of FAILURES)
  testing(
    `${name} in place of a reply is answered 503 and refunded`,
    Effect.gen(function* () {
      const { available, get } = yield* client({ pages: () => failure })
      const answer = yield* get(`/videos/${idOf(0)}/download`)
      expect([answer.status, answer.body.error.code, yield* available]).toEqual([503, code, 100_000])
      if (name === "a request for patience") expect(answer.headers.get("retry-after")).toBe("60")
    })
  )
