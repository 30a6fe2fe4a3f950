/** The files of a web page: where they are, how they are encoded, how long they are kept. */
import { gunzipSync, gzipSync } from "node:zlib"
import { Effect, Layer, Logger } from "effect"
import { expect } from "vitest"
import { Http, WebFiles, WebHandler } from "../src/index.ts"
import { api, services, testing } from "./Host.ts"

const file = (path: string, text: string): WebFiles.WebFile => ({
  path,
  type: path === "" ? "text/html; charset=utf-8" : "text/javascript; charset=utf-8",
  bytes: Buffer.from(text),
  gzip: gzipSync(text),
  brotli: Buffer.from(`brotli of ${text}`)
})

const FILES = [file("", `<script src="${WebFiles.BASE}/assets/main-1.js"></script>`), file("assets/main-1.js", "main()")]

/** The routes of a host with the page at `path`. */
const serving = (path: `/${string}`, files: Effect.Effect<ReadonlyArray<WebFiles.WebFile>, string> = Effect.succeed(FILES)) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(Layer.provideMerge(services(), Logger.layer([])))
    const { handle } = yield* WebHandler.make(Layer.mergeAll(Http.layer(api), WebFiles.layer(files, { path }))).pipe(
      Effect.provideContext(context)
    )
    return (path: string, headers: Record<string, string> = {}) =>
      Effect.promise(async () => {
        const response = await handle(new Request(`http://localhost${path}`, { headers }))
        return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
      })
  })

testing(
  "are at the path of the page, which names them by it",
  Effect.gen(function* () {
    for (const [path, base] of [
      ["/", ""],
      ["/tool", "/tool"]
    ] as const) {
      const get = yield* serving(path)
      const page = yield* get(path)
      expect(page.bytes.toString()).toBe(`<script src="${base}/assets/main-1.js"></script>`)
      expect(Object.fromEntries(page.headers)).toMatchObject({
        "content-type": "text/html; charset=utf-8",
        "cache-control": "private, no-cache",
        "content-security-policy": WebFiles.POLICY,
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff"
      })
      const script = yield* get(`${base}/assets/main-1.js`)
      expect([script.status, script.bytes.toString(), script.headers.get("cache-control")]).toEqual([
        200,
        "main()",
        "public, max-age=31536000, immutable"
      ])
      for (const missing of ["main-2.js", "..%2Fmain-1.js", "%00"]) expect((yield* get(`${base}/assets/${missing}`)).status).toBe(404)
      // The API is where it was
      expect((yield* get("/health")).status).toBe(200)
    }
  })
)

testing(
  "tell the page whether its request had the cookie of a session",
  Effect.gen(function* () {
    const page = `<html data-session="${WebFiles.SESSION}"></html>`
    const get = yield* serving("/tool", Effect.succeed([file("", page)]))
    const shown = (cookie: string) => Effect.map(get("/tool", { cookie }), ({ bytes }) => bytes.toString())
    expect(yield* shown("")).toBe(`<html data-session="none"></html>`)
    expect(yield* shown("other=1; __Host-millrace-browser=2")).toBe(`<html data-session="none"></html>`)
    expect(yield* shown(`a=1; __Host-millrace="><script>`)).toBe(`<html data-session="sent"></html>`)
  })
)

testing(
  "come in the smallest form that the client takes",
  Effect.gen(function* () {
    const get = yield* serving("/")
    const coded = (accepted: string) =>
      Effect.map(get("/assets/main-1.js", { "accept-encoding": accepted }), ({ bytes, headers }) => [
        headers.get("content-encoding"),
        headers.get("content-encoding") === "gzip" ? gunzipSync(bytes).toString() : bytes.toString(),
        headers.get("vary")
      ])
    expect(yield* coded("gzip, deflate, br;q=0.5")).toEqual(["br", "brotli of main()", "accept-encoding"])
    expect(yield* coded("gzip, br;q=0")).toEqual(["gzip", "main()", "accept-encoding"])
    expect(yield* coded("identity")).toEqual([null, "main()", "accept-encoding"])
  })
)

testing(
  "are made once, for the first request, and again after a failure",
  Effect.gen(function* () {
    let made = 0
    const get = yield* serving(
      "/",
      Effect.suspend(() => (++made === 1 ? Effect.fail("not built") : Effect.succeed(FILES)))
    )
    expect(made).toBe(0)
    expect((yield* get("/")).status).toBe(500)
    expect((yield* get("/")).status).toBe(200)
    expect((yield* get("/assets/main-1.js")).status).toBe(200)
    expect(made).toBe(2)
  })
)
