/** The API keys of an account, by their owner: issue, list, rotate, revoke, over HTTP. */
import type { ApiKey } from "@millrace/core"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { type Answer, type Host, host, testing } from "./Host.ts"

const KEYS = "/api/v1/account/keys"
const LIMITS = "/api/v1/account/limits"
const OWNER: ReadonlyArray<ApiKey.Scope> = ["read", "operations", "keys"]

interface Key {
  readonly key_id: string
  readonly key: string
  readonly name: string | null
  readonly scopes: ReadonlyArray<string>
  readonly expires_at: string | null
  readonly current?: boolean
}

const dataOf = <A>({ json }: Answer): A => (json as { readonly data: A }).data
const errorOf = ({ json, status }: Answer) => [status, (json as { readonly error?: { readonly code: string } }).error?.code]
const bearerOf = (key: string) => ({ authorization: `Bearer ${key}` })

/** What the owner of an account does with a key. */
const owner = ({ call }: Host, headers: Record<string, string>) => ({
  list: Effect.map(call(KEYS, { headers }), (answer) => dataOf<{ readonly keys: ReadonlyArray<Key> }>(answer).keys),
  issue: (body: object = {}, more: Record<string, string> = {}) => call(KEYS, { method: "POST", headers: { ...headers, ...more }, body }),
  rotate: (id: string, body: object = {}) => call(`${KEYS}/${id}/rotate`, { method: "POST", headers, body }),
  revoke: (id: string) => call(`${KEYS}/${id}`, { method: "DELETE", headers }),
  use: (path: string) => Effect.map(call(path, { headers }), ({ status }) => status)
})

