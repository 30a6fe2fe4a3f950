/** One run of a simulation: what decides it, and what came of it. */
import { Cause, Context, Effect, Exit } from "effect"
import * as SeededRandom from "../SeededRandom.ts"
import { drive, type Failed } from "./Drive.ts"
import * as Faults from "./Faults.ts"
import type { Outcome } from "./Outcome.ts"
import { simulate } from "./Scenario.ts"
import type { Settings } from "./Settings.ts"
import type { AnyOffer, AnyWorkload } from "./Workload.ts"
import { World } from "./World.ts"

/** When every simulation begins: milliseconds since 1970. */
const START = Date.UTC(2030, 0, 1)
export const STEPS = 40
const KEYS = 0.7
const OPENS = 0.1
/** How often a step does something to each of these in the seeds of the standard workload that have any, and how many of them have. */
const WEBHOOKS = { often: 0.25, seeds: 0.3 }
const INBOXES = { often: 0.3, seeds: 0.3 }
const CODES = { often: 0.3, seeds: 0.3 }
const PROXIES = { often: 0.3, seeds: 0.2 }
const PAYMENTS = { often: 0.3, seeds: 0.3 }
const SUBSCRIPTIONS = { often: 0.3, seeds: 0.2 }
const PEOPLE = { often: 0.3, seeds: 0.2 }
/** How often time skips at least where periods, links and keys are to end. */
const LEAPS = 0.01

/** What only some seeds have. */
type Optional = "webhooks" | "inboxes" | "codes" | "proxies" | "payments" | "subscriptions" | "people"

/** What came of a run. */
export interface Run {
  readonly settings: Settings
  readonly violations: ReadonlyArray<string>
  readonly trace: ReadonlyArray<string>
  /** The line of the trace that reports the first violation; undefined if there is none. */
  readonly firstAt: number | undefined
  /**
   * Probability that a step did something to webhooks, to inboxes, for codes, with proxy sessions, to payments, to subscriptions, and that people do;
   * 0 if there were none.
   */
  readonly webhooks: number
  readonly inboxes: number
  readonly codes: number
  readonly proxies: number
  readonly payments: number
  readonly subscriptions: number
  readonly people: number
  /** Steps that had begun. */
  readonly steps: number
  /** Real time took part, so the same seed need not lead here again. */
  readonly isReal: boolean
  /** Absent if the simulation did not come to its end. */
  readonly outcome: Outcome | undefined
}

/** The faults of a run: those of its settings, and the others as its seed draws them. */
export const faultsOf = ({ faults, seed }: Settings): Faults.Faults => ({
  ...Faults.draw(SeededRandom.make(seed).fork("faults")),
  ...faults
})

/** Runs a simulation, to its end or until its first violation. */
export const run = (settings: Settings, workload: AnyWorkload, until: "end" | "violation" = "end"): Effect.Effect<Run> =>
  Effect.suspend(() => {
    const { hosts, keys = KEYS, opens = OPENS, leading = false, seed, steps = STEPS, trials = 0 } = settings
    const random = SeededRandom.make(seed)
    const often = (what: Optional, { often, seeds }: typeof WEBHOOKS): number =>
      settings[what] ?? (workload.isStandard === true && random.fork(what).chance(seeds) ? often : 0)
    const webhooks = often("webhooks", WEBHOOKS)
    const inboxes = often("inboxes", INBOXES)
    const codes = often("codes", CODES)
    const proxies = often("proxies", PROXIES)
    const payments = often("payments", PAYMENTS)
    const subscriptions = often("subscriptions", SUBSCRIPTIONS)
    const people = often("people", PEOPLE)
    const drawn = faultsOf(settings)
    const leaps = subscriptions + people > 0 ? Math.max(drawn.leaps, LEAPS) : drawn.leaps
    const faults = { ...drawn, leaps, links: leading ? drawn.links : 0 }
    const { disorder, yieldEvery } = faults
    const world = new World({ random: random.fork("order"), start: START, disorder, yieldEvery })
    world.note("world", JSON.stringify({ ...faults, appends: undefined }))
    const violations: Array<string> = []
    let firstAt: number | undefined
    let begun = 0
    const report = (violation: string) => {
      violations.push(violation)
      firstAt ??= world.trace.length
      world.note("checker", violation)
    }
    const goOn = () => violations.length === 0
    const onStep = (step: number) => {
      begun = step
    }
    const chosen = choose(workload, settings.operations)
    const rates = { keys, opens, webhooks, inboxes, codes, proxies, payments, subscriptions, people, trials, leading }
    const options = { world, steps, ...rates, workload: chosen, faults, random, report, goOn, onStep }
    const fiber = world.begin(() => world.outside.fork(simulate(options, hosts), Context.empty()))
    return Effect.map(
      Effect.promise((signal) => drive(world, fiber, () => !signal.aborted && (until === "end" || goOn()))),
      (failed): Run => {
        const exit = fiber.pollUnsafe()
        if (failed !== undefined) report(failed.violation)
        else if (exit !== undefined && Exit.isFailure(exit)) report(`the simulation failed: ${Cause.pretty(exit.cause)}`)
        const outcome = exit !== undefined && Exit.isSuccess(exit) ? exit.value : undefined
        return {
          settings,
          violations,
          trace: world.trace,
          firstAt,
          steps: begun,
          webhooks,
          inboxes,
          codes,
          proxies,
          payments,
          subscriptions,
          people,
          isReal: isReal(failed),
          outcome
        }
      }
    )
  })

const isReal = (failed: Failed | undefined): boolean => failed?.isReal === true

/** The workload with some of its offers. Throws a sentence if there are none. */
const choose = (workload: AnyWorkload, keys: ReadonlyArray<string> | undefined): AnyWorkload => {
  const [first, ...rest] = workload.offers.filter(({ operation }: AnyOffer) => keys === undefined || keys.includes(operation.key))
  if (first === undefined) throw new TypeError(`The workload offers none of the operations ${keys?.join(", ")}`)
  return { ...workload, offers: [first, ...rest] }
}
