import { Effect } from "effect"
import { describe, expect } from "vitest"
import { outcome, testing } from "../billing/Bench.ts"
import { setting } from "./JobBench.ts"

describe("the documents of a job", () => {
  testing(
    "fail to be removed after a limited number of pages, because the cancellation that removes them cannot be interrupted",
    Effect.gen(function* () {
      const { accountId, here } = yield* setting()
      const owner = { accountId, jobId: "job_1" }
      yield* here.jobs.documents.keep(owner, "input", "text")
      let removals = 0
      yield* here.through(({ states }) => ({
        states: {
          ...states,
          write: (changes) => {
            if (!changes.some(({ _tag, space }) => _tag === "remove" && space === "jobs")) return states.write(changes)
            return Effect.sync(() => ++removals)
          }
        }
      }))
      expect(yield* outcome(Effect.uninterruptible(here.jobs.documents.destroy(owner)))).toBe("StateUnavailable")
      expect(removals).toBe(100)
      yield* here.heal
      expect(yield* outcome(here.jobs.documents.destroy(owner))).toBeUndefined()
    })
  )
})
