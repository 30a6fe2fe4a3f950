import { Image } from "@millrace/core"
import { UrlImageDownloader } from "@millrace/upstreams"
import { Effect, type Scope } from "effect"
import { describe, expect, test } from "vitest"
import { png } from "./Png.ts"
import { type Answer, bytes, flood, serve } from "./VendorService.ts"

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> => Effect.runPromise(Effect.scoped(effect))

const download = (address: string, options: UrlImageDownloader.Options = {}) =>
  Image.ImageDownloader.use((downloader) => downloader.download(address)).pipe(Effect.provide(UrlImageDownloader.layer(options)))

/** Where this host passes for a public one. */
const from = (answer: Answer) =>
  Effect.flatMap(serve(answer), ({ url }) =>
    download(url.href, { ports: [Number(url.port)], isAllowed: (address) => address === "127.0.0.1" })
  )

const invalid = (message: string) => ({ _tag: "InvalidInput", field: "image_url", message: `image_url ${message}` })

describe("an image at an address", () => {
  test("is read, checked and scaled into bounds, whatever its content type", () =>
    run(
      Effect.gen(function* () {
        expect(yield* from(bytes(png(400, 300), "text/html"))).toMatchObject({ contentType: "image/png", width: 400, height: 300 })
        expect(yield* from(bytes(png(4_000, 100)))).toMatchObject({ width: 2048, height: 256 })
      })
    ))

  test.each([
    ["a page", bytes(Buffer.from("<html></html>"), "image/png"), "is no PNG, JPEG or WebP image"],
    ["a drawing that may have others in it", bytes(Buffer.from("<svg/>"), "image/svg+xml"), "is no PNG, JPEG or WebP image"],
    ["half a picture", bytes(png(400, 300).subarray(0, 100)), "cannot be decoded"],
    ["too much", flood(200 * 1024 * 1024), `leads to more than ${Image.MAX_IMAGE} bytes`]
  ])("that is %s is refused", (_, answer, message) =>
    run(
      Effect.gen(function* () {
        expect(yield* Effect.flip(from(answer))).toMatchObject(invalid(message))
      })
    )
  )

  test("on this host is not read", () =>
    run(
      Effect.gen(function* () {
        const service = yield* serve(bytes(png(400, 300)))
        const { port } = service.url
        expect(yield* Effect.flip(download(`http://localhost:${port}/`, { ports: [Number(port)] }))).toMatchObject(
          invalid("must lead to a public address")
        )
        expect(yield* Effect.flip(download(service.url.href))).toMatchObject(invalid("must be at port 80 or 443"))
        expect(service.requests).toEqual([])
      })
    ))
})
