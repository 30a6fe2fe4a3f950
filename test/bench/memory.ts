/** Heap for each live account: opened with one lot, then with an open hold, then with the settled one, then with more lots. Run with `--expose-gc`. */
import { Credits, Decisions, Ledger, newLotId, newReservationId } from "@millrace/core"
import { Effect } from "effect"
import { host, openAccounts } from "./host.ts"
import { withFolder } from "./measure.ts"

/** As many events are in the store's index of its newest events. Each step writes a multiple of that, so the index is as full after as before. */
const ACCOUNTS = 16_384
/** Accounts opened before the first figure. They fill what a process has once, such as its newest events and its compiled code. */
const EARLIER = 4_096

const heap = () => {
  for (let i = 0; i < 3; i++) globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

export const run = () =>
  withFolder((folder) =>
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const rows: Array<{ readonly step: string; readonly "bytes more for each account": number }> = []
      yield* openAccounts(EARLIER)
      let before = heap()
      const note = (step: string) =>
        Effect.sync(() => {
          const now = heap()
          rows.push({ step, "bytes more for each account": Math.round((now - before) / ACCOUNTS) })
          before = now
        })
      // Outside the heap, so that the ids of this benchmark are not counted
      const stored = Buffer.from((yield* openAccounts(ACCOUNTS)).join())
      const ids = () => stored.toString().split(",")
      yield* note("opened, one lot")
      const hold = (accountId: string) =>
        Effect.gen(function* () {
          const reservationId = yield* newReservationId
          const call = {
            reservationId,
            requestId: reservationId,
            operation: "bench.noop",
            quantity: 1,
            priceVersion: 2,
            unitPrice: Credits.of(500)
          }
          yield* ledger.execute(accountId, Decisions.reserve({ ...call, lifetime: 60_000 }))
          return reservationId
        })
      const reservations = yield* Effect.forEach(ids(), hold, { concurrency: 256 })
      yield* note("one open hold")
      yield* Effect.forEach(
        ids(),
        (id, i) => ledger.execute(id, Decisions.settle({ reservationId: reservations[i] ?? "", replyHash: "0".repeat(43) })),
        {
          concurrency: 256,
          discard: true
        }
      )
      yield* note("that hold settled")
      for (let n = 0; n < 3; n++) {
        yield* Effect.forEach(
          ids(),
          (id) =>
            Effect.flatMap(newLotId, (lotId) => ledger.execute(id, Decisions.grant({ lotId, amount: Credits.of(1), source: "promotion" }))),
          {
            concurrency: 256,
            discard: true
          }
        )
      }
      yield* note("three more lots")
      return rows
    }).pipe(Effect.provide(host(folder)), Effect.runPromise)
  )
