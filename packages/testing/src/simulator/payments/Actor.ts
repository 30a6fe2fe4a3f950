/** Callers who buy credits, payers who pay at the gateway, banks that take money back, and notices that are lost, late, or come twice. */
import { Checkout, Payment } from "@millrace/core"
import { Effect, Exit, Option } from "effect"
import type { SeededRandom } from "../../SeededRandom.ts"
import { callWithRetries, requestOf } from "../Callers.ts"
import { type Call, type Input, type Intent, tagOf } from "../Records.ts"
import { nonEmpty, pickAny, pickHost, type Simulation } from "../Simulation.ts"
import { referenceOf } from "./Gateway.ts"

const PACKS = [undefined, "10", "25", "50", "100"] as const

/** The payments that their gateway and the log know. */
export const begun = ({ gateway, records }: Simulation): ReadonlyArray<Payment.Order> =>
  [...gateway.payments.keys()].flatMap((paymentId) => {
    const { order } = records.recorder.payments.stateOf(Payment.paymentIdOf(paymentId))
    return order?.reference === undefined ? [] : [order]
  })

/** Does one thing. Adds what callers want to `intents`. */
export const act = (simulation: Simulation, intents: Array<Intent>, random: SeededRandom): Effect.Effect<unknown> =>
  Effect.suspend((): Effect.Effect<unknown> => {
    const choice = random.below(10)
    const known = begun(simulation)
    const by = Map.groupBy(known, ({ status }) => status)
    // Mostly one that is waiting for the step, so that many live a whole life
    const oneOf = (status: Payment.Order["status"]) => pickAny(random, (random.chance(0.8) ? by.get(status) : undefined) ?? known)
    const payment = oneOf(choice < 5 ? "authorized" : "pending")
    const captured = pickAny(random, by.get("captured") ?? [])
    if (choice < 2 || payment === undefined) {
      const pack = random.pick(PACKS)
      return want(simulation, intents, random, "billing.topUp", pack === undefined ? {} : { pack })
    }
    if (choice < 5) {
      const owner = random.chance(0.9) ? payment.accountId : undefined
      return want(simulation, intents, random, "billing.captureTopUp", { payment: payment.paymentId }, owner)
    }
    if (choice < 7 || captured === undefined)
      return happen(simulation, payment.paymentId, random.pick(["approve", "approve", "approve", "decline"]), random)
    const ofBank: ReadonlyArray<Happening> = captured.disputes.some(({ status }) => status === "open")
      ? ["win", "win", "lose", "dispute"]
      : ["refund", "dispute", "dispute", ...(captured.refunds.length > 0 ? (["bounce"] as const) : []), ...appeal(captured)]
    return happen(simulation, captured.paymentId, random.pick(nonEmpty(ofBank)), random)
  })

/** What was lost may be won by an appeal. */
const appeal = ({ disputes }: Payment.Order): ReadonlyArray<Happening> => (disputes.some(({ status }) => status === "lost") ? ["win"] : [])

/** An account wants something, often under a key, and asks until it has an answer. */
export const want = (
  simulation: Simulation,
  intents: Array<Intent>,
  random: SeededRandom,
  operation: string,
  input: Input,
  owner?: string
): Effect.Effect<Call | undefined> => {
  const key = random.chance(simulation.keys) ? { key: `k${intents.length}` } : {}
  const accountId = owner ?? random.pick(nonEmpty(simulation.accounts))
  const intent = { accountId, operation, input, request: requestOf(operation, input), ...key }
  intents.push(intent)
  return callWithRetries(simulation, intent, random)
}

type Happening = Parameters<Simulation["gateway"]["happen"]>[1]

/** Something happens at the gateway, and it tells a host so: not at all, once or twice, at once or much later. */
export const happen = (simulation: Simulation, paymentId: string, what: Happening, random: SeededRandom): Effect.Effect<void> =>
  Effect.suspend(() => {
    simulation.gateway.happen(paymentId, what, random)
    const notices = Array.from({ length: random.pick([0, 1, 1, 2]) }, (_, i) => random.fork(`notice ${i}`))
    return Effect.forEach(notices, (own) => tell(simulation, paymentId, own), { concurrency: "unbounded", discard: true })
  })

/** Posts a notice, and again while it is refused, as gateways do. */
const tell = Effect.fnUntraced(function* (simulation: Simulation, paymentId: string, random: SeededRandom) {
  const { isOver, world } = simulation
  yield* Effect.sleep(random.below(random.pick([20, 2_000, 90_000])))
  for (let attempt = 0; attempt < 4 && !isOver(); attempt++) {
    const host = pickHost(simulation, random)
    const body = Buffer.from(referenceOf(paymentId))
    const take = Effect.gen(function* () {
      const checkout = Option.getOrThrow(yield* Effect.serviceOption(Checkout))
      return yield* checkout.notice({ headers: {}, body })
    })
    const told = host && (yield* Effect.exit(host.request(take)))
    if (told !== undefined) world.note("gateway", `tells ${host?.name} of ${paymentId}: ${Exit.isSuccess(told) ? "taken" : tagOf(told)}`)
    if (told !== undefined && Exit.isSuccess(told)) return
    yield* Effect.sleep(random.below(20_000))
  }
})
