/** What the site answers instead of what it was asked for: never a result that looks right, never an error of the caller's. */
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import { type Answer, faults, hangs, json } from "../../upstreams/test/shared/LocalService.ts"
import * as SiteServer from "./SiteServer.ts"
import { failureOf, open, PAGE, run } from "./TestSite.ts"

const BYTES = 100_000
const good = SiteServer.player(SiteServer.idOf(0), "WEB")

type Opened = Effect.Success<ReturnType<typeof open>>

const reads = ({ site }: Opened) =>
  [
    ["video", site.video(SiteServer.idOf(0))],
    ["channel", site.channel(SiteServer.CHANNEL)],
    ["channel by its handle", site.channel(SiteServer.HANDLE)],
    ["channel's videos", site.channelVideos(SiteServer.CHANNEL, PAGE)],
    ["search", site.search({ ...PAGE, q: "talk", order: "relevance" })],
    ["playlist", site.playlist(SiteServer.PLAYLIST, PAGE)],
    ["comments", site.comments(SiteServer.idOf(0), { ...PAGE, order: "time" })],
    ["download", site.download(SiteServer.idOf(0))]
  ] as const

/** 400 is the site's word for what it does not know. */
const trouble = faults(good, BYTES).filter(([name]) => name !== "400" && !name.startsWith("JSON of another shape"))

describe.each(trouble)("%s", (_, answer) => {
  test("is the service's failure in every read", () =>
    run(
      Effect.gen(function* () {
        const opened = yield* open(() => answer, { byteLimit: BYTES, downloadClients: ["ANDROID_VR"] })
        for (const [name, read] of reads(opened))
          expect([name, yield* failureOf<unknown, unknown, never>(read)]).toMatchObject([
            name,
            { _tag: "UpstreamUnavailable", upstream: "video" }
          ])
      })
    ))
})

/** Valid JSON without what was asked for: a new shape of the site, or a page before it. */
const others: ReadonlyArray<readonly [string, Answer]> = [
  ["an empty object", json({})],
  ["a list", json([1, 2, 3])],
  ["a notice of consent", json({ responseContext: {}, consentBumpV2: { title: "Before you continue" } })],
  [
    "a shape that nobody knows",
    json({
      contents: {
        twoColumnBrowseResultsRenderer: {
          tabs: [{ tabRenderer: { selected: true, content: { novelRenderer: { items: [{ novelVideoRenderer: {} }] } } } }]
        }
      },
      metadata: { novelMetadataRenderer: {} },
      videoDetails: { novel: true },
      playabilityStatus: { status: "OK" },
      onResponseReceivedEndpoints: [{ novelAction: {} }]
    })
  ]
]

describe.each(others)("%s", (_, answer) => {
  test("is no result", () =>
    run(
      Effect.gen(function* () {
        const opened = yield* open(() => answer, { downloadClients: ["ANDROID_VR"] })
        for (const [name, read] of reads(opened)) {
          const failure = yield* failureOf<unknown, unknown, never>(read)
          expect([name, failure]).toEqual([
            name,
            expect.objectContaining({ _tag: expect.stringMatching(/^(UpstreamUnavailable|NotFound|DownloadUnavailable)$/u) })
          ])
        }
      })
    ))
})

test("a page of consent in place of a reply is an invalid reply", () =>
  run(
    Effect.gen(function* () {
      const page: Answer = (response) =>
        response.writeHead(200, { "content-type": "text/html" }).end("<!DOCTYPE html><title>Before you continue</title>")
      const { site } = yield* open(() => page)
      expect(yield* failureOf(site.video(SiteServer.idOf(0)))).toMatchObject({ _tag: "UpstreamUnavailable", invalidReply: true })
    })
  ))

test("a list whose items have a new shape is no empty list", () =>
  run(
    Effect.gen(function* () {
      const contents = [
        { itemSectionRenderer: { contents: [{ novelVideoRenderer: { videoId: "a" } }, { novelVideoRenderer: { videoId: "b" } }] } }
      ]
      const novel = json({
        estimatedResults: "20",
        contents: { twoColumnSearchResultsRenderer: { primaryContents: { sectionListRenderer: { contents } } } }
      })
      const { site } = yield* open(({ path }) => (path.startsWith("/youtubei/v1/search") ? novel : undefined))
      const failure = yield* failureOf(site.search({ ...PAGE, q: "talk", order: "relevance" }))
      expect(failure).toMatchObject({ _tag: "UpstreamUnavailable", invalidReply: true })
    })
  ))

test("a site that asks for patience is left alone for so long", () =>
  run(
    Effect.gen(function* () {
      const busy: Answer = (response) => response.writeHead(429, { "retry-after": "120" }).end()
      let isBusy = true
      const { asked, site } = yield* open(() => (isBusy ? busy : undefined))
      expect(yield* failureOf(site.download(SiteServer.idOf(0)))).toMatchObject({ _tag: "UpstreamUnavailable", retryAfter: 120 })
      expect(asked).toHaveLength(1)
      isBusy = false
      yield* TestClock.adjust("119 seconds")
      expect(yield* failureOf(site.video(SiteServer.idOf(0)))).toMatchObject({ _tag: "UpstreamUnavailable", retryAfter: 1 })
      expect(asked).toHaveLength(1)
      yield* TestClock.adjust("2 seconds")
      expect((yield* site.video(SiteServer.idOf(0))).data.id).toBe(SiteServer.idOf(0))
    })
  ))

test("a site that fails once is asked once more", () =>
  run(
    Effect.gen(function* () {
      let failures = 1
      const { asked, site } = yield* open(() => (failures-- > 0 ? json({}, 503) : undefined), { retries: 1, retryDelay: 0 })
      expect((yield* site.download(SiteServer.idOf(0))).data.id).toBe(SiteServer.idOf(0))
      expect(asked).toHaveLength(2)
    })
  ))

test("a host whose server puts a Request of its own in place of Node's is served as any other", () =>
  run(
    Effect.gen(function* () {
      const { Request } = globalThis
      yield* Effect.addFinalizer(() => Effect.sync(() => Object.assign(globalThis, { Request })))
      const { site } = yield* open(() => undefined)
      // The library has Node's since it was loaded
      Object.assign(globalThis, { Request: class extends Request {} })
      expect((yield* site.download(SiteServer.idOf(0))).data.id).toBe(SiteServer.idOf(0))
      expect((yield* site.video(SiteServer.idOf(0))).data.id).toBe(SiteServer.idOf(0))
    })
  ))

describe.each(hangs(good))("a site that hangs %s", (_, answer) => {
  test("fails at the time limit", () =>
    run(
      Effect.gen(function* () {
        const arrived = Promise.withResolvers<void>()
        const hanging: Answer = (response, request) => {
          answer(response, request)
          arrived.resolve()
        }
        const { site } = yield* open(() => hanging, { timeLimit: "3 seconds", downloadClients: ["ANDROID_VR"] })
        const reading = yield* Effect.forkChild(failureOf(site.download(SiteServer.idOf(0))))
        yield* Effect.promise(() => arrived.promise)
        yield* TestClock.adjust("3 seconds")
        expect(yield* Fiber.join(reading)).toMatchObject({ _tag: "UpstreamUnavailable" })
      })
    ))
})
