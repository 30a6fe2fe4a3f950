/** The rows of jobs once more, for what the specification says of them all: whose they are, how often, and what while the store is away. */
import { Effect } from "effect"
import { describe, expect, test } from "vitest"
import { least } from "./Cases.ts"
import { host, hostWith, testing } from "./Host.ts"
import type { Answer } from "./Requests.ts"
import * as Requests from "./Requests.ts"
import type { Row } from "./Row.ts"
import { rows } from "./Rows.ts"

const CREDITS = 1_000
/** An id that no job has. */
const NEVER = "job_01M7ZQTERXJYEB32AVSJ0C2T39"

const ofJobs = rows.filter(({ key, madeBy, makesJob }) => makesJob || madeBy !== undefined || key === "speech.voices")
const read = ofJobs.filter(({ madeBy }) => madeBy !== undefined)

const send = (url: string, row: Row, key: string, job?: string) =>
  Effect.promise(() => Requests.send(url, row, job === undefined ? least(row).input : { ...least(row).input, job }, key))

/** Makes the job that the row is about, if it is about one. */
const made = Effect.fnUntraced(function* (url: string, row: Row, key: string) {
  const maker = rows.find(({ key }) => key === row.madeBy)
  if (maker === undefined) return undefined
  const { data } = JSON.parse((yield* send(url, maker, key)).body)
  return String(data.id ?? data.job_id)
})

const told = ({ body, headers, status }: Answer) => [status, JSON.parse(body).error.code, headers.has("x-credits-charged")]

/** What two answers must not differ in, if nobody is to tell one from the other. */
const anonymous = ({ body, headers, status }: Answer) => ({
  status,
  body: body.replace(/"request_id":"[^"]*"/u, ""),
  headers: [...headers.keys()].sort()
})

test("the rows are the twelve of images, speech and validation jobs", () => {
  expect(ofJobs).toHaveLength(12)
})

describe.each(read)("$method $path", (row) => {
  testing(
    "answers alike for an unknown, a foreign and a purged job",
    Effect.gen(function* () {
      const { url, open, purge } = yield* host
      const [own, other] = [yield* open(CREDITS), yield* open(CREDITS)]
      const job = (yield* made(url, row, own.key)) ?? ""
      const never = yield* send(url, row, own.key, NEVER)
      expect(told(never)).toEqual([404, "not_found", false])
      expect(anonymous(yield* send(url, row, other.key, job))).toEqual(anonymous(never))
      yield* purge(job)
      expect(anonymous(yield* send(url, row, own.key, job))).toEqual(anonymous(never))
    })
  )
})

describe.each(ofJobs)("$method $path", (row) => {
  testing(
    "is refused above the rate, and is free",
    Effect.gen(function* () {
      // A window of thirty years
      const { url, open, balance } = yield* hostWith({ rateLimit: { limit: 2, window: 1e9 } })
      const { accountId, key } = yield* open(CREDITS)
      const job = row.madeBy === undefined ? undefined : NEVER
      const billing = rows.find(({ key }) => key === "account.billing")
      if (billing === undefined) throw new Error("Nothing to ask for")
      for (const _ of [1, 2]) expect((yield* send(url, billing, key)).status).toBe(200)
      const answer = yield* send(url, row, key, job)
      expect(told(answer)).toEqual([429, "rate_limited", false])
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0)
      expect(yield* balance(accountId)).toMatchObject({ available: CREDITS * 1000, held: 0 })
    })
  )

  testing(
    "answers 503 and is free while the store is away, and answers once it is back",
    Effect.gen(function* () {
      let isDown = false
      const { url, open, balance } = yield* hostWith({ isDown: () => isDown })
      const { accountId, key } = yield* open(CREDITS)
      const job = yield* made(url, row, key)
      const before = yield* balance(accountId)
      isDown = true
      const answer = yield* send(url, row, key, job)
      expect(told(answer)).toEqual([503, "store_unavailable", false])
      isDown = false
      // The job's own hold may have been settled meanwhile; nothing else is held
      const after = yield* balance(accountId)
      expect(after.available).toBe(before.available)
      expect(after.held).toBeLessThanOrEqual(before.held)
      expect((yield* send(url, row, key, job)).status).toBe(row.status)
    })
  )
})

describe.each(ofJobs.filter(({ key, makesJob }) => key === "speech.voices" || (makesJob && !key.startsWith("email."))))(
  "$method $path",
  (row) => {
    testing(
      "reports a missing provider like the catalog, and is free",
      Effect.gen(function* () {
        const { url, open, balance } = yield* hostWith({ isConfigured: false })
        const { accountId, key } = yield* open(CREDITS)
        expect(told(yield* send(url, row, key))).toEqual([503, "upstream_not_configured", false])
        expect(yield* balance(accountId)).toMatchObject({ available: CREDITS * 1000, held: 0 })
        const catalog = yield* Effect.promise(() => fetch(`${url}/api/v1/catalog/capabilities/${row.key}`).then((answer) => answer.json()))
        expect(catalog).toMatchObject({
          data: { availability: { available: false, reason: expect.stringMatching(/^No provider for \w+ is set up at this host\.$/u) } }
        })
      })
    )
  }
)
