/** The store of docs/auditing.md: a small log, the same to the byte each time, as a ledger decides it. */
import { Credits, Decisions, Ledger, Payments, PricePlan } from "@millrace/core"
import { EventIds } from "@millrace/event-sourcing"
import { SqliteEventStore } from "@millrace/event-store-sqlite"
import { Clock, Effect, Layer } from "effect"
import { Watch } from "../../audit/test/Watch.ts"

const ADA = "acc_01KJM5PX00ADA0000000000000"
const GRACE = "acc_01KJM5PX00GRACE00000000000"

const HOUR = 3_600_000

/** One call: its hold, then its charge or its release. */
const call = Effect.fnUntraced(function* (account: string, number: number, isDone = true) {
  const ledger = yield* Ledger
  const { unitPrice, version } = yield* PricePlan.PriceBook.use((book) => book.quote("grammar.check"))
  const reservationId = `res_${number}`
  const requestId = `req_${number}`
  const metadata = { $correlationId: requestId }
  const price = { operation: "grammar.check", quantity: 1, priceVersion: version, unitPrice }
  yield* ledger.execute(account, Decisions.reserve({ reservationId, requestId, ...price, lifetime: 60_000 }), metadata)
  yield* isDone
    ? ledger.execute(account, Decisions.settle({ reservationId, replyHash: "0".repeat(43) }), metadata)
    : ledger.execute(account, Decisions.release(reservationId, "service_error"), metadata)
})

const open = Effect.fnUntraced(function* (account: string) {
  const ledger = yield* Ledger
  yield* ledger.execute(account, Decisions.open({ sealedEmail: "v1.sealed", emailHash: `hmac-${account}` }))
  yield* ledger.execute(account, Decisions.verify(Credits.of(200_000), `lot_signup_${account}`))
})

/** What happened until the auditor's first visit, and, with `later`, until the second. */
const history = Effect.fnUntraced(function* (watch: Watch, later: boolean) {
  const ledger = yield* Ledger
  yield* PricePlan.PriceBook.use((book) => book.publish({ "grammar.check": Credits.of(1_000) }))
  yield* open(ADA)
  yield* open(GRACE)
  watch.now += HOUR
  yield* call(ADA, 1)
  yield* call(ADA, 2, false)
  yield* Payments.use((payments) => payments.grant(ADA, { paymentRef: "pay_1", amount: Credits.of(50_000), source: "topup" }))
  if (!later) return
  watch.now += 30 * 24 * HOUR
  for (const number of [3, 4, 5]) yield* call(GRACE, number)
  yield* ledger.refund(GRACE, "res_4", { reason: "goodwill" })
})

/** Writes the store into a new file. */
export const write = (filename: string, later: boolean): Promise<void> => {
  const watch = new Watch("2026-03-01T09:00:00.000Z")
  let ids = 0
  const eventIds = Layer.succeed(EventIds, () => `00000000-0000-7000-8000-${(++ids).toString(16).padStart(12, "0")}`)
  const services = Layer.mergeAll(Payments.layer, Layer.orDie(PricePlan.PriceBook.layer)).pipe(
    Layer.provideMerge(Ledger.layer()),
    Layer.provideMerge(SqliteEventStore.layer({ filename })),
    Layer.provide([eventIds, Layer.succeed(Clock.Clock, watch)])
  )
  return Effect.runPromise(history(watch, later).pipe(Effect.provide(services), Effect.provideService(Clock.Clock, watch)))
}
