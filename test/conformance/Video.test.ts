/** The readers of videos over HTTP, beyond their rows: pages, outliers, failures of the platform, and its quota. */
import { Effect } from "effect"
import { expect } from "vitest"
import type { Answer } from "../../packages/upstreams/test/shared/LocalService.ts"
import * as YouTubeServer from "../../packages/upstreams/test/video/YouTubeServer.ts"
import { hostWith, testing } from "./Host.ts"

const PLACE = "/api/v1/social/videosite"

const client = Effect.fnUntraced(function* (options: Parameters<typeof hostWith>[0]) {
  const { balance, open, url } = yield* hostWith(options)
  const { accountId, key } = yield* open(100)
  const ask = (path: string) =>
    Effect.promise(async () => {
      const answer = await fetch(new URL(path, url), { headers: { authorization: `Bearer ${key}` } })
      return { status: answer.status, headers: answer.headers, body: JSON.parse(await answer.text()) }
    })
  return { ask, get: (path: string) => ask(`${PLACE}${path}`), available: Effect.map(balance(accountId), ({ available }) => available) }
})

testing(
  "a token leads to the next page, and a token of no page is refused and refunded",
  Effect.gen(function* () {
    const { available, get } = yield* client({})
    const path = `/channels/${YouTubeServer.CHANNEL}/videos?per_page=40`
    const first = yield* get(path)
    const last = yield* get(`${path}&page_token=${first.body.data.next_page_token}`)
    const ids = [first, last].flatMap(({ body }) => body.data.videos.map(({ id }: { readonly id: string }) => id))
    expect(ids).toEqual(Array.from({ length: 60 }, (_, index) => YouTubeServer.idOf(index)))
    expect(last.body.data.next_page_token).toBeNull()
    const before = yield* available
    const { body, status } = yield* get(`${path}&page_token=nonsense`)
    expect([status, body.error.code, body.error.message]).toEqual([422, "invalid_request", expect.stringMatching(/^page_token: /u)])
    expect(yield* available).toBe(before)
  })
)

testing(
  "an outlier is found among videos as old",
  Effect.gen(function* () {
    const { get } = yield* client({})
    const { data } = (yield* get(`/channels/${YouTubeServer.HANDLE}/outliers`)).body
    expect(data).toMatchObject({ judged: 60, too_young: 0, outliers: [{ id: YouTubeServer.HIT, expected_views: 1000, multiplier: 50 }] })
    expect(data.outliers).toHaveLength(1)
  })
)

const FAILURES: ReadonlyArray<readonly [string, Answer, number, string]> = [
  ["an error of the platform", YouTubeServer.failure(500, "backendError"), 503, "upstream_unavailable"],
  ["a key that it refuses", YouTubeServer.invalidKey, 503, "upstream_unavailable"],
  ["a reply that is not JSON", (response) => void response.writeHead(200).end("<html>"), 503, "upstream_invalid_reply"],
  ["no such thing", YouTubeServer.failure(404, "videoNotFound"), 404, "not_found"]
]

for (const [name, failure, status, code] of FAILURES)
  testing(
    `${name} is answered ${status} and refunded`,
    Effect.gen(function* () {
      const { available, get } = yield* client({ video: () => failure })
      const answer = yield* get(`/videos/${YouTubeServer.idOf(0)}/stats`)
      expect([answer.status, answer.body.error.code, yield* available]).toEqual([status, code, 100_000])
      // What went wrong there is for operators
      expect(JSON.stringify(answer.body)).not.toMatch(/backendError|API key|127\.0\.0\.1/u)
    })
  )

testing(
  "a quota that is used up is told with the time of its end, also in /ready",
  Effect.gen(function* () {
    const { ask, available, get } = yield* client({ video: () => YouTubeServer.failure(403, "quotaExceeded") })
    for (const path of ["/search?q=talk", `/videos/${YouTubeServer.idOf(0)}/stats`]) {
      const { headers, status } = yield* get(path)
      expect(status).toBe(503)
      const wait = Number(headers.get("retry-after"))
      expect(wait).toBeGreaterThan(0)
      expect(wait).toBeLessThanOrEqual(25 * 3_600)
    }
    expect(yield* available).toBe(100_000)
    const { body } = yield* ask("/ready")
    const [quota] = body.quotas
    expect(quota).toMatchObject({ upstream: "video", used: quota.limit, resets_at: expect.stringMatching(/T0[78]:00:00\.000Z$/u) })
  })
)

testing(
  "without a provider, calls are answered 503 and are free",
  Effect.gen(function* () {
    const { ask, available, get } = yield* client({ isConfigured: false })
    const { body, status } = yield* get(`/videos/${YouTubeServer.idOf(0)}/stats`)
    expect([status, body.error.code, yield* available]).toEqual([503, "upstream_not_configured", 100_000])
    expect((yield* ask("/ready")).body).not.toHaveProperty("quotas")
  })
)

testing(
  "the API has no downloads: a host of it alone answers 503, and says so in its catalog",
  Effect.gen(function* () {
    const { ask, available, get } = yield* client({ withoutDownloads: true })
    const { body, status } = yield* get(`/videos/${YouTubeServer.idOf(0)}/download`)
    expect([status, body.error.code, yield* available]).toEqual([503, "upstream_not_configured", 100_000])
    const isAvailable = Effect.fnUntraced(function* (key: string) {
      return (yield* ask(`/api/v1/catalog/capabilities/${key}`)).body.data.availability.available
    })
    expect([yield* isAvailable("video.download"), yield* isAvailable("video.stats")]).toEqual([false, true])
  })
)
