/** Administrators: they grant and claw back credits, set thresholds, start and stop recurring grants, suspend and reinstate accounts, refund calls, publish prices, and read accounts. */
import { type Account, type AccountEvent, Credits, Decisions, Ledger, Lots, PricePlan, Registration } from "@millrace/core"
import type { Decide } from "@millrace/event-sourcing"
import { Effect, Equal, Exit } from "effect"
import type { SeededRandom } from "../SeededRandom.ts"
import type { Host } from "./Host.ts"
import type { Services } from "./HostProcess.ts"
import type { LogRecorder } from "./LogRecorder.ts"
import { type Call, tagOf } from "./Records.ts"
import { nonEmpty, pickAny, pickHost, type Simulation } from "./Simulation.ts"

const REASON = { actor: "administrator", reason: "simulated" }

/** One action of an administrator: on which account, at which host. */
interface Action {
  readonly simulation: Simulation
  readonly accountId: string
  readonly host: Host
  readonly random: SeededRandom
}

/** Does one thing at some host. */
export const act = (simulation: Simulation, random: SeededRandom): Effect.Effect<unknown> =>
  Effect.suspend((): Effect.Effect<unknown> => {
    const accountId = random.pick(nonEmpty(simulation.accounts))
    const host = pickHost(simulation, random)
    if (host === undefined) return Effect.void
    const { all, clawedBack } = paidLots(simulation.records.recorder, accountId)
    const lotId = pickAny(random, all) ?? "lot_none"
    const amount = random.chance(0.5) ? undefined : Credits.of(1 + random.below(30_000))
    const action = { simulation, accountId, host, random }
    const choice = random.below(20)
    if (choice < 6) return grant(action)
    if (choice < 8) return readAccount(simulation, accountId, host)
    if (choice < 10) return suspendForAWhile(action)
    if (choice < 12) return execute(action, `claws back ${lotId}`, Decisions.clawBack(lotId, amount))
    if (choice < 14) {
      const clawed = pickAny(random, clawedBack) ?? lotId
      return execute(action, `reverses ${clawed}`, Decisions.reverseClawback(clawed, amount))
    }
    if (choice < 17) return refund(action)
    return choice < 19 ? publishPrice(action) : changeTerms(action)
  })

/** Sets or removes the threshold of the balance, or starts or stops a recurring grant. */
const changeTerms = (action: Action): Effect.Effect<unknown> => {
  const { accountId, random, simulation } = action
  if (random.chance(0.4)) {
    const threshold = random.chance(0.2) ? null : Credits.of(random.below(30_000))
    return execute(action, `sets the threshold ${threshold}`, Decisions.setBalanceThreshold(threshold))
  }
  const { recurring } = simulation.records
  const started = recurring.filter((grant) => grant.accountId === accountId)
  const known = random.chance(0.4) ? pickAny(random, started) : undefined
  if (known !== undefined) return execute(action, `stops ${known.grantId}`, Decisions.stopRecurringGrant(known.grantId))
  const grantId = `grant_${recurring.length}`
  const amount = Credits.of(1_000 * (1 + random.below(5)))
  recurring.push({ accountId, grantId, amount })
  const terms = {
    ...{ grantId, amount, source: random.pick(["promotion", "adjustment"] as const) },
    ...{ every: random.pick(["day", "week", "month"] as const), expires: random.pick(["next", "never"] as const) },
    until: random.chance(0.3) ? simulation.world.now + random.below(86_400_000 * 3) : null
  }
  return execute(action, `starts ${grantId} of ${amount} each ${terms.every}`, Decisions.startRecurringGrant(terms))
}

/** Uses a service of the host and notes the result. */
const perform = <Shape, A, E extends { readonly _tag: string }>(
  { accountId, host, simulation: { world } }: Action,
  what: string,
  service: Effect.Effect<Shape, never, Services>,
  use: (service: Shape) => Effect.Effect<A, E>
) =>
  Effect.tap(Effect.exit(host.request(Effect.flatMap(service, use))), (exit) =>
    Effect.sync(() => world.note("administrator", `${what} ${accountId} at ${host.name}: ${Exit.isSuccess(exit) ? "ok" : tagOf(exit)}`))
  )

/** Decides on an account through the ledger. */
const execute = <E extends { readonly _tag: string }>(
  action: Action,
  what: string,
  decide: Decide<Account.Account, AccountEvent, E>,
  accountId = action.accountId
) => perform(action, what, Ledger, (ledger) => ledger.execute(accountId, decide, REASON))

/** The account's paid lots, and those of them that were clawed back, by name. */
const paidLots = (recorder: LogRecorder, accountId: string) => {
  const lots = [...(recorder.states(accountId).at(-1)?.purse.paidLots ?? [])]
  const namesOf = (entries: typeof lots) => entries.map(([lotId]) => lotId).sort()
  return { all: namesOf(lots), clawedBack: namesOf(lots.filter(([, lot]) => lot.clawedBack > 0)) }
}

