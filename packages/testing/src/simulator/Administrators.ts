/** Those who run the place: they grant and take back, suspend and reinstate, refund out of goodwill, change prices, and look. */
import { Credits, Decisions, Ledger, Lots, type Operation, PricePlan, Registration } from "@millrace/core"
import { Effect, Equal, Exit, HashMap } from "effect"
import type * as SeededRandom from "../SeededRandom.ts"
import { type Call, tagOf } from "./Callers.ts"
import type { Host, Services } from "./Host.ts"
import type { Bureau } from "./JobCallers.ts"
import type { Attempted } from "./JobUpstream.ts"

/** A grant that was asked for. */
export interface Grant {
  readonly accountId: string
  readonly lotId: string
  readonly amount: number
  /** `ok`, or why not. */
  readonly told: string
}

export interface Office<Op extends Operation.Any> extends Bureau<Op> {
  /** At jobs, in the order in which they began. */
  readonly attempts: ReadonlyArray<Attempted>
  readonly operations: ReadonlyArray<string>
  readonly grants: Array<Grant>
}

const REASON = { actor: "administrator", reason: "simulated" }

/** Does one thing at some host. */
export const act = <Op extends Operation.Any>(office: Office<Op>, random: SeededRandom.SeededRandom): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { accounts, hosts, world, witness } = office
    const accountId = accounts[random.below(accounts.length)] ?? ""
    const up = hosts.filter((host) => host.isUp)
    const host = up[random.below(Math.max(1, up.length))]
    if (host === undefined) return Effect.void
    const paidLots = witness.states(accountId).at(-1)?.purse.paidLots
    const lots = namesIn(paidLots)
    const clawedBack = paidLots === undefined ? [] : namesIn(HashMap.filter(paidLots, (lot) => lot.clawedBack > 0))
    const lotId = lots[random.below(Math.max(1, lots.length))] ?? "lot_none"
    const some = random.chance(0.5) ? undefined : Credits.of(1 + random.below(30_000))
    const ledger = <A, E>(use: (ledger: Ledger["Service"]) => Effect.Effect<A, E>) => Effect.flatMap(Ledger, use)
    const ask = <A, E extends { readonly _tag: string }>(what: string, effect: Effect.Effect<A, E, Services>) =>
      Effect.tap(Effect.exit(host.request(effect)), (exit) =>
        Effect.sync(() => world.say("administrator", `${what} ${accountId} at ${host.name}: ${Exit.isSuccess(exit) ? "ok" : tagOf(exit)}`))
      )
    const what = random.below(20)
    if (what < 6) return grant(office, accountId, random, ask)
    if (what < 8) return look(office, accountId, host)
    switch (what) {
      case 8:
      case 9:
        return Effect.gen(function* () {
          yield* ask(
            "suspends",
            Effect.flatMap(Registration, ({ suspend }) => suspend(accountId, REASON))
          )
          yield* Effect.sleep(random.below(20_000))
          yield* ask(
            "reinstates",
            Effect.flatMap(Registration, ({ reinstate }) => reinstate(accountId, REASON))
          )
        })
      case 10:
      case 11:
        return Effect.asVoid(
          ask(
            `claws back ${lotId}`,
            ledger(({ execute }) => execute(accountId, Decisions.clawBack(lotId, some), REASON))
          )
        )
      case 12:
      case 13: {
        const clawed = clawedBack[random.below(Math.max(1, clawedBack.length))] ?? lotId
        return Effect.asVoid(
          ask(
            `reverses ${clawed}`,
            ledger(({ execute }) => execute(accountId, Decisions.reverseClawback(clawed, some), REASON))
          )
        )
      }
      case 14:
      case 15:
      case 16: {
        const charged = chargedReservations(office)
        const chosen = charged[random.below(Math.max(1, charged.length))]
        if (chosen === undefined) return Effect.void
        const amount = random.chance(0.5) ? undefined : Credits.of(1 + random.below(1_500))
        const goodwill = { reason: "goodwill" as const, ...(amount === undefined ? {} : { amount }) }
        return Effect.asVoid(
          ask(
            `refunds ${chosen.reservationId}`,
            ledger(({ refund }) => refund(chosen.accountId, chosen.reservationId, goodwill, REASON))
          )
        )
      }
      default: {
        const operation = office.operations[random.below(office.operations.length)] ?? ""
        const price = Credits.of(random.pick([0, 100, 700, 2_500]))
        const later = random.chance(0.5) ? undefined : world.now + random.below(60_000)
        return Effect.asVoid(
          ask(
            `prices ${operation} ${price}`,
            Effect.flatMap(PricePlan.PriceBook, ({ publish }) => publish({ [operation]: price }, later, REASON))
          )
        )
      }
    }
  })

