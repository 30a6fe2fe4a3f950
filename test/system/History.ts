/** An account with a past: the real ledger writes it, under a clock of its own. */
import { Credits, Decisions, Ledger, newAccountId } from "@millrace/core"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Clock, Effect, Layer } from "effect"
import { randomOf } from "./Random.ts"

const DAY = 86_400_000
/** Operations that are called, and their prices in thousandths. */
const CALLED = [
  ["bin.lookup", 500],
  ["dns.resolve", 100],
  ["email.validate", 300],
  ["grammar.check", 2_000],
  ["topics.list", 100]
] as const

/** A clock that stands still until it is set. */
const settable = (clock: Clock.Clock, start: number) => {
  let now = start
  const stopped: Clock.Clock = Object.assign(Object.create(clock), {
    currentTimeMillisUnsafe: () => now,
    currentTimeMillis: Effect.sync(() => now)
  })
  return { stopped, set: (next: number) => (now = next) }
}

/** Opens an account that was verified, granted to and called by for so many days, up to an hour ago. Returns its id. */
export const accountWithPast = (file: string, days: number): Promise<string> =>
  Effect.gen(function* () {
    const next = randomOf(7)
    const random = (below: number) => Math.floor(next() * below)
    const now = Date.now() - 3_600_000
    const { set, stopped } = settable(yield* Clock.Clock, now - days * DAY)
    const stores = Layer.merge(
      SqliteEventStore.layer({ filename: file }),
      SqliteStateStore.layer({ filename: file.replace(/\.db$/u, ".state.db") })
    )
    const write = Effect.gen(function* () {
      const ledger = yield* Ledger
      const account = yield* newAccountId
      yield* ledger.execute(account, Decisions.open({ sealedEmail: "", emailHash: "" }))
      const grant = (name: string, source: "signup" | "topup" | "promotion", credits: number, expiresIn: number | null) =>
        ledger.execute(
          account,
          Decisions.grant({
            lotId: account.replace("acc_", `lot_${name}`),
            amount: Credits.of(credits * 1_000),
            source,
            expiresAt: expiresIn === null ? null : now + expiresIn * DAY
          })
        )
      yield* grant("a", "signup", 200, null)
      for (let day = days; day > 0; day--) {
        set(now - day * DAY)
        if (day === Math.floor(days / 2)) yield* grant("b", "topup", 10_000, 365)
        if (day === 3) yield* grant("c", "promotion", 500, 12)
        for (let call = 0; call < 2 + random(12); call++) {
          const [operation, price] = CALLED[random(CALLED.length)] ?? CALLED[0]
          const at = now - day * DAY + call * 60_000
          set(at)
          const reservationId = `res_${String(day).padStart(13, "0")}${String(call).padStart(13, "0")}`
          const quantity = operation === "email.validate" ? 1 + random(9) : 1
          const asked = { reservationId, requestId: `req-${day}-${call}`, operation, quantity, priceVersion: 1 }
          yield* ledger.execute(account, Decisions.reserve({ ...asked, unitPrice: Credits.of(price * (1 + random(3))), lifetime: 60_000 }))
          set(at + random(3_000))
          yield* random(8) === 0
            ? ledger.execute(account, Decisions.release(reservationId, "service_error"))
            : ledger.execute(account, Decisions.settle({ reservationId, replyHash: "0".repeat(43) }))
        }
      }
      return account
    })
    return yield* write.pipe(Effect.provide(Layer.provideMerge(Ledger.layer(), stores)), Effect.provideService(Clock.Clock, stopped))
  }).pipe(Effect.orDie, Effect.runPromise)
