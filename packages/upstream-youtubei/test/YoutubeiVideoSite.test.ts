import { TraceContext, type Video } from "@millrace/core"
import { Effect, Tracer } from "effect"
import { describe, expect, test } from "vitest"
import * as SiteServer from "./SiteServer.ts"
import { failureOf, open, PAGE, run } from "./TestSite.ts"

const { CHANNEL, CLOSED, HANDLE, idOf, TITLE } = SiteServer
const NOBODY = "UC_nobody_____________00"

const summary = (index: number, more: Partial<Video.Records.VideoSummary> = {}): Video.Records.VideoSummary => ({
  ...{ id: idOf(index), url: `https://www.youtube.com/watch?v=${idOf(index)}`, title: `Video ${index}`, description: null },
  ...{ channel_id: CHANNEL, channel_title: TITLE, published_at: null, duration_seconds: 3723, views: 1000, likes: null, comments: null },
  ...{ thumbnail_url: `https://i.ytimg.com/vi/${idOf(index)}/hqdefault.jpg`, live: "none", ...more }
})

describe("what is read", () => {
  test("a video: each field that the site tells, and null for the others", () =>
    run(
      Effect.gen(function* () {
        const { paths, site } = yield* open()
        expect((yield* site.video(idOf(0))).data).toEqual({
          ...{ id: idOf(0), url: `https://www.youtube.com/watch?v=${idOf(0)}`, title: "A talk", description: "A description" },
          ...{ channel_id: CHANNEL, channel_title: TITLE, published_at: "2026-01-01T08:00:00.000Z" },
          ...{ thumbnail_url: `https://i.ytimg.com/vi/${idOf(0)}/hqdefault.jpg`, duration_seconds: 3723 },
          ...{ views: 1_234_567, likes: 12_345, comments: 3_210, live: "none", tags: ["web", "talk"], category_id: "28" },
          ...{
            language: null,
            audio_language: "en",
            definition: "hd",
            captions: true,
            license: null,
            embeddable: true,
            made_for_kids: null
          },
          thumbnails: [
            { url: `https://i.ytimg.com/vi/${idOf(0)}/default.jpg`, width: 120, height: 90 },
            { url: `https://i.ytimg.com/vi/${idOf(0)}/hqdefault.jpg`, width: 480, height: 360 }
          ]
        })
        expect(paths().toSorted()).toEqual(["/youtubei/v1/next", "/youtubei/v1/player"])
      })
    ))

  test("a video that is live or still to come, without a length", () =>
    run(
      Effect.gen(function* () {
        const { site } = yield* open()
        expect((yield* site.video("is-live")).data).toMatchObject({ live: "live", duration_seconds: null })
        expect((yield* site.video("is-upcoming")).data).toMatchObject({ live: "upcoming", duration_seconds: null })
        // The site shows who made it, though not the video itself
        expect((yield* site.video("is-aged")).data).toMatchObject({ id: "is-aged", title: "A talk" })
      })
    ))

  test("a channel, by its id and by its handle", () =>
    run(
      Effect.gen(function* () {
        const { site } = yield* open()
        for (const name of [CHANNEL, HANDLE, HANDLE.slice(1)])
          expect((yield* site.channel(name)).data).toEqual({
            ...{ id: CHANNEL, handle: HANDLE, url: `https://www.youtube.com/channel/${CHANNEL}`, title: TITLE, description: "About" },
            ...{ country: "US", published_at: "2007-08-23", thumbnail_url: "https://yt3.googleusercontent.com/avatar" },
            ...{ banner_url: "https://yt3.googleusercontent.com/banner", subscribers: 2_500_000, views: 300_123_456, videos: 5_891 }
          })
      })
    ))

  test("the videos of a channel, with their ages for whoever compares them", () =>
    run(
      Effect.gen(function* () {
        const { site } = yield* open()
        const { data } = yield* site.channelVideos(CHANNEL, PAGE)
        expect(data).toMatchObject({ channel_id: CHANNEL, channel_title: TITLE, next_page_token: expect.stringMatching(/^[\w-]+$/u) })
        expect(data.videos).toEqual(Array.from({ length: 25 }, (_, index) => summary(index)))
        const day = 86_400_000
        expect([0, 1, 13, 14].map((index) => data.ages?.get(idOf(index)))).toEqual([23 * 3_600_000, day, 13 * day, 14 * day])
        expect((yield* site.channelVideos(SiteServer.SILENT, PAGE)).data).toMatchObject({ videos: [], next_page_token: null })
      })
    ))

  test("a playlist, without what is private", () =>
    run(
      Effect.gen(function* () {
        const { site } = yield* open()
        const { data } = yield* site.playlist(SiteServer.PLAYLIST, { ...PAGE, per_page: 50 })
        const { videos, next_page_token, ...about } = data
        expect(about).toEqual({
          ...{ id: SiteServer.PLAYLIST, url: `https://www.youtube.com/playlist?list=${SiteServer.PLAYLIST}`, title: "Talks" },
          ...{ description: "A list", channel_id: CHANNEL, channel_title: TITLE, published_at: null, video_count: 61 },
          thumbnail_url: `https://i.ytimg.com/vi/${idOf(0)}/hqdefault.jpg`
        })
        expect(next_page_token).not.toBeNull()
        expect(videos).toEqual(
          Array.from({ length: 50 }, (_, index) => summary(index, idOf(index) === SiteServer.HIT ? { views: 50_000 } : {}))
        )
      })
    ))

  test("a playlist in the newer shapes of the site", () =>
    run(
      Effect.gen(function* () {
        const { site } = yield* open()
        const { data } = yield* site.playlist(SiteServer.NEW_PLAYLIST, PAGE)
        expect(data).toMatchObject({
          title: "New shapes",
          channel_id: CHANNEL,
          channel_title: TITLE,
          video_count: 4,
          next_page_token: null
        })
        expect(data.videos).toEqual([
          ...[0, 1, 2].map((index) => summary(index)),
          summary(3, { live: "live", duration_seconds: null, views: null })
        ])
      })
    ))

  test("a search, by relevance and by views", () =>
    run(
      Effect.gen(function* () {
        const { asked, site } = yield* open()
        const { data } = yield* site.search({ ...PAGE, q: "talk", order: "views" })
        expect(data.total_results).toBe(1_000_000)
        expect(data.videos).toEqual(Array.from({ length: 25 }, (_, index) => summary(index, { description: "A talk", views: 1_234_567 })))
        expect((yield* site.search({ ...PAGE, q: SiteServer.NOTHING, order: "relevance" })).data).toEqual({
          total_results: 0,
          videos: [],
          next_page_token: null
        })
        const [byViews, , byRelevance] = asked.map(({ body }) => JSON.parse(body))
        expect([byViews.query, byRelevance.query]).toEqual(["talk", SiteServer.NOTHING])
        // Sorted by popularity, and videos alone; videos alone
        expect([byViews.params, byRelevance.params].map(decodeURIComponent)).toEqual(["CAMSAhAB", "CAASAhAB"])
      })
    ))

  test("comments", () =>
    run(
      Effect.gen(function* () {
        const { site } = yield* open()
        const { data } = yield* site.comments(idOf(0), { ...PAGE, per_page: 20, order: "time" })
        const author = { name: "@ada", channel_id: "UC8butISFwT-Wl7EV0hUK0BQ", avatar_url: "https://yt3.ggpht.com/ada" }
        const of = (index: number, likes = 0, replies = 0) => ({ id: `comment-${index}`, text: `Comment ${index}`, author, likes, replies })
        const untold = { published_at: null, updated_at: null }
        expect(data.comments).toEqual(
          Array.from({ length: 20 }, (_, index) => ({ ...(index === 0 ? of(0, 1_200, 3) : of(index)), ...untold }))
        )
        expect(data).toMatchObject({ video_id: idOf(0), next_page_token: expect.any(String) })
      })
    ))
})