type Ask = <A, E extends { readonly _tag: string }>(
  what: string,
  effect: Effect.Effect<A, E, Services>
) => Effect.Effect<Exit.Exit<A, E | { readonly _tag: "Disconnected" }>>

const namesIn = (map: HashMap.HashMap<string, unknown> | undefined): ReadonlyArray<string> =>
  map === undefined ? [] : [...map].map(([key]) => key).sort()

/** Told successes that were charged: what a host refunds out of goodwill. */
const chargedReservations = <Op extends Operation.Any>({ calls, witness }: Office<Op>) => {
  const told = new Set(calls.filter(isDone).map(({ requestId }) => requestId))
  const succeeded = new Set(witness.arrivals.flatMap(({ event }) => (event._tag === "OperationSucceeded" ? [event.reservationId] : [])))
  return witness.arrivals.flatMap(({ stream, event }) =>
    event._tag === "CreditReserved" && told.has(event.requestId) && succeeded.has(event.reservationId)
      ? [{ accountId: stream.slice("account-".length), reservationId: event.reservationId }]
      : []
  )
}

const isDone = ({ told }: Call): boolean => told !== undefined && Exit.isSuccess(told.answer) && !told.answer.value.replayed

const grant = <Op extends Operation.Any>(office: Office<Op>, accountId: string, random: SeededRandom.SeededRandom, ask: Ask) =>
  Effect.gen(function* () {
    const { grants, world } = office
    // Some notices of a payment come twice
    const before = random.chance(0.3) ? grants[random.below(grants.length)] : undefined
    const lotId = before?.lotId ?? `lot_${grants.length}`
    const to = before?.accountId ?? accountId
    const amount = before?.amount ?? 1_000 * (1 + random.below(20))
    const lives = random.pick([null, 2_000, 45_000, 600_000, 86_400_000])
    const source = random.pick<Lots.LotSource>(["topup", "topup", "subscription", "promotion"])
    const terms = {
      ...{ lotId, amount: Credits.of(amount), source, expiresAt: lives === null ? null : world.now + lives },
      ...(Lots.isPaid(source) ? { paymentRef: `payment of ${lotId}` } : {})
    }
    const place = grants.push({ accountId: to, lotId, amount, told: "Disconnected" }) - 1
    const exit = yield* ask(
      `grants ${lotId} of ${amount} (${source})`,
      Effect.flatMap(Ledger, ({ execute }) => execute(to, Decisions.grant(terms), REASON))
    )
    grants[place] = { accountId: to, lotId, amount, told: Exit.isSuccess(exit) ? "ok" : (tagOf(exit) ?? "died") }
  })

/** Looks at an account, which must be shown as it was at some instant since it was asked for. */
export const look = <Op extends Operation.Any>(
  { violated, witness, world }: Pick<Office<Op>, "violated" | "witness" | "world">,
  accountId: string,
  host: Host<Op>
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const floor = witness.states(accountId).length - 1
    return Effect.map(Effect.exit(host.request(Effect.flatMap(Ledger, ({ read }) => read(accountId)))), (exit) => {
      world.say("administrator", `looks at ${accountId} at ${host.name}: ${Exit.isSuccess(exit) ? exit.value.revision : tagOf(exit)}`)
      if (Exit.isFailure(exit)) return
      const { revision, state } = exit.value
      if (revision < floor) violated(`${accountId} was read as of ${revision} when ${floor} was written before`)
      if (!Equal.equals(state, witness.stateAt(accountId, revision))) violated(`${accountId} was read as it never was, at ${revision}`)
    })
  })
