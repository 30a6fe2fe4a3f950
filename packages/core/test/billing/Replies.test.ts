import { StateStore } from "@millrace/event-sourcing"
import { Effect } from "effect"
import * as fc from "fast-check"
import { describe, expect } from "vitest"
import { arbitraryOf } from "../../../testing/src/Arbitraries.ts"
import { MAX_REPLY, REPLY_LIFETIME, StoredReply } from "../../src/billing/Replies.ts"
import { ofAccount } from "../../src/vault/Vault.ts"
import { elapse, host, makeBench, outcome, quiet, range, setting, testing } from "./Bench.ts"

const reply = (revision: number, data: string | null = `of ${revision}`): StoredReply => ({
  reservationId: `res_${revision}`,
  requestId: `req_${revision}`,
  fingerprint: "fingerprint",
  revision,
  data
})

describe("kept replies", () => {
  testing(
    "are found unchanged by account and key, at every host, for a day",
    Effect.gen(function* () {
      const { shared, here } = yield* setting()
      const { replies } = here
      const there = yield* host(shared, makeBench())
      yield* replies.keep("acc_1", "key", reply(1))
      yield* replies.keep("acc_1", "other", reply(2, null))
      yield* replies.keep("acc_2", "key", reply(3))
      const found = Effect.forEach(
        [
          ["acc_1", "key"],
          ["acc_1", "other"],
          ["acc_2", "key"],
          ["acc_2", "other"]
        ] as const,
        ([accountId, key]) => there.replies.find(accountId, key)
      )
      expect(yield* found).toEqual([reply(1), reply(2, null), reply(3), undefined])
      yield* elapse(REPLY_LIFETIME - 1)
      expect(yield* found).toEqual([reply(1), reply(2, null), reply(3), undefined])
      yield* elapse(1)
      expect(yield* found).toEqual([undefined, undefined, undefined, undefined])
    })
  )

  testing(
    "are returned unchanged for any content",
    Effect.gen(function* () {
      const { here } = yield* setting()
      const values = fc.sample(arbitraryOf(StoredReply), { numRuns: 100, seed: 1 })
      for (const [i, any] of values.entries()) {
        const value = { ...any, revision: Math.abs(any.revision) }
        yield* here.replies.keep("acc_1", `key ${i}`, value)
        expect(yield* here.replies.find("acc_1", `key ${i}`)).toEqual(value)
      }
    })
  )

  testing(
    "fail after a limited number of conflicts, because the call that keeps them cannot be interrupted",
    Effect.gen(function* () {
      const { here } = yield* setting()
      let writes = 0
      yield* here.through(({ states }) => ({
        states: {
          ...states,
          write: (changes) => {
            const conflict = changes.find(({ space }) => space === "replies")
            if (conflict === undefined) return states.write(changes)
            writes++
            return Effect.fail(new StateStore.StateConflict({ space: conflict.space, key: conflict.key }))
          }
        }
      }))
      const exit = yield* outcome(Effect.uninterruptible(here.replies.keep("acc_1", "key", reply(1))))
      expect([exit, writes]).toEqual(["StateUnavailable", 21])
      yield* here.heal
      yield* here.replies.keep("acc_1", "key", reply(1))
      expect(yield* here.replies.find("acc_1", "key")).toEqual(reply(1))
    })
  )

  testing(
    "that are too large are kept without their data",
    Effect.gen(function* () {
      const { here, shared } = yield* setting()
      yield* here.replies.keep("acc_1", "fits", reply(1, "x".repeat(MAX_REPLY)))
      yield* here.replies.keep("acc_1", "too long", reply(2, "x".repeat(MAX_REPLY + 1)))
      expect((yield* here.replies.find("acc_1", "fits"))?.data).toHaveLength(MAX_REPLY)
      expect(yield* here.replies.find("acc_1", "too long")).toEqual(reply(2, null))
      const sizes = (yield* shared.states.list("replies")).map(({ value }) => value.length)
      expect(Math.min(...sizes)).toBeLessThan(1_000)
    })
  )

  testing(
    "of a later hold stay and those of an earlier one are replaced, in any order and concurrently",
    Effect.gen(function* () {
      const { shared, here } = yield* setting()
      const hosts = [here, yield* host(shared, makeBench()), yield* host(shared, makeBench())] as const
      yield* here.replies.keep("acc_1", "key", reply(5))
      yield* here.replies.keep("acc_1", "key", reply(4))
      expect(yield* here.replies.find("acc_1", "key")).toEqual(reply(5))
      yield* here.replies.keep("acc_1", "key", reply(5, "again"))
      expect(yield* here.replies.find("acc_1", "key")).toEqual(reply(5, "again"))
      yield* here.replies.keep("acc_1", "key", reply(6))
      expect(yield* here.replies.find("acc_1", "key")).toEqual(reply(6))

      // Each reads before any of them writes
      for (const { through } of hosts) {
        yield* through(({ states }) => ({
          states: { ...states, write: (changes) => Effect.andThen(quiet, states.write(changes)) }
        }))
      }
      const kept = range(12).map((i) => (i * 7) % 12)
      yield* Effect.forEach(kept, (i) => (hosts[i % 3] ?? here).replies.keep("acc_1", "raced", reply(i)), { concurrency: "unbounded" })
      expect(yield* here.replies.find("acc_1", "raced")).toEqual(reply(11))
    })
  )

  testing(
    "are sealed: unreadable for another account, and for all after an erasure",
    Effect.gen(function* () {
      const { shared, here } = yield* setting()
      yield* here.replies.keep("acc_1", "key", reply(1, "canary"))
      const [entry] = yield* shared.states.list("replies")
      const value = entry?.value ?? new Uint8Array()
      expect(Buffer.from(value).toString("latin1")).not.toContain("canary")
      yield* here.vault.seal(ofAccount("acc_2"), "reply", "so that it has a key")
      yield* shared.states.write([{ _tag: "put", space: "replies", key: "acc_2/key", value }])
      expect(yield* outcome(here.replies.find("acc_2", "key"))).toBe("Tampered")
      yield* here.vault.destroy(ofAccount("acc_1"))
      expect(yield* outcome(here.replies.find("acc_1", "key"))).toBe("SubjectDestroyed")
      expect(yield* outcome(here.replies.keep("acc_1", "another", reply(2)))).toBe("SubjectDestroyed")
      expect(yield* shared.states.list("replies")).toHaveLength(2)
    })
  )
})