describe("pages", () => {
  test.each([7, 25, 40, 50])("%i at a time show each item once, in order", (per_page) =>
    run(
      Effect.gen(function* () {
        const { site } = yield* open()
        const all = Effect.fnUntraced(function* (
          read: (page: Video.Page) => Effect.Effect<{ readonly ids: ReadonlyArray<string>; readonly next: string | null }, unknown>
        ) {
          const ids: Array<string> = []
          for (let token: string | null | undefined; token !== null; ) {
            const page: { readonly ids: ReadonlyArray<string>; readonly next: string | null } = yield* read({ page_token: token, per_page })
            expect(page.ids.length).toBe(page.next === null ? page.ids.length : per_page)
            ids.push(...page.ids)
            token = page.next
          }
          return ids
        })
        const idsOf = (items: ReadonlyArray<{ readonly id: string }>) => items.map(({ id }) => id)
        const upTo = (count: number) => Array.from({ length: count }, (_, index) => idOf(index))
        const videos = (data: { readonly videos: ReadonlyArray<{ readonly id: string }>; readonly next_page_token: string | null }) => ({
          ids: idsOf(data.videos),
          next: data.next_page_token
        })
        const uploads = all((page) => Effect.map(site.channelVideos(CHANNEL, page), ({ data }) => videos(data)))
        const found = all((page) => Effect.map(site.search({ q: "talk", order: "relevance", ...page }), ({ data }) => videos(data)))
        const said = all((page) =>
          Effect.map(site.comments(idOf(0), { order: "relevance", ...page }), ({ data }) => ({
            ids: idsOf(data.comments),
            next: data.next_page_token
          }))
        )
        expect(yield* uploads).toEqual(upTo(60))
        expect(yield* found).toEqual(upTo(30))
        expect(yield* said).toEqual(Array.from({ length: 30 }, (_, index) => `comment-${index}`))
      })
    )
  )

  const refused = { _tag: "InvalidInput", field: "page_token" }

  test("of another call, or of none, are refused", () =>
    run(
      Effect.gen(function* () {
        const { asked, site } = yield* open()
        const { next_page_token } = (yield* site.search({ ...PAGE, q: "talk", order: "relevance" })).data
        const before = asked.length
        const token = { page_token: next_page_token ?? "", per_page: 25 }
        expect(yield* failureOf(site.search({ ...token, q: "other", order: "relevance" }))).toMatchObject(refused)
        expect(yield* failureOf(site.comments(idOf(0), { ...token, order: "relevance" }))).toMatchObject(refused)
        expect(yield* failureOf(site.search({ q: "talk", order: "relevance", per_page: 25, page_token: "CAEQAA" }))).toMatchObject(refused)
        expect(asked.length).toBe(before)
      })
    ))

  test("that the site knows no more are refused", () =>
    run(
      Effect.gen(function* () {
        const { site } = yield* open()
        const { next_page_token } = (yield* site.search({ ...PAGE, q: "talk", order: "relevance" })).data
        const [mark] = JSON.parse(Buffer.from(next_page_token ?? "", "base64url").toString("utf8"))
        const page_token = Buffer.from(JSON.stringify([mark, "forged", 0])).toString("base64url")
        expect(yield* failureOf(site.search({ q: "talk", order: "relevance", per_page: 25, page_token }))).toMatchObject(refused)
      })
    ))
})

