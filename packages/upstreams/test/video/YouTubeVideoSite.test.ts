import { DailyQuotas, Video } from "@millrace/core"
import { MemoryStateStore, StateStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Logger, Metric, Redacted, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import * as YouTubeVideoSite from "../../src/video/YouTubeVideoSite.ts"
import { type Answer, faults, json, serve } from "../shared/LocalService.ts"
import * as YouTubeServer from "./YouTubeServer.ts"

/** Noon in California. */
const NOW = Date.parse("2026-01-10T20:00:00Z")
const TO_MIDNIGHT = 12 * 3_600

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(
    Effect.scoped(Effect.andThen(TestClock.setTime(NOW), effect)).pipe(Effect.provide(Layer.merge(TestClock.layer(), Logger.layer([]))))
  )

/** Of a reply, where a test sends larger ones. */
const BYTES = 10_000

const PAGE = { page_token: undefined, per_page: 25 }

/** A host, and one more on the same store. `asked`: the paths and queries that the platform saw. */
const hosts = Effect.fnUntraced(function* (
  instead?: (path: string) => Answer | undefined,
  options: Partial<YouTubeVideoSite.Options> = {}
) {
  const asked: Array<URL> = []
  const answer = YouTubeServer.answer(instead)
  const { url } = yield* serve((response, request) => {
    asked.push(new URL(request.path, "http://platform"))
    answer(response, request)
  })
  const store = yield* Layer.build(MemoryStateStore.layer)
  const states = Layer.succeed(StateStore.StateStore, Context.get(store, StateStore.StateStore))
  const site = { baseUrl: url, apiKey: Redacted.make(YouTubeServer.KEY), ...options }
  const host = Effect.map(
    Layer.build(Layer.fresh(YouTubeVideoSite.layer(site).pipe(Layer.provideMerge(Layer.fresh(DailyQuotas.layer)), Layer.provide(states)))),
    (context) => ({ site: Context.get(context, Video.VideoSite), quotas: Context.get(context, DailyQuotas).standings })
  )
  const [first, second] = [yield* host, yield* host]
  return { ...first, second, asked }
})

/** Units that were used, of the standing of a host. */
const used = (quotas: Effect.Effect<ReadonlyArray<{ readonly used: number }>>) => Effect.map(quotas, ([quota]) => quota?.used)

describe("what is read", () => {
  test("a video, with what its owner hides as null", () =>
    run(
      Effect.gen(function* () {
        const { site } = yield* hosts()
        const { data } = yield* site.video(YouTubeServer.idOf(0))
        expect(data).toMatchObject({
          ...{ id: "video-00000", title: "Video 0", channel_id: YouTubeServer.CHANNEL, duration_seconds: 3723 },
          ...{ views: 1000, likes: 12, comments: 3, live: "none", tags: ["web", "talk"], captions: true, definition: "hd" },
          ...{ thumbnail_url: "https://i.ytimg.com/vi/x/hqdefault.jpg", language: null, audio_language: "en" }
        })
        expect((yield* site.video(YouTubeServer.idOf(2))).data).toMatchObject({ likes: null, tags: [] })
      })
    ))

  test("a channel by its id, by its handle, and by its handle without @", () =>
    run(
      Effect.gen(function* () {
        const { site } = yield* hosts()
        for (const name of [YouTubeServer.CHANNEL, YouTubeServer.HANDLE, YouTubeServer.HANDLE.slice(1)])
          expect((yield* site.channel(name)).data).toMatchObject({
            id: YouTubeServer.CHANNEL,
            handle: "@googledevelopers",
            subscribers: 2500000
          })
        expect((yield* site.channel(YouTubeServer.SILENT)).data.subscribers).toBeNull()
      })
    ))

  test("all videos of a channel, page by page, by its playlist of uploads for three units a page", () =>
    run(
      Effect.gen(function* () {
        const { asked, quotas, site } = yield* hosts()
        const ids: Array<string> = []
        let token: string | null | undefined
        while (token !== null) {
          const { data } = yield* site.channelVideos(YouTubeServer.HANDLE, { ...PAGE, page_token: token })
          ids.push(...data.videos.map(({ id }) => id))
          token = data.next_page_token
        }
        expect(ids).toEqual(Array.from({ length: 60 }, (_, index) => YouTubeServer.idOf(index)))
        expect(asked.map(({ pathname }) => pathname.split("/").at(-1))).not.toContain("search")
        expect(yield* used(quotas)).toBe(9)
      })
    ))

  test("a channel without videos has none", () =>
    run(
      Effect.gen(function* () {
        const { site } = yield* hosts()
        const { data } = yield* site.channelVideos(YouTubeServer.SILENT, PAGE)
        expect(data).toMatchObject({ channel_id: YouTubeServer.SILENT, videos: [], next_page_token: null })
      })
    ))

  test("a playlist without what was deleted from it", () =>
    run(
      Effect.gen(function* () {
        const { site } = yield* hosts()
        const { data } = yield* site.playlist(YouTubeServer.PLAYLIST, PAGE)
        expect(data).toMatchObject({ title: "Talks", video_count: 61, next_page_token: "PAGE-25" })
        expect(data.videos).toHaveLength(24)
      })
    ))

  test("a search, for 101 units", () =>
    run(
      Effect.gen(function* () {
        const { asked, quotas, site } = yield* hosts()
        const { data } = yield* site.search({ ...PAGE, q: "a talk & more", order: "views" })
        expect(data).toMatchObject({ total_results: 60, next_page_token: "PAGE-25" })
        expect(Object.fromEntries(asked[0]?.searchParams ?? [])).toMatchObject({ q: "a talk & more", order: "viewCount", type: "video" })
        expect(yield* used(quotas)).toBe(101)
      })
    ))

  test("comments in plain text", () =>
    run(
      Effect.gen(function* () {
        const { site } = yield* hosts()
        const { data } = yield* site.comments(YouTubeServer.idOf(0), { ...PAGE, order: "time" })
        expect(data.comments[0]).toEqual({
          ...{ id: "comment-0", text: "Comment 0", likes: 4, replies: 2 },
          author: { name: "@ada", channel_id: "UC-ada", avatar_url: null },
          ...{ published_at: "2026-01-02T00:00:00Z", updated_at: "2026-01-03T00:00:00Z" }
        })
      })
    ))
})

type Site = Video.VideoSite["Service"]

const ABSENT: ReadonlyArray<readonly [string, (site: Site) => Effect.Effect<unknown, unknown>]> = [
  ["a video", (site) => site.video("nothing")],
  ["a channel", (site) => site.channel("@nobody")],
  ["a channel's videos", (site) => site.channelVideos("nobody", PAGE)],
  ["a playlist", (site) => site.playlist("PL-none", PAGE)],
  ["comments of no video", (site) => site.comments("nothing", { ...PAGE, order: "time" })],
  ["comments that are turned off", (site) => site.comments(YouTubeServer.MUTE, { ...PAGE, order: "time" })]
]

describe("what fails", () => {
  test.each(ABSENT)("%s that there is not", (_, ask) =>
    run(
      Effect.gen(function* () {
        const { site } = yield* hosts()
        expect(yield* Effect.flip(ask(site))).toMatchObject({ _tag: "NotFound" })
      })
    )
  )

  test("an unknown page is told by its field", () =>
    run(
      Effect.gen(function* () {
        const { site } = yield* hosts()
        const error = yield* Effect.flip(site.channelVideos(YouTubeServer.CHANNEL, { ...PAGE, page_token: "nonsense" }))
        expect(error).toMatchObject({ _tag: "InvalidInput", field: "page_token" })
      })
    ))

  test.each([
    ["401", YouTubeServer.failure(401, "authError"), {}],
    ["403", YouTubeServer.failure(403, "forbidden"), {}],
    ["400", YouTubeServer.failure(400, "badRequest"), {}],
    ["429", YouTubeServer.failure(429, "rateLimitExceeded"), { retryAfter: 60 }],
    ["403 for a limit of each minute", YouTubeServer.failure(403, "rateLimitExceeded"), { retryAfter: 60 }],
    ["403 for the quota", YouTubeServer.failure(403, "quotaExceeded"), { retryAfter: TO_MIDNIGHT }],
    ["500", YouTubeServer.failure(500, "backendError"), {}],
    ["503 with a time", ((response) => response.writeHead(503, { "retry-after": "7" }).end()) as Answer, { retryAfter: 7 }],
    ["another shape", json({ items: [{ id: 7 }] }), { invalidReply: true }],
    ["no JSON", ((response) => response.writeHead(200).end("<html>")) as Answer, { invalidReply: true }]
  ] as const)("%s is unavailable", (_, instead, expected) =>
    run(
      Effect.gen(function* () {
        const { asked, site } = yield* hosts(() => instead)
        const error = yield* Effect.flip(site.video(YouTubeServer.idOf(0)))
        expect(error).toMatchObject({ _tag: "UpstreamUnavailable", upstream: "video", ...expected })
        // Another attempt would take more of the quota
        expect(asked).toHaveLength(1)
      })
    )
  )

  test.each(faults({ items: [] }, BYTES).filter(([name]) => name !== "429"))("%s is unavailable", (_, instead) =>
    run(
      Effect.gen(function* () {
        const { asked, site } = yield* hosts(() => instead, { byteLimit: BYTES })
        expect(yield* Effect.flip(site.video(YouTubeServer.idOf(0)))).toMatchObject({ _tag: "UpstreamUnavailable", upstream: "video" })
        expect(asked).toHaveLength(1)
      })
    )
  )

  test("a key that the platform does not know is not the caller's fault, and the host's log says so", () =>
    run(
      Effect.gen(function* () {
        const lines: Array<string> = []
        const log = Logger.layer([Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${message}`))])
        const { site } = yield* hosts(undefined, { apiKey: Redacted.make("another") })
        const error = yield* Effect.flip(site.video(YouTubeServer.idOf(0))).pipe(Effect.provide(log))
        expect(error).toMatchObject({ _tag: "UpstreamUnavailable" })
        expect(lines).toEqual(["Error video refuses this host or its credentials: it answered with status 400"])
      })
    ))
})

describe("the quota", () => {
  test("is of all hosts together, ends at midnight in California, and what is refused is not sent", () =>
    run(
      Effect.gen(function* () {
        const { asked, quotas, second, site } = yield* hosts(undefined, { dailyQuota: 102 })
        yield* site.search({ ...PAGE, q: "talk", order: "relevance" })
        yield* second.site.video(YouTubeServer.idOf(1))
        const standing = [{ upstream: "video", used: 102, limit: 102, resetsAt: NOW + TO_MIDNIGHT * 1_000 }]
        expect([yield* quotas, yield* second.quotas]).toEqual([standing, standing])
        for (const host of [site, second.site])
          expect(yield* Effect.flip(host.video(YouTubeServer.idOf(3)))).toMatchObject({ isolated: true, retryAfter: TO_MIDNIGHT })
        expect(asked).toHaveLength(3)
        yield* TestClock.adjust(`${TO_MIDNIGHT} seconds`)
        yield* site.video(YouTubeServer.idOf(3))
        expect(yield* used(second.quotas)).toBe(1)
      })
    ))

  test("is a metric: what was used, and what is allowed", () =>
    run(
      Effect.gen(function* () {
        // In one process, the metrics are those of the host that began last
        const { second } = yield* hosts(undefined, { dailyQuota: 500 })
        yield* second.site.search({ ...PAGE, q: "talk", order: "relevance" })
        const metrics = yield* Metric.snapshot
        const gauges = metrics.filter(({ id }) => id.startsWith("millrace.upstream.quota."))
        expect(gauges.map(({ attributes, id, state }) => [id, attributes?.["upstream"], state])).toEqual(
          expect.arrayContaining([
            ["millrace.upstream.quota.used", "video", { value: 101 }],
            ["millrace.upstream.quota.limit", "video", { value: 500 }]
          ])
        )
      }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
    ))

  test("that the platform says is used up is so for all requests of the day", () =>
    run(
      Effect.gen(function* () {
        const { asked, quotas, site } = yield* hosts((path) =>
          path.endsWith("/search") ? YouTubeServer.failure(403, "quotaExceeded") : undefined
        )
        yield* Effect.flip(site.search({ ...PAGE, q: "talk", order: "relevance" }))
        expect(yield* Effect.flip(site.video(YouTubeServer.idOf(3)))).toMatchObject({ retryAfter: TO_MIDNIGHT })
        expect([asked.length, yield* used(quotas)]).toEqual([1, 10_000])
        yield* TestClock.adjust(`${TO_MIDNIGHT} seconds`)
        expect((yield* site.video(YouTubeServer.idOf(3))).data.id).toBe(YouTubeServer.idOf(3))
      })
    ))

  test("counts each unit once, also of requests at once", () =>
    run(
      Effect.gen(function* () {
        const { quotas, second, site } = yield* hosts()
        const ids = Array.from({ length: 20 }, (_, index) => YouTubeServer.idOf(index))
        yield* Effect.forEach(ids, (id, index) => (index % 2 === 0 ? site : second.site).video(id), { concurrency: "unbounded" })
        expect(yield* used(quotas)).toBe(20)
      })
    ))
})