describe("the keys of an account", () => {
  testing(
    "are issued, shown once, listed without their secrets, and used",
    Effect.gen(function* () {
      const served = yield* host()
      const { bearer } = yield* served.account(1, OWNER)
      const mine = owner(served, bearer)
      const answer = yield* mine.issue({ name: "reports", scopes: ["read"] })
      expect([answer.status, answer.headers["x-credits-charged"]]).toEqual([201, "0"])
      const issued = dataOf<Key>(answer)
      expect(issued).toMatchObject({ name: "reports", scopes: ["read"], expires_at: null })
      expect(issued.key).toMatch(new RegExp(`^mr_live_${issued.key_id}_\\w{36}$`, "u"))
      const theirs = owner(served, bearerOf(issued.key))
      expect([yield* theirs.use(LIMITS), yield* theirs.use("/api/v1/bin/457173"), yield* theirs.use(KEYS)]).toEqual([200, 403, 403])
      const listed = yield* mine.list
      expect(listed.map(({ current, name }) => [name, current])).toEqual([
        [null, true],
        ["reports", false]
      ])
      const secret = issued.key.split("_")[3] ?? ""
      for (const text of [JSON.stringify(listed), JSON.stringify(yield* served.log), served.lines.join("\n")])
        expect(text).not.toContain(secret)
    })
  )

  testing(
    "are refused at once after they are revoked, by their owner only",
    Effect.gen(function* () {
      const served = yield* host()
      const [mine, theirs] = [yield* served.account(1, OWNER), yield* served.account(1, OWNER)]
      const issued = dataOf<Key>(yield* owner(served, mine.bearer).issue())
      const stranger = owner(served, theirs.bearer)
      for (const refused of [yield* stranger.revoke(issued.key_id), yield* stranger.rotate(issued.key_id)])
        expect(errorOf(refused)).toEqual([404, "not_found"])
      expect(yield* owner(served, bearerOf(issued.key)).use(LIMITS)).toBe(200)
      const revoked = yield* owner(served, mine.bearer).revoke(issued.key_id)
      expect(dataOf(revoked)).toEqual({ key_id: issued.key_id, revoked: true })
      expect(yield* owner(served, bearerOf(issued.key)).use(LIMITS)).toBe(401)
      expect(yield* owner(served, mine.bearer).list).toHaveLength(1)
      expect(errorOf(yield* owner(served, mine.bearer).rotate(issued.key_id))).toEqual([404, "not_found"])
      expect(errorOf(yield* owner(served, mine.bearer).revoke("no-key"))).toEqual([404, "not_found"])
    })
  )

  testing(
    "need the scope keys, give no scope that the issuer lacks, and do not last longer",
    Effect.gen(function* () {
      const served = yield* host()
      const { bearer } = yield* served.account(1, ["read", "operations"])
      expect(errorOf(yield* owner(served, bearer).issue())).toEqual([403, "insufficient_scope"])
      const limited = yield* served.account(1, ["keys", "read"])
      const mine = owner(served, limited.bearer)
      for (const body of [{}, { scopes: ["billing"] }, { scopes: ["read", "operations"] }, { scopes: [] }, { scopes: ["all"] }])
        expect(errorOf(yield* mine.issue(body))).toEqual([422, "invalid_request"])
      const soon = "1970-01-01T01:00:00.000Z"
      const brief = dataOf<Key>(yield* mine.issue({ scopes: ["keys", "read"], expires_at: soon }))
      const child = owner(served, bearerOf(brief.key))
      expect(errorOf(yield* child.issue({ scopes: ["read"], expires_at: "1970-01-01T02:00:00.000Z" }))).toEqual([422, "invalid_request"])
      expect(dataOf<Key>(yield* child.issue({ scopes: ["read"] })).expires_at).toBe(soon)
      // The new secret of a key that can do more, or lasts longer, is not for this one
      const own = (yield* mine.list)[0]?.key_id ?? ""
      expect(errorOf(yield* child.rotate(own))).toEqual([422, "invalid_request"])
      expect(errorOf(yield* mine.issue({ scopes: ["read"], expires_at: "1969-01-01T00:00:00.000Z" }))).toEqual([422, "invalid_request"])
      yield* TestClock.adjust("1 hour")
      expect(yield* child.use(LIMITS)).toBe(401)
    })
  )

  testing(
    "are rotated: both are good for the overlap, and then the old one ends",
    Effect.gen(function* () {
      const served = yield* host()
      const { bearer } = yield* served.account(1, OWNER)
      const mine = owner(served, bearer)
      const old = dataOf<Key>(yield* mine.issue({ name: "worker", scopes: ["read"] }))
      const next = dataOf<Key>(yield* mine.rotate(old.key_id, { overlap: 60 }))
      expect(next).toMatchObject({ name: "worker", scopes: ["read"], expires_at: null })
      const uses = Effect.all([owner(served, bearerOf(old.key)).use(LIMITS), owner(served, bearerOf(next.key)).use(LIMITS)])
      expect(yield* uses).toEqual([200, 200])
      expect(errorOf(yield* mine.rotate(old.key_id, { overlap: 60 }))).toEqual([404, "not_found"])
      yield* TestClock.adjust(59_999)
      expect(yield* uses).toEqual([200, 200])
      yield* TestClock.adjust(1)
      expect(yield* uses).toEqual([401, 200])
      const last = dataOf<Key>(yield* mine.rotate(next.key_id))
      expect(yield* uses).toEqual([401, 401])
      expect(yield* owner(served, bearerOf(last.key)).use(LIMITS)).toBe(200)
      for (const overlap of [-1, 0.5, 7 * 86_400 + 1]) expect((yield* mine.rotate(last.key_id, { overlap })).status).toBe(422)
    })
  )

  testing(
    "are rotated once, however many ask at once",
    Effect.gen(function* () {
      const served = yield* host()
      const { bearer } = yield* served.account(1, OWNER)
      const mine = owner(served, bearer)
      const old = dataOf<Key>(yield* mine.issue())
      const answers = yield* Effect.all(
        Array.from({ length: 16 }, () => mine.rotate(old.key_id, { overlap: 60 })),
        { concurrency: "unbounded" }
      )
      expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201, 404]))
      // That of the caller, the old one and the new one
      expect(yield* mine.list).toHaveLength(3)
    })
  )

  testing(
    "are 100 at most, however many are asked for at once",
    Effect.gen(function* () {
      const served = yield* host()
      const { bearer } = yield* served.account(1, OWNER)
      const mine = owner(served, bearer)
      const answers = yield* Effect.all(
        Array.from({ length: 120 }, () => mine.issue()),
        { concurrency: 16 }
      )
      expect(answers.filter(({ status }) => status === 201)).toHaveLength(99)
      expect(yield* mine.list).toHaveLength(100)
      expect(errorOf(yield* mine.issue())).toEqual([422, "invalid_request"])
      const first = answers.find(({ status }) => status === 201)
      expect((yield* mine.revoke(first === undefined ? "" : dataOf<Key>(first).key_id)).status).toBe(200)
      expect((yield* mine.issue()).status).toBe(201)
    })
  )

  testing(
    "are issued once under an idempotency key, and their secret is not kept for a replay",
    Effect.gen(function* () {
      const served = yield* host()
      const { bearer } = yield* served.account(1, OWNER)
      const mine = owner(served, bearer)
      const once = { "idempotency-key": "one" }
      expect((yield* mine.issue({}, once)).status).toBe(201)
      expect(errorOf(yield* mine.issue({}, once))).toEqual([409, "reply_unavailable"])
      expect(yield* mine.list).toHaveLength(2)
    })
  )
})
