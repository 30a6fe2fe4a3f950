import { readFile, utimes, writeFile } from "node:fs/promises"
import type { IncomingMessage, ServerResponse } from "node:http"
import { join } from "node:path"
import { BlobStore, MasterKey, Vault } from "@millrace/core"
import { MemoryStateStore } from "@millrace/event-sourcing"
import { S3BlobStore } from "@millrace/upstreams"
import { Effect, Exit, Fiber, Layer, Redacted, type Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import * as Bucket from "./Bucket.ts"

const MB = 1024 * 1024
const PART = 5 * MB
const MASTER = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

const credentials = { accessKeyId: "S3RVER", secretAccessKey: Redacted.make("S3RVER"), region: "us-east-1" }

type Options = Partial<S3BlobStore.Options>

const layerIn = (url: URL, options: Options = {}) => S3BlobStore.layer({ bucketUrl: url, partSize: PART, ...credentials, ...options })

type Server = Effect.Success<ReturnType<typeof Bucket.open>>

const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> => Effect.runPromise(Effect.scoped(effect))

const job = Vault.ofJob("job_1", "acc_1")

const vaults = Vault.Vault.layer.pipe(Layer.provide(MasterKey.layer(MASTER)), Layer.provide(MemoryStateStore.layer))

const using = <A, E>(url: URL, body: (blobs: BlobStore.BlobStore["Service"]) => Effect.Effect<A, E, Scope.Scope>, options: Options = {}) =>
  BlobStore.BlobStore.use(body).pipe(Effect.provide(Layer.provide(layerIn(url, options), Layer.fresh(vaults))))

const read = (blobs: BlobStore.BlobStore["Service"], id: string, range?: { readonly offset: number; readonly length?: number }) =>
  Effect.flatMap(blobs.get(job, id, range), ({ bytes }) => Effect.map(Stream.runCollect(bytes), (parts) => Buffer.concat(parts)))

const large = Stream.fromIterable(Array.from({ length: 6 }, (_, n) => Buffer.alloc(MB, n)))

/** The lines of what was asked, without the names, which are random. */
const shape = (server: Server) =>
  server.asked.map((line) => line.replace(/[0-9a-f]{64}/u, "ID").replace(/[0-9a-f]{32}\.part/u, "TEMPORARY"))

const failing = (status: number, code: string) => (_: IncomingMessage, response: ServerResponse) => {
  const body = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>no</Message></Error>`
  response.writeHead(status, { "content-type": "application/xml" }).end(body)
  return true
}

/** Only where the line of the request matches. */
const only =
  (line: RegExp, door: Bucket.Door): Bucket.Door =>
  (request, response) =>
    line.test(`${request.method} ${request.url}`) && door(request, response)

describe("a blob on S3", () => {
  test("is put and read in one request if it fits into a part", () =>
    run(
      Effect.gen(function* () {
        const server = yield* Bucket.open()
        yield* using(server.url, (blobs) =>
          Effect.gen(function* () {
            const { id } = yield* blobs.put(job, Buffer.from("a canary that must not be seen"))
            expect(yield* server.objects).toEqual([id])
            const stored = yield* Effect.promise(() => readFile(join(server.directory, `${id}._S3rver_object`)))
            expect(stored.includes("canary")).toBe(false)
            expect((yield* read(blobs, id)).toString()).toBe("a canary that must not be seen")
          })
        )
        // Once to learn whose it is, once to give it out
        expect(shape(server)).toEqual(["PUT /blobs/ID", "GET /blobs/ID", "GET /blobs/ID"])
      })
    ))

  test("is uploaded in parts if it is longer, and gets its name when it is complete", () =>
    run(
      Effect.gen(function* () {
        const server = yield* Bucket.open()
        yield* using(server.url, (blobs) =>
          Effect.gen(function* () {
            const { id, size } = yield* blobs.put(job, large)
            expect(size).toBe(6 * MB)
            expect(shape(server)).toEqual([
              "POST /blobs/TEMPORARY?uploads=",
              "PUT /blobs/TEMPORARY?partNumber=1&uploadId",
              "PUT /blobs/TEMPORARY?partNumber=2&uploadId",
              "POST /blobs/TEMPORARY?uploadId",
              "PUT /blobs/ID",
              "DELETE /blobs/TEMPORARY"
            ])
            expect(yield* server.objects).toEqual([id])
            server.asked.length = 0
            const range = { offset: 5 * MB - 10, length: 20 }
            expect([...(yield* read(blobs, id, range))]).toEqual([...Array(10).fill(4), ...Array(10).fill(5)])
            expect(server.asked.length).toBeLessThan(8)
            server.asked.length = 0
            expect((yield* read(blobs, id)).length).toBe(6 * MB)
            expect(server.asked.length).toBeLessThan(12)
          })
        )
      })
    ))

  test("of exactly one part takes one request, and two with one byte more", () =>
    run(
      Effect.gen(function* () {
        const server = yield* Bucket.open()
        yield* using(server.url, (blobs) =>
          Effect.gen(function* () {
            const near = PART - 4_000
            const { id } = yield* blobs.put(job, Buffer.alloc(near))
            const stored = (yield* Stream.runCollect(blobs.list)).find((blob) => blob.id === id)?.storedBytes ?? 0
            const exact = near + PART - stored
            for (const [size, requests] of [
              [exact - 1, 1],
              [exact, 1],
              [exact + 1, 6]
            ] as const) {
              server.asked.length = 0
              const blob = yield* blobs.put(job, Buffer.alloc(size, 7))
              expect([size - exact, server.asked.length]).toEqual([size - exact, requests])
              expect((yield* read(blobs, blob.id)).equals(Buffer.alloc(size, 7))).toBe(true)
            }
          })
        )
      })
    ))

  test("leaves nothing but swept leftovers when its put is interrupted between any two requests", () =>
    run(
      Effect.gen(function* () {
        for (const step of [1, 2, 3, 4, 5]) {
          const server = yield* Bucket.open()
          yield* using(server.url, (blobs) =>
            Effect.gen(function* () {
              let requests = 0
              server.use(() => ++requests === step)
              const putting = yield* Effect.forkChild(blobs.put(job, large), { startImmediately: true })
              for (let n = 0; n < step; n++) yield* server.arrivals
              server.use(() => false)
              yield* Fiber.interrupt(putting)
              yield* server.left
              expect(yield* Stream.runCollect(blobs.list)).toEqual([])
              yield* blobs.sweep(() => Effect.succeed(true), "-1 hour")
              expect([step, yield* server.objects]).toEqual([step, []])
            })
          )
        }
      })
    ))

  test.each([
    ["an upload is not begun", /^POST .*uploads/u],
    ["a part is refused", /partNumber=2/u],
    ["the parts are not put together", /^POST .*uploadId/u],
    ["it is not copied", /^PUT [^?]*$/u]
  ])("is not found when %s", (_, line) =>
    run(
      Effect.gen(function* () {
        const server = yield* Bucket.open(only(line, failing(503, "SlowDown")))
        yield* using(server.url, (blobs) =>
          Effect.gen(function* () {
            const error = yield* Effect.flip(blobs.put(job, large))
            expect(error).toMatchObject({ _tag: "BlobUnavailable", reason: "S3 returned 503 – SlowDown" })
            expect(yield* server.objects).toEqual([])
          })
        )
      })
    )
  )

  test("is not found when the service reports that after the status of a success", () =>
    run(
      Effect.gen(function* () {
        const server = yield* Bucket.open(only(/^POST .*uploadId/u, failing(200, "InternalError")))
        yield* using(server.url, (blobs) =>
          Effect.gen(function* () {
            const error = yield* Effect.flip(blobs.put(job, large))
            expect(error).toMatchObject({ _tag: "BlobUnavailable", reason: "the parts were not put together" })
            expect(yield* server.objects).toEqual([])
          })
        )
      })
    ))

  test("that is changed or cut off fails before those bytes are returned", () =>
    run(
      Effect.gen(function* () {
        const server = yield* Bucket.open()
        yield* using(server.url, (blobs) =>
          Effect.gen(function* () {
            const { id } = yield* blobs.put(job, Buffer.alloc(300_000, 1))
            const file = join(server.directory, `${id}._S3rver_object`)
            const stored = yield* Effect.promise(() => readFile(file))
            for (const at of [0, 70_000, 299_000, stored.length - 1]) {
              const changed = Buffer.from(stored)
              changed.writeUInt8(changed.readUInt8(at) ^ 1, at)
              yield* Effect.promise(() => writeFile(file, changed))
              expect(yield* Effect.flip(read(blobs, id))).toMatchObject({ _tag: "Tampered" })
            }
            for (const length of [1, 100, 65_552, 140_000, stored.length - 1]) {
              yield* Effect.promise(() => writeFile(file, stored.subarray(0, length)))
              expect([length, yield* Effect.flip(read(blobs, id))]).toMatchObject([length, { _tag: "Tampered" }])
            }
            // As S3 has it where there is nothing at all
            server.use(failing(416, "InvalidRange"))
            expect(yield* Effect.flip(read(blobs, id))).toMatchObject({ _tag: "Tampered" })
          })
        )
      })
    ))
})

describe("the leftovers of a crash on S3", () => {
  const uploads = (...keys: ReadonlyArray<readonly [key: string, initiated: string]>) =>
    only(/^GET .*uploads/u, (_, response) => {
      const listed = keys.map(
        ([key, initiated]) =>
          `<Upload><Key>${key}</Key><UploadId>upload-of-${key}</UploadId><Initiator><ID>1</ID></Initiator><StorageClass>STANDARD</StorageClass><Initiated>${initiated}</Initiated></Upload>`
      )
      response.writeHead(200, { "content-type": "application/xml" })
      response.end(
        `<?xml version="1.0" encoding="UTF-8"?>\n<ListMultipartUploadsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Bucket>blobs</Bucket><KeyMarker/><UploadIdMarker/><MaxUploads>1000</MaxUploads><IsTruncated>false</IsTruncated>${listed.join("")}</ListMultipartUploadsResult>`
      )
      return true
    })

  const none = { blobs: 0, leftovers: 0 }
  const keep = () => Effect.succeed(true)

  test("are swept once they are old, also if the service cannot list uploads", () =>
    run(
      Effect.gen(function* () {
        const server = yield* Bucket.open()
        yield* using(server.url, (blobs) =>
          Effect.gen(function* () {
            const { id } = yield* blobs.put(job, Buffer.alloc(10))
            for (const name of ["dead.part", "live.part", "readme.txt"]) {
              const file = join(server.directory, `${name}._S3rver_object`)
              yield* Effect.promise(() => writeFile(file, "x"))
              const then = new Date(Date.now() - (name === "live.part" ? 1 : 25) * 3_600_000)
              yield* Effect.promise(() => utimes(file, then, then))
            }
            expect(yield* blobs.sweep(keep)).toEqual({ blobs: 0, leftovers: 1 })
            expect((yield* server.objects).sort()).toEqual([id, "live.part", "readme.txt"].sort())
          })
        )
      })
    ))

  test("are aborted where uploads can be listed: old ones of this store", () =>
    run(
      Effect.gen(function* () {
        const [old, young] = ["2020-01-01T00:00:00.000Z", "2999-01-01T00:00:00.000Z"]
        const server = yield* Bucket.open()
        yield* using(server.url, (blobs) =>
          Effect.gen(function* () {
            const aborted: Array<string> = []
            const ending = only(/^DELETE .*uploadId/u, (request, response) => {
              aborted.push((request.url ?? "").replace(/.*uploadId=/u, ""))
              response.writeHead(204).end()
              return true
            })
            const sweep = (listing: Bucket.Door) =>
              Effect.suspend(() => {
                server.use((request, response) => listing(request, response) || ending(request, response))
                return blobs.sweep(keep)
              })
            expect(yield* sweep(uploads())).toEqual(none)
            expect(yield* sweep(uploads(["a.part", old]))).toEqual({ blobs: 0, leftovers: 1 })
            expect(yield* sweep(uploads(["b.part", old], ["c.part", young], ["of-somebody-else", old], ["d.part", old]))).toEqual({
              blobs: 0,
              leftovers: 2
            })
            expect(aborted).toEqual(["a", "b", "d"].map((name) => `upload-of-${name}.part`))
          })
        )
      })
    ))
})

describe("an S3 service", () => {
  const outcomes = (server: Server, options: Options = {}) =>
    using(
      server.url,
      (blobs) =>
        Effect.gen(function* () {
          const id = "0".repeat(64)
          const exits = yield* Effect.forEach(
            [
              blobs.put(job, Buffer.alloc(10)),
              blobs.get(job, id),
              blobs.remove(id),
              Stream.runCollect(blobs.list),
              blobs.sweep(() => Effect.succeed(true))
            ],
            (effect) => Effect.exit<unknown, { readonly _tag: string }, never>(effect)
          )
          return exits.map((exit) =>
            Exit.isFailure(exit)
              ? exit.cause.reasons.map((reason) => (reason._tag === "Fail" ? reason.error._tag : reason._tag)).join()
              : "success"
          )
        }),
      options
    )

  const all = Array(5).fill("BlobUnavailable")

  test.each([
    ["refuses the key", failing(403, "AccessDenied")],
    ["has no such bucket", failing(404, "NoSuchBucket")],
    ["is busy", failing(503, "SlowDown")],
    ["fails", failing(500, "InternalError")],
    ["redirects", (_: IncomingMessage, response: ServerResponse) => !!response.writeHead(307, { location: "http://127.0.0.1:1/" }).end()],
    ["answers in HTML", (_: IncomingMessage, response: ServerResponse) => !!response.writeHead(502).end("<html></html>")],
    ["closes the connection", (_: IncomingMessage, response: ServerResponse) => !!response.destroy()]
  ])("that %s is a typed failure", (_, door) =>
    run(
      Effect.gen(function* () {
        expect(yield* outcomes(yield* Bucket.open(door))).toEqual(all)
      })
    )
  )

  test("that does not know the key is a typed failure without secrets", () =>
    run(
      Effect.gen(function* () {
        const server = yield* Bucket.open()
        const stranger = { accessKeyId: "nobody", secretAccessKey: Redacted.make("canary") }
        const error = yield* using(server.url, (blobs) => Effect.flip(blobs.put(job, Buffer.alloc(10))), stranger)
        expect(error).toMatchObject({ _tag: "BlobUnavailable", reason: "S3 returned 403 – InvalidAccessKeyId" })
        expect(JSON.stringify(error)).not.toContain("canary")
      })
    ))

  test.each([
    ["the whole instead of a range", (response: ServerResponse) => response.writeHead(200).end(Buffer.alloc(200_000))],
    ["another range", (response: ServerResponse) => response.writeHead(206, { "content-range": "bytes 5-14/1000" }).end(Buffer.alloc(10))],
    [
      "more than was asked for",
      (response: ServerResponse) => response.writeHead(206, { "content-range": "bytes 0-999999/1000000" }).end(Buffer.alloc(1_000_000))
    ],
    [
      "fewer bytes than it says",
      (response: ServerResponse) => response.writeHead(206, { "content-range": "bytes 0-99/100" }).end(Buffer.alloc(10))
    ],
    [
      "a body cut off",
      (response: ServerResponse) =>
        response.writeHead(206, { "content-range": "bytes 0-99/100", "content-length": 100 }).write("x", () => response.destroy())
    ]
  ])("that answers with %s is a typed failure", (_, answer) =>
    run(
      Effect.gen(function* () {
        const server = yield* Bucket.open((_, response) => {
          answer(response)
          return true
        })
        const error = yield* using(server.url, (blobs) => Effect.flip(blobs.get(job, "0".repeat(64))))
        expect(error._tag).toBe("BlobUnavailable")
      })
    )
  )

  test("that hangs is a typed failure after the time limit, and the connection is closed", () =>
    run(
      Effect.gen(function* () {
        const server = yield* Bucket.open(() => true)
        yield* using(server.url, (blobs) =>
          Effect.gen(function* () {
            const putting = yield* Effect.forkChild(Effect.flip(blobs.put(job, Buffer.alloc(10))), { startImmediately: true })
            yield* server.arrivals
            yield* TestClock.adjust("1 minute")
            expect(yield* Fiber.join(putting)).toMatchObject({ _tag: "BlobUnavailable", reason: "a request exceeds the time limit" })
            yield* server.left
          })
        )
      }).pipe(Effect.provide(TestClock.layer()))
    ))

  test("is disconnected when a read is interrupted", () =>
    run(
      Effect.gen(function* () {
        const server = yield* Bucket.open()
        yield* using(server.url, (blobs) =>
          Effect.gen(function* () {
            const { id } = yield* blobs.put(job, Buffer.alloc(300_000))
            const { bytes } = yield* blobs.get(job, id)
            const before = server.asked.length
            server.use(() => server.asked.length > before + 1)
            const reading = yield* Effect.forkChild(Stream.runCollect(bytes), { startImmediately: true })
            while (server.asked.length <= before + 1) yield* server.arrivals
            yield* Fiber.interrupt(reading)
            yield* server.left
          })
        )
      })
    ))
})
