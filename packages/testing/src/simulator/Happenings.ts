/** What happens at each step: callers and administrators do something, and now and then a host is disturbed. */
import { Credits, Job, type Operation } from "@millrace/core"
import { Effect } from "effect"
import type * as SeededRandom from "../SeededRandom.ts"
import { act, type Office } from "./Administrators.ts"
import { type Intent, insist } from "./Callers.ts"
import type { Host } from "./Host.ts"
import { follow, jobOf, known, wait } from "./JobCallers.ts"
import type { Stage } from "./Network.ts"
import type { Workload } from "./Workload.ts"

export const nonEmpty = <A>(all: ReadonlyArray<A>): readonly [A, ...ReadonlyArray<A>] => {
  const [first, ...rest] = all
  if (first === undefined) throw new Error("A simulation needs a host")
  return [first, ...rest]
}

/** One thing that callers or administrators do. */
export const happening = <Op extends Operation.Any>(
  office: Office<Op>,
  { offers }: Workload<Op>,
  intents: Array<Intent>,
  random: SeededRandom.SeededRandom
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { accounts } = office
    const what = random.below(20)
    const wanted = (): Intent => {
      const { operation, input } = random.pick(offers)
      const jobs = office.witness.jobs.size === 0 ? [] : known(office).map(({ jobId }) => jobId)
      const asked = input(random, jobs)
      const intent: Intent = {
        accountId: random.pick(nonEmpty(accounts)),
        operation: operation.key,
        input: asked,
        request: `${operation.key} ${JSON.stringify(asked)}`,
        ...(random.chance(0.7) ? { key: `k${intents.length}` } : {}),
        ...(random.chance(0.1) ? { maxCost: Credits.of(random.below(6_000)) } : {})
      }
      intents.push(intent)
      return intent
    }
    const again = (): Intent => intents[random.below(Math.max(1, intents.length))] ?? wanted()
    const pursued = (intent: Intent, random: SeededRandom.SeededRandom) =>
      Effect.flatMap(insist(office, intent, random), (call) => {
        const job = call && jobOf(call, office.familyOf)
        return job === undefined ? Effect.void : follow(office, job, random.fork("follow"))
      })
    const crowd = (intents: ReadonlyArray<Intent>) =>
      Effect.forEach(intents, (intent, i) => pursued(intent, random.fork(`${i}`)), { concurrency: "unbounded", discard: true })
    if (what < 9) return pursued(wanted(), random)
    if (what < 12) return pursued(again(), random)
    if (what < 15) {
      const intent = random.chance(0.5) ? wanted() : again()
      return crowd(Array.from({ length: 2 + random.below(3) }, () => intent))
    }
    if (what < 16) {
      const intent = again()
      const { key } = intent
      return crowd([intent, { ...wanted(), accountId: intent.accountId, ...(key === undefined ? {} : { key }) }])
    }
    return act(office, random)
  })

/** Stops a host in order. Where nothing keeps it from it, none of its jobs is left to wait for the end of a lease. */
const stopped = <Op extends Operation.Any>({ attempts, violated, witness, world }: Office<Op>, host: Host<Op>) =>
  Effect.gen(function* () {
    const { process } = host
    const since = { at: world.now, faults: host.faults }
    if (!(yield* host.stop)) return violated(`${host.name} does not stop`)
    if (process === undefined || process.crashed || !host.isServed(since)) return
    for (const attempt of attempts) {
      const state = witness.job(attempt.jobId).states.at(-1)
      if (attempt.process === process && !attempt.isDeaf && state?.status === "running" && state.attempt === attempt.attempt)
        violated(`${process.name} stopped, and did not hand ${attempt.jobId} back`)
    }
  })

/** A host crashes, now or at a write to come; is restarted; stands still; or is cut off. Those that went come again. */
export const disturbed = <Op extends Operation.Any>(
  office: Office<Op>,
  host: Host<Op>,
  random: SeededRandom.SeededRandom
): Effect.Effect<void> =>
  Effect.gen(function* () {
    switch (random.below(7)) {
      case 0:
        yield* Effect.replicateEffect(Effect.yieldNow, random.below(200), { discard: true })
        host.crash("for no reason")
        break
      case 1:
      case 2:
        host.lightFuse(random.pick<Stage>(["before", "sent", "arrived"]), random.below(6))
        yield* Effect.sleep(30_000)
        break
      case 3:
        return host.pause(random.below(random.pick([2_000, 120_000])))
      case 4:
      case 5:
        return host.cutOff(random.below(12), random.below(random.pick([4_000, 20_000, 240_000])), random.pick(["whole", "oneWay"]))
      default:
        yield* stopped(office, host)
    }
    yield* Effect.sleep(random.below(random.pick([10, 3_000, 60_000])))
    yield* host.start
    // Whoever waits for a job may come to it before it knows of anything
    const open = known(office).filter(({ jobId }) => Job.isOpen(office.witness.job(jobId).states.at(-1) ?? Job.Job.initial))
    const job = open[random.fork("waits").below(Math.max(1, open.length))]
    if (job !== undefined) yield* wait(office, host, job, 60_000)
  })
