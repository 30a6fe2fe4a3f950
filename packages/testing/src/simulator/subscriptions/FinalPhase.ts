/**
 * The final phase of subscriptions: faults have ended. A subscription can be taken and paid at every host. What is due happens soon: renewals,
 * tries, and ends. At last all are cancelled, so that nothing more is asked for.
 */
import { Payment } from "@millrace/core"
import { Effect } from "effect"
import type { SeededRandom } from "../../SeededRandom.ts"
import { call, requestOf } from "../Callers.ts"
import { goneOf } from "../checkers/SubscriptionDues.ts"
import type { Host } from "../Host.ts"
import { skip } from "../Leaps.ts"
import { dataOf, type Input, summaryOf } from "../Records.ts"
import { nonEmpty, type Simulation } from "../Simulation.ts"
import { type Living, living, nextDue } from "./Actor.ts"
import { GRACE, PLANS } from "./Endpoints.ts"

/** The longest time from where something is due until it is in the log, where nothing hinders the hosts: a lease and two sweeps. Milliseconds. */
const DONE_WITHIN = 3 * 60_000

/** How many times something is due for some subscription, until all are cancelled. */
const ROUNDS = 6

/** Refunds of a part each that surely give all of it back. */
const PARTS = 12

const ask = (simulation: Simulation, host: Host, accountId: string, random: SeededRandom) => (operation: string, input: Input) =>
  Effect.gen(function* () {
    const asked = yield* call(simulation, host, { accountId, operation, input, request: requestOf(operation, input) }, random)
    const data = asked && dataOf(asked)
    const answer = asked?.response?.answer
    if (data === undefined)
      simulation.report(
        `${operation} fails at ${host.name} after faults have ended: ${answer === undefined ? "nothing" : summaryOf(answer)}`
      )
    return data
  })

/** At each host an account takes a plan, pays for its first period or for what is to be paid, and has it. */
export const settle = (simulation: Simulation, random: SeededRandom): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { accounts, gateway, hosts, report, subscriptions } = simulation
    if (subscriptions === 0) return
    for (const host of hosts) {
      const accountId = random.pick(nonEmpty(accounts))
      const { plan } = random.pick(PLANS)
      const asks = ask(simulation, host, accountId, random)
      const wanted = yield* asks("billing.subscribe", { plan })
      const paymentId = wanted?.["payment_id"]
      if (typeof paymentId !== "string") continue
      gateway.happen(paymentId, "approve", random)
      const captured = yield* asks("billing.captureTopUp", { payment: paymentId })
      if (captured === undefined) continue
      const shown = (yield* asks("billing.subscriptions", {}))?.["subscriptions"][0]
      if (shown?.status !== "active" || shown.plan !== plan)
        report(`${accountId} paid for the plan ${plan} at ${host.name}, and is shown ${shown?.status} ${shown?.plan}`)
    }
  })

/** Passes from one time where something is due to the next, and looks that it was done. Then every subscription ends when it is cancelled. */
export const checkRenewed = (simulation: Simulation, random: SeededRandom) =>
  Effect.gen(function* () {
    const { gateway, hosts, report, subscriptions, world } = simulation
    if (subscriptions === 0) return
    // All the money of some periods goes back, and their owners look
    for (const { accountId, current } of living(simulation)) {
      const payment = current.period?.paymentId
      if (payment === undefined || !random.chance(0.3)) continue
      for (let part = 0; part < PARTS; part++) gateway.happen(payment, "refund", random)
      yield* ask(simulation, random.pick(nonEmpty(hosts)), accountId, random)("billing.captureTopUp", { payment })
    }
    const cancel = ({ accountId, current }: Living, now: "true" | "false") => {
      const input = { subscription: current.subscriptionId, now }
      return ask(simulation, random.pick(nonEmpty(hosts)), accountId, random)("billing.cancelSubscription", input)
    }
    // Nobody takes these back
    for (const one of living(simulation)) if (random.chance(0.3)) yield* cancel(one, "false")
    for (let round = 0; round < ROUNDS; round++) {
      const dues = living(simulation).flatMap((one) => nextDue(one, world.now) ?? [])
      const [next] = dues.filter((due) => due >= world.now).sort((a, b) => a - b)
      if (next === undefined) break
      skip(simulation, Math.max(0, next - world.now))
      yield* Effect.sleep(DONE_WITHIN)
      for (const one of living(simulation)) checkDone(simulation, one)
    }
    for (const one of living(simulation)) yield* cancel(one, "true")
    for (const { current } of living(simulation)) report(`${current.subscriptionId} was cancelled, and has not ended`)
    // What is captured and not needed goes back
    yield* Effect.sleep(DONE_WITHIN)
  })

/** What was due some minutes ago was done, for a subscription that has not ended. */
const checkDone = ({ gateway, records, report, world }: Simulation, { all, current }: Living): void => {
  const { canceled, graceUntil, period, subscriptionId } = current
  const by = world.now - DONE_WITHIN
  const of = (violation: string) => report(`${subscriptionId}: ${violation}`)
  const paid = records.recorder.payments.of(Payment.paymentIdOf(period?.paymentId ?? ""))
  const { order } = paid.states.at(-1) ?? {}
  // A dispute that is open may be won
  const closed = order && { ...order, disputes: order.disputes.filter(({ status }) => status !== "open") }
  if (closed !== undefined && goneOf(closed) >= closed.amount && (paid.events.at(-1)?.at ?? by) < by)
    of("all the money of its period went back, and it goes on")
  const first = all.open.find((attempt) => attempt.buys === "first" && attempt.subscriptionId === subscriptionId)
  if (period === null && first?.failed === true) of("its first payment failed, and it goes on")
  if (period === null || by < period.until) return
  if (canceled) return of("it was cancelled, and goes on after its period")
  if (by >= period.until + GRACE) return of("its grace is over, and it goes on")
  const tries = all.open.filter(({ buys, period: number }) => buys === "period" && number === period.number + 1)
  const last = tries.at(-1)
  if (graceUntil === null || last === undefined) return of("its period is over, and no payment of the next was requested")
  if (last.failed && by >= last.requestedAt + 24 * 3_600_000) of("its payment failed a day ago, and no other was requested")
  for (const { failed, paymentId } of tries) {
    const held = gateway.payments.get(paymentId)
    const status = held?.standing.status
    if (status === "authorized" && typeof held?.recurring === "string") of(`${paymentId} was authorized by stored means, and not captured`)
    if (status === "captured") of(`its next period was paid by ${paymentId}, and did not begin`)
    if (status === undefined && !failed) of(`${paymentId} was requested, and the gateway does not know it`)
  }
}
