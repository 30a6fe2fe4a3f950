import { Effect } from "effect"
import { describe, expect, test } from "vitest"
import { type Answer, json } from "../../upstreams/test/shared/LocalService.ts"
import * as SitePlayer from "./SitePlayer.ts"
import * as SiteServer from "./SiteServer.ts"
import { failureOf, open, run } from "./TestSite.ts"

const { fileOf, idOf } = SiteServer
const EXPIRES = new Date(SiteServer.EXPIRES * 1_000).toISOString()
const LOCKED = "locked-0001"

const streams = (url: (itag: number) => string) => [
  {
    ...{ url: url(18), expires_at: EXPIRES, kind: "video_and_audio", mime_type: "video/mp4", container: "mp4" },
    ...{ codecs: ["avc1.42001E", "mp4a.40.2"], quality: "360p", width: 640, height: 360, fps: 30, bitrate: 503_000, size: 79_000_000 },
    ...{ duration_seconds: 3723, language: "en" }
  },
  {
    ...{ url: url(299), expires_at: EXPIRES, kind: "video", mime_type: "video/mp4", container: "mp4", codecs: ["avc1.64002a"] },
    ...{
      quality: "1080p60",
      width: 1920,
      height: 1080,
      fps: 60,
      bitrate: 5_000_000,
      size: 990_000_000,
      duration_seconds: 3723,
      language: null
    }
  },
  {
    ...{ url: url(251), expires_at: EXPIRES, kind: "audio", mime_type: "audio/webm", container: "webm", codecs: ["opus"] },
    ...{
      quality: "medium",
      width: null,
      height: null,
      fps: null,
      bitrate: 130_000,
      size: 59_000_000,
      duration_seconds: 3723,
      language: "en"
    }
  }
]

const script =
  (text: string): Answer =>
  (response) =>
    response.writeHead(200).end(text)

const withPlayer = (text: string) => (request: { readonly path: string }) =>
  request.path.startsWith("/s/player/") ? script(text) : undefined

describe("links", () => {
  test("that the site gives as they are", () =>
    run(
      Effect.gen(function* () {
        const { paths, site } = yield* open()
        expect((yield* site.download(idOf(0))).data).toEqual({
          ...{ id: idOf(0), title: "A talk", duration_seconds: 3723, expires_at: EXPIRES, streams: streams(fileOf) }
        })
        expect(paths()).toEqual(["/youtubei/v1/player"])
      })
    ))

  test("that the player's code makes usable, in a thread of its own; its script is read once", () =>
    run(
      Effect.gen(function* () {
        const { asked, paths, site } = yield* open()
        const usable = (itag: number) => `${fileOf(itag).replace("n=abc", `n=${SitePlayer.ofN("abc")}`)}&sig=signature%3D`
        expect((yield* site.download(LOCKED)).data.streams).toEqual(streams(usable))
        yield* site.download(LOCKED)
        expect(paths().filter((path) => path.startsWith("/s/player/"))).toHaveLength(1)
        const told = asked.flatMap(({ body, path }) => (path.startsWith("/youtubei/v1/player") ? [JSON.parse(body)] : []))
        expect(told.at(-1).playbackContext.contentPlaybackContext.signatureTimestamp).toBe(SitePlayer.TIMESTAMP)
        expect(told.map(({ context }) => context.client.clientName)).toEqual(["ANDROID_VR", "TVHTML5", "ANDROID_VR", "TVHTML5"])
      })
    ))

  test("of the site's own file servers only, with an expiry, and of no protected file", () =>
    run(
      Effect.gen(function* () {
        const served = SiteServer.player(idOf(0), "ANDROID_VR") as {
          streamingData: { formats: Array<object>; adaptiveFormats: Array<object> }
        }
        const [good, ...others] = [...served.streamingData.formats, ...served.streamingData.adaptiveFormats]
        const bad = [
          { ...good, url: "https://evil.test/videoplayback?expire=1795615200" },
          { ...good, url: "https://googlevideo.com.evil.test/videoplayback?expire=1795615200" },
          { ...good, url: "http://rr1.googlevideo.com/videoplayback?expire=1795615200" },
          { ...good, url: "https://rr1.googlevideo.com/videoplayback" },
          { ...good, drmFamilies: ["WIDEVINE"] },
          { ...good, mimeType: "text/vtt" },
          { ...good, url: undefined }
        ]
        const document = { ...served, streamingData: { expiresInSeconds: "1", formats: bad, adaptiveFormats: others } }
        const { site } = yield* open(({ path }) => (path.startsWith("/youtubei/v1/player") ? json(document) : undefined))
        const { data } = yield* site.download(idOf(0))
        expect(data.streams.map(({ kind }) => kind)).toEqual(["video", "audio"])
      })
    ))
})

