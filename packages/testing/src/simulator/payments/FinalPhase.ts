/**
 * The final phase of payments: faults have ended. Credits can be bought at every host, and what no notice told is learned by asking: of
 * payments that are not final at once, of captured ones within days.
 */
import type { Payment } from "@millrace/core"
import { Effect, Exit } from "effect"
import type { SeededRandom } from "../../SeededRandom.ts"
import { call, requestOf } from "../Callers.ts"
import { dataOf } from "../Records.ts"
import { pickAny, type Simulation } from "../Simulation.ts"
import { begun } from "./Actor.ts"
import { PENDING_LIMIT } from "./Endpoints.ts"

const DAY = 24 * 3_600_000

/** The last review of a payment is that many days after it was captured or disputed. */
const REVIEWED = 151

/** How many payments of an account are pending. */
const pendingOf = (accountId: string, { records }: Simulation): number => {
  const newest = [...records.recorder.payments.byId.values()].map(({ states }) => states.at(-1)?.order)
  return newest.filter((order) => order?.accountId === accountId && order.status === "pending").length
}

/** Each host sells credits, to an account that may have another pending payment. */
export const settle = (simulation: Simulation, random: SeededRandom): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { accounts, gateway, hosts, payments, report } = simulation
    if (payments === 0) return
    for (const host of hosts) {
      const accountId = pickAny(
        random,
        accounts.filter((accountId) => pendingOf(accountId, simulation) < PENDING_LIMIT)
      )
      if (accountId === undefined) continue
      const ask = (operation: string, input: Readonly<Record<string, unknown>>) =>
        call(simulation, host, { accountId, operation, input, request: requestOf(operation, input) }, random)
      const asked = yield* ask("billing.topUp", { pack: "25" })
      const requested = asked && dataOf(asked)
      if (requested === undefined) {
        report(`credits cannot be bought at ${host.name} after faults have ended`)
        continue
      }
      gateway.happen(requested["payment_id"], "approve", random)
      const captured = yield* ask("billing.captureTopUp", { payment: requested["payment_id"] })
      const status = captured?.response && Exit.isSuccess(captured.response.answer) ? dataOf(captured)?.["status"] : undefined
      if (status !== "captured") report(`${requested["payment_id"]} cannot be captured at ${host.name}: it is ${status}`)
    }
  })

/** Whether the log has what the gateway says, and a payment that nobody paid has failed. */
const isKnown = ({ paymentId, reference, ...order }: Payment.Order, { gateway }: Simulation): boolean => {
  const standing = gateway.payments.get(paymentId)?.standing
  if (standing === undefined || reference === undefined || standing.status === "pending") return order.status === "failed"
  if (standing.status === "authorized") return order.status === "authorized" || order.status === "failed"
  return (
    order.status === standing.status &&
    standing.refunds.every(({ reference, status }) =>
      order.refunds.some((known) => known.reference === reference && (known.failed === true) === (status === "failed"))
    ) &&
    standing.disputes.every((dispute) => order.disputes.some((known) => isSame(known, dispute)))
  )
}

const isSame = (a: Payment.Order["disputes"][number], b: Payment.Order["disputes"][number]): boolean =>
  a.reference === b.reference && a.status === b.status

/** Day by day, until everything is known: at the last when a review has been due for everything that could have been missed. */
export const checkLearned = (simulation: Simulation) =>
  Effect.gen(function* () {
    const { gateway, report, world } = simulation
    if (gateway.payments.size === 0) return
    const unknown = () => begun(simulation).filter((order) => !isKnown(order, simulation))
    for (let day = 0; day < REVIEWED && unknown().length > 0; day++) {
      world.skip(DAY)
      yield* Effect.sleep(2 * 60_000)
    }
    for (const { paymentId, status } of unknown()) report(`what became of ${paymentId} was never learned: it is ${status}`)
    // The accounts follow
    yield* Effect.sleep(2 * 60_000)
  })