describe("what there is not", () => {
  const gone = (resource: string) => ({ _tag: "NotFound", resource })

  test("is told by kind", () =>
    run(
      Effect.gen(function* () {
        const { site } = yield* open()
        for (const id of ["nobody-here", "is-removed", "is-private"]) expect(yield* failureOf(site.video(id))).toMatchObject(gone("video"))
        for (const name of [NOBODY, CLOSED, "@nobody"]) {
          expect(yield* failureOf(site.channel(name))).toMatchObject(gone("channel"))
          expect(yield* failureOf(site.channelVideos(name, PAGE))).toMatchObject(gone("channel"))
        }
        expect(yield* failureOf(site.playlist("PLnobody", PAGE))).toMatchObject(gone("playlist"))
        for (const id of [SiteServer.MUTE, "nobody-here"])
          expect(yield* failureOf(site.comments(id, { ...PAGE, order: "time" }))).toMatchObject(gone("video with comments"))
      })
    ))

  test("an order that the site has no more", () =>
    run(
      Effect.gen(function* () {
        const { asked, site } = yield* open()
        for (const order of ["date", "rating"] as const)
          expect(yield* failureOf(site.search({ ...PAGE, q: "talk", order }))).toMatchObject({ _tag: "InvalidInput", field: "order" })
        expect(asked).toEqual([])
      })
    ))
})

test("requests carry the trace of the call, and nothing of the host", () =>
  run(
    Effect.gen(function* () {
      const { asked, site } = yield* open()
      const TRACE = "0af7651916cd43dd8448eb211c80319c"
      const caller = TraceContext.fromHeaders({ traceparent: `00-${TRACE}-b7ad6b7169203331-01` })
      if (caller === undefined) throw new Error("This is a trace")
      yield* Effect.provideService(site.video(idOf(0)), Tracer.ParentSpan, caller)
      expect(asked).toHaveLength(2)
      for (const { headers, method } of asked) {
        expect(method).toBe("POST")
        expect(headers.traceparent).toContain(TRACE)
        expect(headers.cookie).toBeUndefined()
        expect(headers.authorization).toBeUndefined()
        expect(headers["user-agent"]).toMatch(/^Mozilla/u)
      }
    })
  ))

test("identical reads in flight are one", () =>
  run(
    Effect.gen(function* () {
      const { asked, site } = yield* open()
      const reads = yield* Effect.all([site.video(idOf(0)), site.video(idOf(0))], { concurrency: 2 })
      expect(asked).toHaveLength(2)
      expect(reads.map(({ cache }) => cache).toSorted()).toEqual(["hit", "miss"])
    })
  ))
