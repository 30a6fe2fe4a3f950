/** Random histories of accounts, decided by the ledger, of webhooks, and of waits, inboxes and proxy sessions. The same seed gives the same history. */
import {
  type Account,
  AccountSnapshot,
  Credits,
  Decisions,
  Ledger,
  Lots,
  NewestEntries,
  PricePlan,
  Standard,
  Webhook
} from "@millrace/core"
import { Aggregate, EventIds, EventStore, MemoryEventStore } from "@millrace/event-sourcing"
import { Clock, Context, Effect, HashMap, Layer, type Scope, Stream } from "effect"
import { Watch } from "./Watch.ts"
import { workerId, works } from "./Works.ts"

/** Mulberry32. */
export const dice = (seed: number) => {
  let a = seed >>> 0
  const next = () => {
    a = (a + 0x6d2b79f5) >>> 0
    let t = Math.imul(a ^ (a >>> 15), a | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  return {
    below: (n: number) => Math.floor(next() * n),
    chance: (p: number) => next() < p,
    pick: <A>(first: A, ...others: ReadonlyArray<A>): A => others[Math.floor(next() * (others.length + 1)) - 1] ?? first
  }
}
export type Dice = ReturnType<typeof dice>

/** Lets some time pass. Milliseconds. */
export class Pass extends Context.Service<Pass, (millis: number) => void>()("audit/test/Pass") {}

type Services = Ledger | PricePlan.PriceBook | EventStore.EventStore | Pass | Scope.Scope

/** A new ledger with its own ids and clock. */
const services = (): Layer.Layer<Exclude<Services, Scope.Scope>> => {
  const watch = new Watch("2026-01-30T20:00:00.000Z")
  let ids = 0
  const clock = Layer.succeed(Clock.Clock, watch)
  const eventIds = Layer.succeed(EventIds, () => `00000000-0000-7000-8000-${(++ids).toString(16).padStart(12, "0")}`)
  const pass = Layer.succeed(Pass, (millis) => {
    watch.now += millis
  })
  return Layer.mergeAll(Ledger.layer(), Layer.orDie(PricePlan.PriceBook.layerOf(PricePlan.ownOf(Standard.operations))), pass).pipe(
    Layer.provideMerge(MemoryEventStore.layer),
    // Also for what the history itself decides
    Layer.provideMerge(Layer.merge(eventIds, clock))
  )
}

/** A log as it was written, and its snapshots by name. */
export interface Log {
  readonly events: ReadonlyArray<EventStore.RecordedEvent>
  readonly snapshots: ReadonlyMap<string, EventStore.StoredSnapshot>
}

export const accountIds = ["acc_01JA", "acc_01JB", "acc_01JC"] as const
/** Never verified. */
const trialId = "acc_01JD"

/** What `write` leaves in a new store. */
export const logOf = <E>(write: Effect.Effect<unknown, E, Services>): Promise<Log> =>
  Effect.gen(function* () {
    yield* write
    const store = yield* EventStore.EventStore
    const events = yield* Stream.runCollect(store.readAll(EventStore.start))
    const snapshots = new Map<string, EventStore.StoredSnapshot>()
    for (const id of [...accountIds, trialId, workerId]) {
      const name = `accountSnapshot.v${AccountSnapshot.VERSION}-${id}` as const
      const snapshot = yield* store.loadSnapshot(name)
      if (snapshot !== undefined) snapshots.set(name, snapshot)
    }
    return { events, snapshots }
  }).pipe(Effect.scoped, Effect.provide(services()), Effect.runPromise)

const HOUR = 3_600_000

/** `steps` commands, of which some are refused, to three accounts, and others between them, over some days; two price versions. */
export const randomHistory = (seed: number, steps: number): Promise<Log> =>
  logOf(commands(dice(seed), { others: dice(seed + 1_000), webhooks: dice(seed + 2_000), worker: dice(seed + 3_000) }, steps))

/** As {@link randomHistory}, of waits, inboxes and proxy sessions alone, with the calls that pay for them. */
export const workHistory = (seed: number, steps: number): Promise<Log> =>
  logOf(
    Effect.gen(function* () {
      const random = dice(seed)
      const { end, step: workStep } = yield* works
      const pass = yield* Pass
      for (let step = 0; step < steps; step++) {
        if (random.chance(0.2)) pass(random.pick(1, 1_000, 20_000, 60_000, HOUR, 9 * HOUR))
        yield* workStep(random, step)
      }
      yield* end
    })
  )

/** `others`, `webhooks`, `worker`: decide what does not change which other commands there are. */
const commands = Effect.fnUntraced(function* (
  random: Dice,
  { others, webhooks, worker }: Readonly<Record<"others" | "webhooks" | "worker", Dice>>,
  steps: number
) {
  const ledger = yield* Ledger
  const hooks = yield* Aggregate.make(Webhook.Webhook)
  for (const id of accountIds) {
    yield* ledger.execute(id, Decisions.open({ sealedEmail: "sealed", emailHash: "hash" }))
    yield* ledger.execute(id, Decisions.verify(Credits.of(2_000), `lot_signup_${id}`), { actor: "test", reason: `a "quoted", reason` })
  }
  yield* ledger.execute(trialId, Decisions.open({ sealedEmail: "sealed", emailHash: "hash" }))
  const { end, step: workStep } = yield* works
  const pass = yield* Pass
  for (let step = 0; step < steps; step++) {
    if (random.chance(0.3)) pass(random.pick(1, 1_000, 1_000, 20_000, HOUR, 9 * HOUR))
    if (step === Math.floor(steps / 2)) yield* PricePlan.PriceBook.use((book) => book.publish({ "grammar.check": Credits.of(1_250) }))
    if (random.chance(0.06)) yield* Effect.ignore(trial(random, step))
    if (others.chance(0.08)) yield* Effect.ignore(terms(others, others.pick(...accountIds), step))
    if (webhooks.chance(0.08)) yield* Effect.ignore(hook(webhooks, hooks))
    if (worker.chance(0.35)) yield* workStep(worker, step)
    if (step === steps - 20) yield* ledger.execute("acc_01JC", Decisions.close)
    const id = random.pick(...accountIds)
    const { state, at } = yield* ledger.read(id)
    yield* Effect.ignore(command(random, id, step, state, at))
  }
  yield* end
})

const command = Effect.fnUntraced(function* (random: Dice, id: string, step: number, account: Account.Account, now: number) {
  const ledger = yield* Ledger
  const some = <A>(all: Iterable<A>): A | undefined => {
    const list = [...all]
    return list[random.below(list.length)]
  }
  const open = () => some(Array.from(account.purse.holds, ([id]) => id)) ?? "res_none"
  const settled = () =>
    some(
      [...NewestEntries.entriesOf(account.memory.outcomes.older), ...NewestEntries.entriesOf(account.memory.outcomes.newer)]
        .filter(([, outcome]) => outcome._tag === "succeeded")
        .map(([reservationId]) => reservationId)
    ) ?? "res_none"
  const lapsed = () =>
    some(
      NewestEntries.entriesOf(account.memory.outcomes.newer)
        .filter(([, outcome]) => outcome._tag === "refunded" && outcome.reason === "abandoned")
        .map(([id]) => id)
    ) ?? "res_none"
  const held = () => account.purse.lots.find((lot) => lot.held > lot.claimed && Lots.isPaid(lot.source))?.lotId
  const paid = () => (random.chance(0.6) ? held() : undefined) ?? some(HashMap.keys(account.purse.paidLots)) ?? "lot_none"
  const amount = () => Credits.of(random.pick(1, 500, 3_000, 40_000))

  const reserve = Effect.fnUntraced(function* () {
    const operation = random.pick("grammar.check", "bin.lookup", "email.validateBatch")
    const { unitPrice, version } = yield* PricePlan.PriceBook.use((book) => book.quote(operation))
    const call: Decisions.Reserve = {
      reservationId: `res_${step}`,
      requestId: `req_${step}`,
      operation,
      quantity: operation === "email.validateBatch" ? 1 + random.below(40) : 1,
      priceVersion: version,
      unitPrice,
      lifetime: random.pick(45_000, HOUR, 20 * HOUR),
      ...(random.chance(0.3) ? { key: { hash: `key_${random.below(6)}`, fingerprint: "same", since: account.memory.recorded } } : {})
    }
    return call
  })

  switch (random.below(16)) {
    case 0: {
      const source = random.pick("topup", "topup", "subscription", "promotion", "adjustment")
      const isPaid = source === "topup" || source === "subscription"
      return yield* ledger.execute(
        id,
        Decisions.grant({
          lotId: `lot_${step}`,
          amount: amount(),
          source,
          expiresAt: random.chance(0.6) ? now + random.pick(30_000, HOUR, 30 * HOUR) : null,
          paymentRef: isPaid ? `pay_${step}` : null
        })
      )
    }
    case 1:
      return yield* ledger.execute(id, Decisions.clawBack(paid(), random.chance(0.5) ? amount() : undefined))
    case 2:
      return yield* ledger.execute(id, Decisions.reverseClawback(paid(), random.chance(0.5) ? amount() : undefined))
    case 3:
    case 4:
      return yield* ledger.refund(id, settled(), {
        reason: random.pick("goodwill", "service_error", "cancelled"),
        ...(random.chance(0.5) ? { amount: Credits.of(random.pick(1, 500)) } : {})
      })
    case 5:
      return yield* ledger.execute(id, Decisions.release(open(), random.pick("service_error", "cancelled")))
    case 6:
      return yield* ledger.execute(id, Decisions.settleLate(yield* reserve(), { reservationId: lapsed(), replyHash: "late" }))
    case 7:
      return yield* ledger.execute(id, random.chance(0.15) ? Decisions.suspend : Decisions.reinstate)
    case 8:
    case 9:
    case 10:
    case 11: {
      const reservationId = open()
      const hold = [...account.purse.holds].find(([id]) => id === reservationId)?.[1]
      const quantity = random.chance(0.4) && hold !== undefined ? { quantity: random.below(hold.quantity + 1) } : {}
      return yield* ledger.execute(id, Decisions.settle({ reservationId, replyHash: "hash", ...quantity }))
    }
    default:
      return yield* ledger.execute(id, Decisions.reserve(yield* reserve()), { $correlationId: `req_${step}` })
  }
})

/** Thresholds, recurring grants, and notices of expiry. */
const terms = Effect.fnUntraced(function* (random: Dice, id: string, step: number) {
  const ledger = yield* Ledger
  const { state } = yield* ledger.read(id)
  const [grant] = state.recurring
  const lot = state.purse.lots.find(({ expiresAt }) => expiresAt !== null)
  if (random.chance(0.4)) return yield* ledger.execute(id, Decisions.setBalanceThreshold(Credits.of(random.pick(500, 3_000, 30_000))))
  if (random.chance(0.4)) return yield* ledger.execute(id, Decisions.announceExpiry(lot?.lotId ?? "lot_none"))
  if (grant !== undefined && random.chance(0.4)) return yield* ledger.execute(id, Decisions.stopRecurringGrant(grant.grantId))
  const of = { amount: Credits.of(7), source: random.pick("promotion", "adjustment"), expires: random.pick("next", "never") } as const
  return yield* ledger.execute(id, Decisions.startRecurringGrant({ grantId: `grant_${step}`, ...of, every: random.pick("day", "week") }))
})

const webhookIds = ["wh_01JA", "wh_01JB", "wh_01JC"] as const

/** Adds a webhook, or changes one that is there. */
const hook = Effect.fnUntraced(function* (random: Dice, hooks: Aggregate.Aggregate<Webhook.Webhook, Webhook.WebhookEvent>) {
  const id = random.pick(...webhookIds)
  const { state } = yield* hooks.read(id)
  const names = random.chance(0.5) ? null : ["job.ended", "credits.low"]
  const added = { sealedUrl: "sealed url", sealedSecret: "sealed secret", names, accountId: null, sealedLabel: null }
  if (state.status === "absent") return yield* hooks.execute(id, Webhook.add(added))
  const decide = random.pick(
    Webhook.change(id, { sealedUrl: "sealed other", names }),
    Webhook.rotate(id, "sealed next", HOUR),
    Webhook.disable(id, random.pick("host", "gone", "failing")),
    Webhook.disable(id, "host"),
    Webhook.enable(id, random.chance(0.5)),
    ...(random.chance(0.4) ? [Webhook.remove(id)] : [])
  )
  return yield* hooks.execute(id, decide, { actor: "test", reason: "webhooks" })
})

const trial = Effect.fnUntraced(function* (random: Dice, step: number) {
  const ledger = yield* Ledger
  const { state } = yield* ledger.read(trialId)
  const [open = "trial_none"] = HashMap.keys(state.trial.open)
  const call = { reservationId: `trial_${step}`, requestId: `req_${step}`, operation: "grammar.check", lifetime: 60_000 }
  if (random.chance(0.5)) return yield* ledger.execute(trialId, Decisions.reserveTrial(call))
  return yield* ledger.execute(trialId, random.pick(Decisions.useTrial, Decisions.releaseTrial)(open))
})