describe("a video that cannot be downloaded", () => {
  const unavailable = (reason: string) => ({ _tag: "DownloadUnavailable", reason })

  test.each([
    ["is-private", unavailable("private")],
    ["is-members", unavailable("members_only")],
    ["is-aged", unavailable("age_restricted")],
    ["is-blocked", unavailable("region_blocked")],
    ["is-live", unavailable("live")],
    ["is-upcoming", unavailable("upcoming")],
    ["is-new", unavailable("upcoming")],
    ["is-odd", unavailable("unavailable")],
    ["no-links", unavailable("unavailable")],
    ["is-removed", { _tag: "NotFound", resource: "video" }],
    ["nobody-here", { _tag: "NotFound", resource: "video" }],
    ["is-robot", { _tag: "UpstreamUnavailable", upstream: "video" }]
  ])("%s", (id, failure) =>
    run(
      Effect.gen(function* () {
        const { site } = yield* open()
        expect(yield* failureOf(site.download(id))).toMatchObject(failure)
      })
    )
  )

  test("is asked of the next client only where that may help", () =>
    run(
      Effect.gen(function* () {
        const { asked, site } = yield* open(undefined, { downloadClients: ["ANDROID_VR", "IOS"] })
        const players = (id: string) =>
          Effect.gen(function* () {
            const before = asked.length
            yield* Effect.result(site.download(id))
            return asked.length - before
          })
        expect(yield* players("is-private")).toBe(1)
        expect(yield* players("is-aged")).toBe(2)
        expect(yield* players("no-links")).toBe(2)
      })
    ))

  test("and a reply for another video are told apart", () =>
    run(
      Effect.gen(function* () {
        const other = json(SiteServer.player(idOf(1), "ANDROID_VR"))
        const { site } = yield* open(({ path }) => (path.startsWith("/youtubei/v1/player") ? other : undefined))
        expect(yield* failureOf(site.download(idOf(0)))).toMatchObject({ _tag: "UpstreamUnavailable", invalidReply: true })
      })
    ))
})

describe("the player's code", () => {
  test("has nothing of the host, and no way out", () =>
    run(
      Effect.gen(function* () {
        const { site } = yield* open(withPlayer(SitePlayer.ESCAPING))
        const { streams } = (yield* site.download(LOCKED)).data
        const undefineds = Array.from({ length: 5 }, () => "undefined").join("-")
        expect(new URL(streams[0].url).searchParams.get("n")).toBe(`refused-${undefineds}`)
      })
    ))

  test("is stopped when it does not end", () =>
    run(
      Effect.gen(function* () {
        const { site } = yield* open(withPlayer(SitePlayer.ENDLESS))
        expect(yield* failureOf(site.download(LOCKED))).toMatchObject({ _tag: "DownloadUnavailable", reason: "unavailable" })
      })
    ))

  test("leaves the host alone when it takes all memory", () =>
    run(
      Effect.gen(function* () {
        const { site } = yield* open(withPlayer(SitePlayer.GREEDY))
        expect(yield* failureOf(site.download(LOCKED))).toHaveProperty("_tag")
        const { site: other } = yield* open()
        expect((yield* other.download(LOCKED)).data.streams).toHaveLength(3)
      })
    ))

  test.each([
    ["is not found in a script that has changed", SitePlayer.CHANGED],
    ["is not found in what is no script", "<html>Before you continue</html>"]
  ])("%s", (_, text) =>
    run(
      Effect.gen(function* () {
        const { site } = yield* open(withPlayer(text))
        expect(yield* failureOf(site.download(LOCKED))).toMatchObject({ _tag: "DownloadUnavailable", reason: "unavailable" })
        const locked = yield* open(withPlayer(text), { downloadClients: ["TV"] })
        expect(yield* failureOf(locked.site.download(LOCKED))).toMatchObject({ _tag: "UpstreamUnavailable", invalidReply: true })
      })
    )
  )
})
