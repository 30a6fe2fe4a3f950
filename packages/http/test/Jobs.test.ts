/** Jobs as callers see them: accepted, asked for, waited for, cancelled, and the files that they make. */
import { Deferred, Effect, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { png } from "../../upstreams/test/images/Png.ts"
import { type Answer, eventually, type Host, host, testing } from "./Host.ts"

type Bearer = Readonly<Record<string, string>>

const TTS = "/api/v1/audio/tts"

const speak = ({ call }: Host, text: string, headers: Bearer) => call(TTS, { method: "POST", headers, body: { text } })

const idOf = ({ json }: Answer): string =>
  Schema.decodeUnknownSync(Schema.Struct({ data: Schema.Struct({ id: Schema.String }) }))(json).data.id

/** Reads a job until it has ended. */
const ended = ({ call }: Host, path: string, headers: Bearer) =>
  eventually(
    call(path, { headers }),
    ({ json }) => Schema.decodeUnknownSync(Schema.Struct({ status: Schema.String }))(json).status === "success"
  )

/** What two answers must not differ in, if nobody is to tell one from the other. */
const anonymous = ({ status, json, headers }: Answer) => ({
  status,
  json: JSON.stringify(json).replaceAll(/"request_id":"[^"]*"/gu, ""),
  headers: Object.keys(headers).sort()
})

describe("a job", () => {
  testing(
    "is accepted at once, held for, and charged when it succeeds",
    Effect.gen(function* () {
      const hosts = yield* host()
      const { call, account, balance, bench } = hosts
      const { accountId, bearer } = yield* account(20)
      const accepted = yield* speak(hosts, "wait for it", bearer)
      expect(accepted.json).toMatchObject({ status: "pending", data: { id: expect.stringMatching(/^job_/u), status: "processing" } })
      expect([accepted.status, accepted.headers]).toMatchObject([
        200,
        { "retry-after": "1", "x-credits-charged": "0", "x-credits-balance": "15" }
      ])
      const path = `${TTS}/${idOf(accepted)}`
      yield* eventually(
        Effect.sync(() => bench.started.length),
        (count) => count === 1
      )
      const running = yield* call(path, { headers: bearer })
      expect(running.json).toMatchObject({ status: "pending", data: { job_id: idOf(accepted), status: "processing", download_url: null } })
      expect(running.headers).toMatchObject({ "retry-after": "1", "x-credits-charged": "0" })
      expect((yield* call(`${path}/artifact`, { headers: bearer })).status).toBe(404)
      expect(yield* balance(accountId)).toMatchObject({ available: 15_000, held: 5_000 })
      expect((yield* call("/ready")).json).toMatchObject({ jobs: { running: 1, leader: true, caught_up: true, failing: 0 } })

      yield* Deferred.succeed(bench.finish, undefined)
      const done = yield* ended(hosts, path, bearer)
      expect(done.json).toMatchObject({ data: { status: "completed", download_url: `${path}/artifact`, parts: 1, error: null } })
      expect(done.headers["retry-after"]).toBeUndefined()
      yield* eventually(balance(accountId), ({ available, held }) => available === 15_000 && held === 0)
    })
  )

  testing(
    "is awaited for as long as the caller prefers",
    Effect.gen(function* () {
      const hosts = yield* host()
      const { account, bench } = hosts
      const { bearer } = yield* account()
      const calling = yield* Effect.forkChild(speak(hosts, "at once", { ...bearer, prefer: "respond-async, wait=20" }))
      yield* eventually(
        Effect.sync(() => calling.pollUnsafe()),
        (exit) => exit !== undefined
      )
      const prompt = yield* Fiber.join(calling)
      expect(prompt.json).toMatchObject({ status: "success", data: { status: "succeeded" } })
      expect(prompt.headers).toMatchObject({ "preference-applied": "wait=20" })
      expect(prompt.headers["retry-after"]).toBeUndefined()

      const waiting = yield* Effect.forkChild(speak(hosts, "wait for it", { ...bearer, prefer: "wait=20" }))
      yield* eventually(
        Effect.sync(() => bench.started.length),
        (count) => count === 2
      )
      yield* TestClock.adjust("21 seconds")
      const patient = yield* Fiber.join(waiting)
      expect(patient.json).toMatchObject({ status: "pending", data: { status: "processing" } })
      expect(patient.headers).toMatchObject({ "preference-applied": "wait=20", "retry-after": "1" })
      // A host that closes lets what runs come to its end
      yield* Deferred.succeed(bench.finish, undefined)
    })
  )

  testing(
    "is made once under one key, and replayed as first answered",
    Effect.gen(function* () {
      const hosts = yield* host()
      const { account, balance, bench } = hosts
      const { accountId, bearer } = yield* account(20)
      const headers = { ...bearer, "idempotency-key": "one" }
      const first = yield* speak(hosts, "the same", headers)
      const again = yield* speak(hosts, "the same", headers)
      expect(again.body).toBe(first.body)
      expect(again.headers["idempotent-replayed"]).toBe("true")
      yield* ended(hosts, `${TTS}/${idOf(first)}`, bearer)
      expect((yield* speak(hosts, "the same", headers)).body).toBe(first.body)
      expect(bench.started).toEqual(["the same"])
      yield* eventually(balance(accountId), ({ available, held }) => available === 15_000 && held === 0)
      expect((yield* speak(hosts, "another", headers)).json).toMatchObject({ error: { code: "idempotency_key_reused" } })
    })
  )

  testing(
    "is stopped and free when cancelled while it runs; a finished one is deleted and stays paid",
    Effect.gen(function* () {
      const hosts = yield* host()
      const { call, account, balance, bench } = hosts
      const { accountId, bearer: headers } = yield* account(20)
      const running = `${TTS}/${idOf(yield* speak(hosts, "wait for it", headers))}`
      yield* eventually(
        Effect.sync(() => bench.started.length),
        (count) => count === 1
      )
      const cancelled = yield* call(running, { method: "DELETE", headers })
      expect([cancelled.status, cancelled.json]).toMatchObject([200, { status: "success", data: { cancelled: true } }])
      yield* eventually(
        Effect.sync(() => bench.interrupted),
        (texts) => texts.includes("wait for it")
      )
      yield* eventually(balance(accountId), ({ available, held }) => available === 20_000 && held === 0)

      const done = `${TTS}/${idOf(yield* speak(hosts, "said", headers))}`
      yield* ended(hosts, done, headers)
      expect((yield* call(done, { method: "DELETE", headers })).json).toMatchObject({ data: { cancelled: false } })
      for (const path of [running, done]) {
        for (const [method, place] of [
          ["GET", path],
          ["DELETE", path],
          ["GET", `${path}/artifact`]
        ] as const)
          expect([method, place, (yield* call(place, { method, headers })).status]).toEqual([method, place, 404])
      }
      yield* eventually(balance(accountId), ({ available, held }) => available === 15_000 && held === 0)
    })
  )

  testing(
    "is answered alike if it is another account's, unknown, purged, or has a malformed id",
    Effect.gen(function* () {
      const hosts = yield* host()
      const { call, account } = hosts
      const [ours, theirs] = [yield* account(), yield* account()]
      const there = idOf(yield* speak(hosts, "ours", ours.bearer))
      yield* ended(hosts, `${TTS}/${there}`, ours.bearer)
      const gone = idOf(yield* speak(hosts, "gone", theirs.bearer))
      yield* ended(hosts, `${TTS}/${gone}`, theirs.bearer)
      yield* call(`${TTS}/${gone}`, { method: "DELETE", headers: theirs.bearer })
      for (const [method, suffix] of [
        ["GET", ""],
        ["DELETE", ""],
        ["GET", "/artifact"]
      ] as const) {
        const answers = yield* Effect.forEach([there, "job_01JD7X2M9G4YQ0V5Z8K3T6W1RB", gone, "x"], (id) =>
          call(`${TTS}/${id}${suffix}`, { method, headers: theirs.bearer })
        )
        expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404])
        expect(new Set(answers.map((answer) => JSON.stringify(anonymous(answer)))).size).toBe(1)
      }
      // Nor is a job of another kind what it is not
      expect((yield* call(`/api/v1/ai/images/${there}`, { headers: ours.bearer })).status).toBe(404)
      expect((yield* call(`${TTS}/${there}`, { headers: ours.bearer })).status).toBe(200)
    })
  )

  testing(
    "reports why it failed, as far as the caller can act on it, and is free",
    Effect.gen(function* () {
      const hosts = yield* host()
      const { account, balance } = hosts
      const { accountId, bearer } = yield* account(20)
      const { json } = yield* ended(hosts, `${TTS}/${idOf(yield* speak(hosts, "refuse this", bearer))}`, bearer)
      expect(json).toMatchObject({ data: { status: "failed", download_url: null, error: "text: cannot be said" } })
      yield* eventually(balance(accountId), ({ available, held }) => available === 20_000 && held === 0)
    })
  )

  testing(
    "is refused before its hold for bad input, price, or a full queue",
    Effect.gen(function* () {
      const hosts = yield* host({ jobs: { queueLimit: 1 } })
      const { account, balance, bench, call } = hosts
      const [rich, poor] = [yield* account(20), yield* account(4.999)]
      const voice = yield* call(TTS, { method: "POST", headers: rich.bearer, body: { text: "x", voice: "e" } })
      expect([voice.status, voice.json]).toMatchObject([422, { error: { message: expect.stringContaining("close to it: en") } }])
      expect([(yield* speak(hosts, "x", poor.bearer)).status, (yield* balance(poor.accountId)).held]).toEqual([402, 0])
      yield* speak(hosts, "wait for it", rich.bearer)
      yield* eventually(
        Effect.sync(() => bench.started.length),
        (count) => count === 1
      )
      const full = yield* eventually(speak(hosts, "wait, too", rich.bearer), ({ status }) => status === 503)
      expect(full.json).toMatchObject({ error: { code: "queue_full" } })
      expect(full.headers).toMatchObject({ "retry-after": "5", "x-should-retry": "true" })
      yield* Deferred.succeed(bench.finish, undefined)
    })
  )
})

