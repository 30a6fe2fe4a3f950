/** Shrinks the settings of a failed run, while its first violation stays of the same kind. */
import { Effect } from "effect"
import * as Faults from "./Faults.ts"
import { faultsOf, type Run, STEPS } from "./Run.ts"
import type { Settings } from "./Settings.ts"

/** A run of smaller settings, until its first violation. */
export type Try = (settings: Settings) => Effect.Effect<Run>

/** The smallest run that was found, and how many runs that took. */
export interface Shrunk {
  readonly run: Run
  readonly runs: number
}

/** What kind of violation it is: its words, without the names and numbers of one run. */
export const kindOf = (violation: string): string =>
  violation
    .replaceAll(/\b(?:acc|job|res|lot|key|blob|wh|inbox|msg|sms|ver|proxy|pay|sub|sim|ses|link)_\w+/gu, "#")
    .replaceAll(/\b[qkh]?\d[\d.]*\b/gu, "#")
    .replaceAll(/[0-9A-Za-z_-]{20,}/gu, "#")

/** Smaller settings, best first. Each is tried until one fails in the same way; then all passes begin again with that one. */
type Pass = (run: Run, operations: ReadonlyArray<string>) => ReadonlyArray<Settings>

/** No faults at all, half of their kinds, without a quarter of them, or one kind less. */
const fewerFaults: Pass = ({ settings }) => {
  const faults = faultsOf(settings)
  const none: Faults.Faults = Faults.none
  const names = Object.keys(faults) as ReadonlyArray<keyof Faults.Faults>
  const left = names.filter((name) => faults[name] !== undefined && faults[name] !== none[name])
  if (left.length === 0) return []
  const only = (kept: ReadonlyArray<string>): Settings => ({
    ...settings,
    faults: { ...none, ...Object.fromEntries(Object.entries(faults).filter(([name]) => kept.includes(name))) }
  })
  const pieces = (count: number) => {
    const size = Math.ceil(left.length / count)
    return Array.from({ length: count }, (_, i) => left.slice(i * size, (i + 1) * size)).filter((piece) => piece.length > 0)
  }
  const without = (piece: ReadonlyArray<string>) => only(left.filter((name) => !piece.includes(name)))
  return [only([]), ...pieces(2).map(only), ...pieces(4).map(without), ...left.map((name) => without([name]))]
}

const fewerHosts: Pass = ({ settings }) => [1, 2].flatMap((hosts) => (hosts < (settings.hosts ?? 4) ? [{ ...settings, hosts }] : []))

const fewerKeys: Pass = ({ settings }) => (settings.keys === 0 ? [] : [{ ...settings, keys: 0 }])

const fewerOpens: Pass = ({ settings }) => (settings.opens === 0 ? [] : [{ ...settings, opens: 0 }])

const fewerWebhooks: Pass = ({ settings, webhooks }) => (webhooks === 0 ? [] : [{ ...settings, webhooks: 0 }])

const fewerInboxes: Pass = ({ settings, inboxes }) => (inboxes === 0 ? [] : [{ ...settings, inboxes: 0 }])

const fewerCodes: Pass = ({ settings, codes }) => (codes === 0 ? [] : [{ ...settings, codes: 0 }])

const fewerProxies: Pass = ({ settings, proxies }) => (proxies === 0 ? [] : [{ ...settings, proxies: 0 }])

const fewerPayments: Pass = ({ settings, payments }) => (payments === 0 ? [] : [{ ...settings, payments: 0 }])

const fewerSubscriptions: Pass = ({ settings, subscriptions }) => (subscriptions === 0 ? [] : [{ ...settings, subscriptions: 0 }])

const fewerPeople: Pass = ({ people, settings }) => (people === 0 ? [] : [{ ...settings, people: 0 }])

const withoutLeaders: Pass = ({ settings }) => (settings.leading === true ? [{ ...settings, leading: false }] : [])

/** One operation alone, or one less. */
const fewerOperations: Pass = ({ settings }, all) => {
  const offered = settings.operations ?? all
  if (offered.length < 2) return []
  const alone = offered.map((operation) => ({ ...settings, operations: [operation] }))
  const less = offered.map((operation) => ({ ...settings, operations: offered.filter((other) => other !== operation) }))
  return offered.length === 2 ? alone : [...alone, ...less]
}

/** The steps that had begun, and then less and less of them. */
const fewerSteps: Pass = ({ settings, steps: begun }) => {
  const steps = settings.steps ?? STEPS
  const candidates = [begun, Math.floor(steps / 4), Math.floor(steps / 2), steps - 2, steps - 1]
  return [...new Set(candidates)].filter((fewer) => fewer >= 0 && fewer < steps).map((fewer) => ({ ...settings, steps: fewer }))
}

/** Other seeds that fail sooner. */
const OTHER_SEEDS = 8
const otherSeeds: Pass = ({ settings }) => {
  const steps = settings.steps ?? STEPS
  const shorter = [1, 3, 6, 12].filter((fewer) => fewer < steps)
  const seeds = Array.from({ length: OTHER_SEEDS }, (_, i) => settings.seed + i + 1)
  return shorter.flatMap((fewer) => seeds.map((seed) => ({ ...settings, seed, steps: fewer })))
}

const PASSES: ReadonlyArray<Pass> = [
  fewerFaults,
  fewerOperations,
  fewerSteps,
  fewerHosts,
  fewerKeys,
  fewerOpens,
  fewerWebhooks,
  fewerInboxes,
  fewerCodes,
  fewerProxies,
  fewerPayments,
  fewerSubscriptions,
  fewerPeople,
  withoutLeaders
]

/** What is left of what the seed drew must be told, for another seed draws other faults, and may have none of these. */
const explicit = (run: Run): Run => {
  const { codes, inboxes, payments, people, proxies, settings, subscriptions, webhooks } = run
  const drawn = Object.fromEntries(
    Object.entries({ webhooks, inboxes, codes, proxies, payments, subscriptions, people }).filter(([, often]) => often > 0)
  )
  return { ...run, settings: { ...settings, ...drawn, faults: faultsOf(settings) } }
}

/** Shrinks a failed run with at most so many runs. `operations`: the keys of all that the workload offers. */
export const shrink = (failed: Run, operations: ReadonlyArray<string>, limit: number, attempt: Try): Effect.Effect<Shrunk> =>
  Effect.gen(function* () {
    const kind = kindOf(failed.violations[0] ?? "")
    let best = explicit(failed)
    let runs = 0
    const tried = new Set<string>()
    const improve = Effect.fnUntraced(function* (pass: Pass) {
      for (const settings of pass(best, operations).filter((settings) => !tried.has(JSON.stringify(settings)))) {
        if (runs >= limit) return false
        runs++
        tried.add(JSON.stringify(settings))
        const run = yield* attempt(settings)
        if (run.isReal || run.violations[0] === undefined || kindOf(run.violations[0]) !== kind) continue
        best = run
        return true
      }
      return false
    })
    const exhaust = Effect.fnUntraced(function* () {
      for (let improved = true; improved; ) {
        improved = false
        for (const pass of PASSES) while (yield* improve(pass)) improved = true
      }
    })
    yield* exhaust()
    while (yield* improve(otherSeeds)) yield* exhaust()
    return { run: best, runs }
  })