const suspendForAWhile = (action: Action) =>
  Effect.gen(function* () {
    const { accountId, random } = action
    yield* perform(action, "suspends", Registration, ({ suspend }) => suspend(accountId, REASON))
    yield* Effect.sleep(random.below(20_000))
    yield* perform(action, "reinstates", Registration, ({ reinstate }) => reinstate(accountId, REASON))
  })

/** Refunds a call, or a part of it, out of goodwill. */
const refund = (action: Action): Effect.Effect<unknown> => {
  const { random, simulation } = action
  const charge = pickAny(random, chargesOf(simulation))
  if (charge === undefined) return Effect.void
  const { accountId, reservationId } = charge
  const amount = random.chance(0.5) ? undefined : Credits.of(1 + random.below(1_500))
  const terms = { reason: "goodwill" as const, ...(amount === undefined ? {} : { amount }) }
  return perform(action, `refunds ${reservationId}`, Ledger, ({ refund }) => refund(accountId, reservationId, terms, REASON))
}

/** Reservations that were charged, and whose callers were answered: those that a host refunds out of goodwill. */
const chargesOf = ({ records: { calls, recorder } }: Simulation) => {
  const answered = new Set(calls.filter(isDone).map(({ requestId }) => requestId))
  const charged = new Set(recorder.accountEvents.flatMap(({ event }) => (event._tag === "OperationSucceeded" ? [event.reservationId] : [])))
  return recorder.accountEvents.flatMap(({ event, stream }) =>
    event._tag === "CreditReserved" && answered.has(event.requestId) && charged.has(event.reservationId)
      ? [{ accountId: stream.slice("account-".length), reservationId: event.reservationId }]
      : []
  )
}

const isDone = ({ response }: Call): boolean => response !== undefined && Exit.isSuccess(response.answer) && !response.answer.value.replayed

const publishPrice = (action: Action) => {
  const { random, simulation } = action
  const { offers } = simulation.workload
  const operation = random.pick(offers).operation.key
  const price = Credits.of(random.pick([0, 100, 700, 2_500]))
  const effectiveAt = random.chance(0.5) ? undefined : simulation.world.now + random.below(60_000)
  const prices = { [operation]: price }
  return perform(action, `prices ${operation} ${price}`, PricePlan.PriceBook, ({ publish }) => publish(prices, effectiveAt, REASON))
}

/** Grants a new lot, or one that was granted before: payment providers repeat their notices. */
const grant = (action: Action) =>
  Effect.gen(function* () {
    const { random, simulation } = action
    const { grants } = simulation.records
    const before = random.chance(0.3) ? pickAny(random, grants) : undefined
    const lotId = before?.lotId ?? `lot_${grants.length}`
    const accountId = before?.accountId ?? action.accountId
    const amount = before?.amount ?? 1_000 * (1 + random.below(20))
    const lifetime = random.pick([null, 2_000, 45_000, 600_000, 86_400_000])
    const source = random.pick<Lots.LotSource>(["topup", "topup", "subscription", "promotion"])
    const terms = {
      ...{ lotId, amount: Credits.of(amount), source, expiresAt: lifetime === null ? null : simulation.world.now + lifetime },
      ...(Lots.isPaid(source) ? { paymentRef: `payment of ${lotId}` } : {})
    }
    const index = grants.push({ accountId, lotId, amount, answer: "Disconnected" }) - 1
    const exit = yield* execute(action, `grants ${lotId} of ${amount} (${source})`, Decisions.grant(terms), accountId)
    grants[index] = { accountId, lotId, amount, answer: Exit.isSuccess(exit) ? "ok" : (tagOf(exit) ?? "died") }
  })

/** Reads an account. It must be shown as it was at some instant since the question. */
export const readAccount = ({ records: { recorder }, report, world }: Simulation, accountId: string, host: Host): Effect.Effect<void> =>
  Effect.suspend(() => {
    const written = recorder.states(accountId).length - 1
    return Effect.map(Effect.exit(host.request(Effect.flatMap(Ledger, ({ read }) => read(accountId)))), (exit) => {
      world.note("administrator", `reads ${accountId} at ${host.name}: ${Exit.isSuccess(exit) ? exit.value.revision : tagOf(exit)}`)
      if (Exit.isFailure(exit)) return
      const { revision, state } = exit.value
      if (revision < written) report(`${accountId} was read at revision ${revision}, but ${written} was written before`)
      if (!Equal.equals(state, recorder.stateAt(accountId, revision)))
        report(`${accountId} was read at revision ${revision} as it never was`)
    })
  })