describe("a file", () => {
  testing(
    "is sent whole, in part, or not at all to a client that has it",
    Effect.gen(function* () {
      const hosts = yield* host()
      const { call, account } = hosts
      const { bearer } = yield* account()
      const path = `${TTS}/${idOf(yield* speak(hosts, "0123456789", bearer))}`
      yield* ended(hosts, path, bearer)
      const get = (headers: Bearer = {}) => call(`${path}/artifact`, { headers: { ...bearer, ...headers } })

      const whole = yield* get()
      expect([whole.status, whole.body]).toEqual([200, "0123456789"])
      expect(whole.headers).toMatchObject({
        "content-type": "audio/mpeg",
        "content-length": "10",
        "accept-ranges": "bytes",
        "cache-control": "private, no-store",
        "content-disposition": expect.stringMatching(/^attachment; filename="job_\w+\.mp3"$/u),
        "x-content-type-options": "nosniff",
        etag: expect.stringMatching(/^"[^"]+"$/u)
      })
      const etag = String(whole.headers.etag)

      for (const [range, body, shown] of [
        ["bytes=0-3", "0123", "bytes 0-3/10"],
        ["bytes=4-", "456789", "bytes 4-9/10"],
        ["bytes=-2", "89", "bytes 8-9/10"],
        ["bytes=8-99", "89", "bytes 8-9/10"]
      ] as const) {
        const part = yield* get({ range })
        expect([part.status, part.body, part.headers["content-range"]]).toEqual([206, body, shown])
      }
      for (const range of ["bytes=3-1", "bytes=0-1,4-5", "lines=1-2", "bytes=-"])
        expect([range, (yield* get({ range })).status]).toEqual([range, 200])
      for (const range of ["bytes=10-", "bytes=-0"]) {
        const past = yield* get({ range })
        expect([past.status, past.json, past.headers["content-range"]]).toMatchObject([
          416,
          { error: { code: "range_not_satisfiable" } },
          "bytes */10"
        ])
      }
      expect((yield* get({ range: "bytes=0-3", "if-range": etag })).status).toBe(206)
      expect((yield* get({ range: "bytes=0-3", "if-range": '"another"' })).body).toBe("0123456789")
      for (const tag of [etag, `W/${etag}`, `"another", ${etag}`, "*"]) {
        const same = yield* get({ "if-none-match": tag })
        expect([same.status, same.body, same.headers.etag]).toEqual([304, "", etag])
      }
      expect((yield* get({ "if-none-match": '"another"' })).status).toBe(200)
    })
  )

  testing(
    "may be one of several of a job",
    Effect.gen(function* () {
      const hosts = yield* host()
      const { call, account } = hosts
      const { bearer } = yield* account()
      const made = yield* call("/api/v1/ai/images", { method: "POST", headers: bearer, body: { prompt: "a mill", samples: 3 } })
      const path = `/api/v1/ai/images/${idOf(made)}`
      const { json } = yield* ended(hosts, path, bearer)
      expect(json).toMatchObject({ data: { status: "completed", parts: 3 } })
      for (const part of [1, 2, 3]) {
        const { status, headers } = yield* call(`${path}/artifact?part=${part}`, { headers: bearer })
        expect([status, headers["content-type"]]).toEqual([200, "image/png"])
      }
      expect((yield* call(`${path}/artifact?part=4`, { headers: bearer })).status).toBe(404)
      const edited = yield* call("/api/v1/ai/images/edit", {
        method: "POST",
        headers: bearer,
        body: { prompt: "in snow", job_id: idOf(made) }
      })
      expect((yield* ended(hosts, `/api/v1/ai/images/${idOf(edited)}`, bearer)).json).toMatchObject({ data: { status: "completed" } })
    })
  )
})

