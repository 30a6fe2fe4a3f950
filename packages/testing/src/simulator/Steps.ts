/** The steps of a simulation: in each a caller or an administrator does something, and faults may follow. */
import { Credits } from "@millrace/core"
import { Effect, type Fiber } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import * as AdminActor from "./AdminActor.ts"
import { callWithRetries, requestOf } from "./Callers.ts"
import { checkInvariants } from "./checkers/index.ts"
import * as CodeActor from "./codes/Actor.ts"
import * as InboxActor from "./inboxes/Actor.ts"
import { follow, jobOf, knownJobs } from "./JobCallers.ts"
import { skipTime } from "./Leaps.ts"
import * as Nemesis from "./Nemesis.ts"
import * as OpenActor from "./OpenActor.ts"
import * as PaymentActor from "./payments/Actor.ts"
import * as PeopleActor from "./people/Actor.ts"
import * as ProxyActor from "./proxies/Actor.ts"
import type { Intent } from "./Records.ts"
import { nonEmpty, pickAny, type Simulation } from "./Simulation.ts"
import * as SubscriptionActor from "./subscriptions/Actor.ts"
import * as WebhookActor from "./WebhookActor.ts"

/** Steps between two checks of the invariants of the log. */
const CHECK_EVERY = 12

/** Runs all steps. Adds what callers want to `intents`; returns the fibers of all actors. */
export const run = (simulation: Simulation, intents: Array<Intent>): Effect.Effect<ReadonlyArray<Fiber.Fiber<unknown>>> =>
  Effect.gen(function* () {
    const actors: Array<Fiber.Fiber<unknown>> = []
    const { faults, goOn, hosts, onStep, random, records, report, steps } = simulation
    for (let step = 0; step < steps && goOn(); step++) {
      const own = random.fork(`step ${step}`)
      onStep(step + 1)
      yield* Effect.sleep(own.below(own.pick([1, 30, 400, 5_000, 40_000])))
      actors.push(yield* Effect.forkChild(act(simulation, intents, own)))
      if (own.chance(faults.hosts)) actors.push(yield* Effect.forkChild(Nemesis.disturb(simulation, own.pick(nonEmpty(hosts)), own)))
      const opens = own.fork("opens")
      if (opens.chance(simulation.opens)) actors.push(yield* Effect.forkChild(OpenActor.act(simulation, opens)))
      const webhooks = own.fork("webhooks")
      if (webhooks.chance(simulation.webhooks)) actors.push(yield* Effect.forkChild(WebhookActor.act(simulation, webhooks)))
      const inboxes = own.fork("inboxes")
      if (inboxes.chance(simulation.inboxes)) actors.push(yield* Effect.forkChild(InboxActor.act(simulation, intents, inboxes)))
      const codes = own.fork("codes")
      if (codes.chance(simulation.codes)) actors.push(yield* Effect.forkChild(CodeActor.act(simulation, intents, codes)))
      const proxies = own.fork("proxies")
      if (proxies.chance(simulation.proxies)) actors.push(yield* Effect.forkChild(ProxyActor.act(simulation, intents, proxies)))
      const payments = own.fork("payments")
      if (payments.chance(simulation.payments)) actors.push(yield* Effect.forkChild(PaymentActor.act(simulation, intents, payments)))
      const subscriptions = own.fork("subscriptions")
      if (subscriptions.chance(simulation.subscriptions))
        actors.push(yield* Effect.forkChild(SubscriptionActor.act(simulation, intents, subscriptions)))
      const people = own.fork("people")
      if (people.chance(simulation.people)) actors.push(yield* Effect.forkChild(PeopleActor.act(simulation, people)))
      const clocks = own.fork("clocks")
      if (clocks.chance(faults.clocks)) clocks.pick(nonEmpty(hosts)).stepClock(clocks)
      if (own.chance(faults.leaps)) skipTime(simulation, own)
      if (step % CHECK_EVERY === 0) checkInvariants(records.recorder, report)
    }
    return actors
  })

/** One thing that callers or an administrator do. */
const act = (simulation: Simulation, intents: Array<Intent>, random: SeededRandom): Effect.Effect<unknown> =>
  Effect.suspend((): Effect.Effect<unknown> => {
    const choice = random.below(20)
    const repeated = (): Intent => pickAny(random, intents) ?? newIntent(simulation, intents, random)
    if (choice < 9) return pursue(simulation, newIntent(simulation, intents, random), random)
    if (choice < 12) return pursue(simulation, repeated(), random)
    if (choice < 15) {
      const intent = random.chance(0.5) ? newIntent(simulation, intents, random) : repeated()
      const same = Array.from({ length: 2 + random.below(3) }, () => intent)
      return pursueAll(simulation, same, random)
    }
    if (choice < 16) {
      // Another request under the same key, by mistake
      const intent = repeated()
      const { accountId, key } = intent
      const other = { ...newIntent(simulation, intents, random), accountId, ...(key === undefined ? {} : { key }) }
      return pursueAll(simulation, [intent, other], random)
    }
    return AdminActor.act(simulation, random)
  })

const newIntent = (simulation: Simulation, intents: Array<Intent>, random: SeededRandom): Intent => {
  const { accounts, keys, records, workload } = simulation
  const { operation, input: draw } = random.pick(workload.offers)
  const jobs = records.recorder.jobs.size === 0 ? [] : knownJobs(simulation).map(({ jobId }) => jobId)
  const input = draw(random, jobs)
  const intent: Intent = {
    accountId: random.pick(nonEmpty(accounts)),
    operation: operation.key,
    input,
    request: requestOf(operation.key, input),
    ...(random.chance(keys) ? { key: `k${intents.length}` } : {}),
    ...(random.chance(0.1) ? { maxCost: Credits.of(random.below(6_000)) } : {})
  }
  intents.push(intent)
  return intent
}

/** Calls, with retries, and follows the job if the call became one. */
const pursue = (simulation: Simulation, intent: Intent, random: SeededRandom) =>
  Effect.flatMap(callWithRetries(simulation, intent, random), (call) => {
    const job = call && jobOf(simulation, call)
    return job === undefined ? Effect.void : follow(simulation, job, random.fork("follow"))
  })

/** Several callers at once. */
const pursueAll = (simulation: Simulation, intents: ReadonlyArray<Intent>, random: SeededRandom) =>
  Effect.forEach(intents, (intent, i) => pursue(simulation, intent, random.fork(`${i}`)), { concurrency: "unbounded", discard: true })
