import { Effect } from "effect"
import fc from "fast-check"
import { describe, expect } from "vitest"
import { ofAccount, Vault } from "../../src/vault/Vault.ts"
import { CHARGED, elapse, logText, minutes, outcome, quiet, seconds, testing, until } from "../billing/Bench.ts"
import { host, idOf, jobEvents, makeBench, setting } from "./JobBench.ts"

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

  for (const documents of ["state", "events"] as const)
    testing(
      `are read as they were kept (${documents}), by their own job, purpose and hash alone, until they are destroyed`,
      Effect.gen(function* () {
        const { accountId, here, to } = yield* setting({ jobs: { documents } })
        // Reads both, whatever it writes
        const there = yield* host(to, makeBench())
        const kept = fc.sample(fc.string({ unit: "grapheme", maxLength: 2_000 }), 20)
        for (const [n, text] of kept.entries()) {
          const owner = { accountId, jobId: `job_${n}` }
          const first = yield* here.jobs.documents.keepFirst(owner, "input", text)
          const result = yield* here.jobs.documents.keep(owner, "result", text.repeat(2))
          for (const { jobs } of [here, there]) {
            expect(yield* jobs.documents.open(owner, "input", first)).toBe(text)
            expect(yield* jobs.documents.open(owner, "result", result)).toBe(text.repeat(2))
          }
          const misread = [
            here.jobs.documents.open(owner, "result", first),
            here.jobs.documents.open(owner, "input", { ...first, hash: result.hash }),
            here.jobs.documents.open(owner, "input", { ...first, ...("sealed" in first ? { sealed: "v1.AAAA" } : { hash: "" }) })
          ]
          for (const read of misread) expect(yield* outcome(read)).toBe("Tampered")
          yield* here.jobs.documents.destroy(owner)
          for (const { jobs } of [here, there]) expect(yield* outcome(jobs.documents.open(owner, "input", first))).toBe("SubjectDestroyed")
        }
        expect(yield* to.states.list("jobs")).toEqual([])
      })
    )
})

describe("documents in events", () => {
  const inEvents = { jobs: { documents: "events" } } as const

  testing(
    "are sealed in the log, not in the state store, and unreadable once the job is purged",
    Effect.gen(function* () {
      const { accountId, here, to } = yield* setting({ jobs: { documents: "events", retention: "1 minute" } })
      const id = idOf(yield* here.create(accountId, { text: "canary" }))
      yield* quiet
      // A host that writes them to the state store reads these, too
      const there = yield* host(to, makeBench(), { jobs: { runner: false } })
      expect(yield* there.read(accountId, id)).toMatchObject({ status: "succeeded", text: "CANARY" })
      expect(yield* here.balance(accountId)).toEqual(CHARGED)
      expect(yield* to.states.list("jobs")).toEqual([])
      expect((yield* logText(to)).toLowerCase()).not.toContain("canary")
      const accepted = (yield* jobEvents(to)).map(({ event }) => event).find(({ _tag }) => _tag === "JobAccepted")
      if (accepted?._tag !== "JobAccepted") throw new Error("It was accepted")
      yield* elapse(minutes(2))
      const opened = here.jobs.documents.open({ accountId, jobId: id }, "input", accepted.input)
      expect(yield* outcome(opened)).toBe("SubjectDestroyed")
    })
  )

  testing(
    "are small: large ones and checkpoints are in the state store",
    Effect.gen(function* () {
      const { accountId, bench, here, to } = yield* setting(inEvents)
      bench.answer = ({ text }, job) => Effect.andThen(job.progress(50, { at: 1 }), Effect.succeed({ data: { text: text.slice(0, 10) } }))
      const id = idOf(yield* here.create(accountId, { text: "x".repeat(5_000) }))
      yield* until(
        Effect.map(here.read(accountId, id), ({ status }) => status === "succeeded"),
        seconds(5)
      )
      expect(yield* to.states.list("jobs")).toHaveLength(2)
      for (const { event } of yield* jobEvents(to)) expect(JSON.stringify(event).length).toBeLessThan(2_500)
    })
  )

  testing(
    "are unreadable once the account is erased, so that a job that waits fails and is free",
    Effect.gen(function* () {
      const { accountId, here, to } = yield* setting({ jobs: { documents: "events", runner: false } })
      const id = idOf(yield* here.create(accountId))
      yield* Effect.provideContext(
        Effect.flatMap(Vault, (vault) => vault.destroy(ofAccount(accountId))),
        here.context
      )
      const there = yield* host(to, makeBench())
      yield* elapse(seconds(5))
      expect(yield* there.read(accountId, id)).toMatchObject({ status: "failed", failure: "Unreadable" })
    })
  )
})