describe("input that no job can process", () => {
  const PICTURE = png(20, 10)
  const EDIT = "/api/v1/ai/images/edit"
  const cut = (bytes: number) => PICTURE.subarray(0, bytes).toString("base64")

  testing(
    "is refused before credits are held or events are written",
    Effect.gen(function* () {
      const { account, balance, call, log } = yield* host()
      const { accountId, bearer } = yield* account(100)
      const before = { balance: yield* balance(accountId), events: (yield* log).length }
      const refusal = (path: string, body: object) =>
        Effect.map(call(path, { method: "POST", headers: bearer, body }), ({ json, status }) => ({ status, json }))
      const edits: ReadonlyArray<readonly [field: string, input: Readonly<Record<string, string>>]> = [
        ...[
          "mill",
          "/mill.png",
          "http://",
          "ftp://example.com/mill.png",
          "file:///etc/passwd",
          "data:image/png;base64,AA==",
          "javascript:1"
        ]
          .concat("https://ada:secret@example.com/mill.png")
          .map((image_url) => ["image_url", { image_url }] as const),
        ...["AAAA", "bm8gcGljdHVyZQ==", cut(8), cut(24), cut(50), "%%%"].map((image) => ["image", { image }] as const),
        ["image", { image: `data:image/png;base64,${cut(40)}` }]
      ]
      for (const [field, input] of edits)
        expect([input, yield* refusal(EDIT, { prompt: "in snow", ...input })]).toMatchObject([
          input,
          { status: 422, json: { error: { code: "invalid_request", message: expect.stringMatching(new RegExp(`^${field}: `, "u")) } } }
        ])
      for (const text of [" ", "\n\n", "\u200b", "\u0000"])
        expect([text, yield* refusal(TTS, { text })]).toMatchObject([text, { status: 422 }])
      expect({ balance: yield* balance(accountId), events: (yield* log).length }).toEqual(before)
      for (const body of [
        { image: cut(PICTURE.length) },
        { image: `data:image/png;base64,${cut(PICTURE.length)}` },
        { image_url: "http://example.com/mill.png" }
      ])
        expect((yield* refusal(EDIT, { prompt: "in snow", ...body })).status).toBe(200)
    })
  )
})

