/** What happens at each step: callers and administrators do something, and now and then a host is disturbed. */
import { Credits, type Operation } from "@millrace/core"
import { Effect } from "effect"
import type * as SeededRandom from "../SeededRandom.ts"
import { act, type Office } from "./Administrators.ts"
import { type Intent, insist } from "./Callers.ts"
import type { Host } from "./Host.ts"
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
      const asked = input(random)
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
    const crowd = (intents: ReadonlyArray<Intent>) =>
      Effect.forEach(intents, (intent, i) => insist(office, intent, random.fork(`${i}`)), { concurrency: "unbounded", discard: true })
    if (what < 9) return insist(office, wanted(), random)
    if (what < 12) return insist(office, again(), random)
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

/** A host crashes, now or at a write to come; is restarted; stands still; or is cut off. Those that went come again. */
export const disturbed = <Op extends Operation.Any>(
  host: Host<Op>,
  random: SeededRandom.SeededRandom,
  violated: (what: string) => void
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
        return host.cutOff(random.below(12), random.below(random.pick([4_000, 20_000, 240_000])))
      default:
        if (!(yield* host.stop)) violated(`${host.name} does not stop`)
    }
    yield* Effect.sleep(random.below(random.pick([10, 3_000, 60_000])))
    yield* host.start
  })
