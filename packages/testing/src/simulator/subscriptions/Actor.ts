/**
 * Callers who subscribe, change plans and cancel; payers who pay for a period, or do not; banks that take its money back; and time that
 * passes to where something is due.
 */
import { Subscription } from "@millrace/core"
import { Effect } from "effect"
import type { SeededRandom } from "../../SeededRandom.ts"
import { isAnyCallWaiting, skip } from "../Leaps.ts"
import { happen, want } from "../payments/Actor.ts"
import type { Held } from "../payments/Gateway.ts"
import { dataOf, type Intent } from "../Records.ts"
import { nonEmpty, pickAny, type Simulation } from "../Simulation.ts"
import { GRACE, PLANS } from "./Endpoints.ts"

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A subscription that has not ended. */
export interface Living {
  readonly accountId: string
  readonly all: Subscription.Subscriptions
  readonly current: Subscription.Subscription
}

/** The subscriptions that have not ended, by the log. */
export const living = ({ records }: Pick<Simulation, "records">): ReadonlyArray<Living> => {
  const { subscriptions } = records.recorder
  return [...subscriptions.byId.keys()].flatMap((id) => {
    const all = subscriptions.stateOf(id)
    const { current } = all
    return current === null || current.endedAt !== null ? [] : [{ accountId: Subscription.accountOf(id), all, current }]
  })
}

/** When something is due next: the end of the period, the next try of its payment, or the end of the grace period. */
export const nextDue = ({ all, current: { graceUntil, period } }: Living, now: number): number | undefined => {
  if (period === null) return undefined
  if (now < period.until) return period.until
  const tried = all.open.findLast(({ buys, failed }) => buys === "period" && failed)?.requestedAt ?? 0
  const again = tried + DAY
  const ends = graceUntil ?? period.until + GRACE
  return again > now && again < ends ? again : ends
}

/** Does one thing. Adds what callers want to `intents`. */
export const act = (simulation: Simulation, intents: Array<Intent>, random: SeededRandom): Effect.Effect<unknown> =>
  Effect.suspend((): Effect.Effect<unknown> => {
    const choice = random.below(14)
    const some = pickAny(random, living(simulation))
    if (some === undefined || choice < 4) return subscribe(simulation, intents, random, some)
    if (choice < 6) return pay(simulation, intents, random)
    if (choice < 7) return atBank(simulation, random, some)
    if (choice < 8) return want(simulation, intents, random, "billing.subscriptions", {})
    if (choice < 10) return cancel(simulation, intents, random, some)
    return letPass(simulation, random)
  })

/** Takes a plan, or another one. Most payers then pay, and most of these capture. */
const subscribe = (simulation: Simulation, intents: Array<Intent>, random: SeededRandom, some: Living | undefined) =>
  Effect.gen(function* () {
    const accountId = some !== undefined && random.chance(0.6) ? some.accountId : random.pick(nonEmpty(simulation.accounts))
    const known = living(simulation).find((one) => one.accountId === accountId)
    const plan = wantedPlan(random, known)
    const called = yield* want(simulation, intents, random, "billing.subscribe", plan === undefined ? {} : { plan }, accountId)
    const paymentId = called && dataOf(called)?.["payment_id"]
    if (typeof paymentId !== "string" || !random.chance(0.85)) return
    yield* Effect.sleep(random.below(random.pick([100, 20_000])))
    const own = random.fork("pays")
    yield* happen(simulation, paymentId, random.pick(["approve", "approve", "approve", "approve", "decline"]), own)
    if (own.chance(0.85)) yield* want(simulation, intents, own, "billing.captureTopUp", { payment: paymentId }, accountId)
  })

/** Any plan; of a subscription whose first payment is not made mostly the same, and of one that lasts often one of the same period. */
const wantedPlan = (random: SeededRandom, known: Living | undefined): string | undefined => {
  const any = random.pick([undefined, ...PLANS.map(({ plan }) => plan), ...(random.chance(0.1) ? ["none"] : [])])
  if (known === undefined || random.chance(0.2)) return any
  const { period, plan } = known.current
  if (period === null) return plan.plan
  return random.pick(nonEmpty(PLANS.filter(({ every }) => every === plan.every))).plan
}

/** The payments of subscriptions at the gateway that stand so. */
const paymentsOf = ({ gateway }: Simulation, ...statuses: ReadonlyArray<Held["standing"]["status"]>): ReadonlyArray<Held> =>
  [...gateway.payments.values()].filter(({ recurring, standing }) => recurring !== undefined && statuses.includes(standing.status))

/** A payer pays late, in any order, what the gateway still takes. Also what is not needed any more. */
const pay = (simulation: Simulation, intents: Array<Intent>, random: SeededRandom) =>
  Effect.gen(function* () {
    const held = pickAny(random, paymentsOf(simulation, "pending", "authorized"))
    if (held === undefined) return
    const { paymentId } = held
    yield* happen(simulation, paymentId, random.pick(["approve", "approve", "approve", "decline"]), random)
    const owner = ownerOf(simulation, paymentId)
    if (owner !== undefined && random.chance(0.8))
      yield* want(simulation, intents, random, "billing.captureTopUp", { payment: paymentId }, owner)
  })

const ownerOf = ({ gateway, records }: Simulation, paymentId: string): string | undefined => {
  if (!gateway.payments.has(paymentId)) return undefined
  return [...records.recorder.payments.byId.values()].find(({ states }) => states.at(-1)?.order?.paymentId === paymentId)?.states.at(-1)
    ?.accountId
}

/** The money of a period, mostly one that lasts, goes back in part or whole, or the payer's bank takes it, and may give it back. */
const atBank = (simulation: Simulation, random: SeededRandom, { current: { period } }: Living): Effect.Effect<void> => {
  const lasting = random.chance(0.7) ? simulation.gateway.payments.get(period?.paymentId ?? "") : undefined
  const held = lasting ?? pickAny(random, paymentsOf(simulation, "captured"))
  if (held === undefined) return Effect.void
  const isDisputed = held.standing.disputes.some(({ status }) => status === "open")
  return happen(simulation, held.paymentId, isDisputed ? random.pick(["win", "lose"]) : random.pick(["refund", "dispute"]), random)
}

/** Cancels now or at the period's end, sometimes what is another's or is none. */
const cancel = (simulation: Simulation, intents: Array<Intent>, random: SeededRandom, { accountId, current }: Living) => {
  const now = random.pick([undefined, "false", "false", "true"] as const)
  const input = { subscription: random.chance(0.1) ? "sub_none" : current.subscriptionId, ...(now === undefined ? {} : { now }) }
  const owner = random.chance(0.9) ? accountId : random.pick(nonEmpty(simulation.accounts))
  return want(simulation, intents, random, "billing.cancelSubscription", input, owner)
}

/** Time passes to just before, at, or after where something is due, unless a caller waits. */
const letPass = (simulation: Simulation, random: SeededRandom): Effect.Effect<void> =>
  Effect.sync(() => {
    const { world } = simulation
    const dues = living(simulation).flatMap((one) => nextDue(one, world.now) ?? [])
    const due = random.chance(0.7) ? Math.min(...dues) : pickAny(random, dues)
    const around = random.pick([-MINUTE, -1, 0, 1, 30_000, 5 * HOUR])
    if (due === undefined || !Number.isFinite(due) || due + around <= world.now || isAnyCallWaiting(simulation)) return
    skip(simulation, due + around - world.now)
  })