describe("pages", () => {
  testing(
    "link to each other",
    Effect.gen(function* () {
      const hosts = yield* host()
      const { call, account } = hosts
      const { bearer } = yield* account()
      const emails = Array.from({ length: 60 }, (_, n) => `ada${n}@example.org`)
      const made = yield* call("/api/v1/email/validation-jobs", { method: "POST", headers: bearer, body: { emails } })
      expect([made.status, made.json]).toMatchObject([201, { status: "pending", data: { status: "processing", total_emails: 60 } }])
      const { job_id } = Schema.decodeUnknownSync(Schema.Struct({ data: Schema.Struct({ job_id: Schema.String }) }))(made.json).data
      const path = `/api/v1/email/validation-jobs/${job_id}`
      const first = yield* ended(hosts, path, bearer)
      expect(first.json).toMatchObject({ data: { status: "completed", progress: 100, total: 60, checked: 60, valid_count: 60 } })
      const linked = (page: number, rel: string) => `<${path}?page=${page}&per_page=25>; rel="${rel}"`
      expect(first.headers["link"]).toBe([linked(1, "first"), linked(2, "next"), linked(3, "last")].join(", "))
      const middle = yield* call(`${path}?page=2`, { headers: bearer })
      expect(middle.headers["link"]).toBe([linked(1, "first"), linked(1, "prev"), linked(3, "next"), linked(3, "last")].join(", "))
      const last = yield* call(`${path}?page=3&per_page=25`, { headers: bearer })
      expect(last.headers["link"]).toBe([linked(1, "first"), linked(2, "prev"), linked(3, "last")].join(", "))
      const all = [first, middle, last].flatMap(
        ({ json }) =>
          Schema.decodeUnknownSync(Schema.Struct({ data: Schema.Struct({ results: Schema.Array(Schema.Unknown) }) }))(json).data.results
      )
      expect(all).toHaveLength(60)
      expect((yield* call(`${path}?page=9`, { headers: bearer })).json).toMatchObject({ data: { results: [] } })
    })
  )
})
