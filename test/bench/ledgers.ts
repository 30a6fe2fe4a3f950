/** Long logs, made fast: what charges would have written, sealed and appended in large batches. */
import { Account, type AccountEvent, Credits, newAccountId } from "@millrace/core"
import { EventStore, HashChain, StreamName, uuidv7 } from "@millrace/event-sourcing"
import { Array, Effect } from "effect"

/** About `events` events of settled charges over `accounts` accounts, each charge half a credit. Returns the accounts. */
export const write = (events: number, accounts: number) =>
  Effect.gen(function* () {
    const store = yield* EventStore.EventStore
    const { codec } = Account.Account
    const nextId = uuidv7()
    const now = Date.now()
    const at = new Date(now).toISOString()
    const each = Math.floor(events / accounts)
    const ids: Array<string> = []
    for (let n = 0; n < accounts; n++) {
      const id = yield* newAccountId
      ids.push(id)
      const stream = StreamName.make(Account.Account.category, id)
      let hash = HashChain.start(stream)
      let revision = -1
      const seal = (event: AccountEvent) => {
        const sealed = HashChain.seal(hash, stream, ++revision, { id: nextId(now), ...codec.encode(event) }, at, "{}")
        hash = HashChain.hashOf(sealed)
        return sealed
      }
      for (let done = 0; done < each; ) {
        const expected = revision < 0 ? ("noStream" as const) : revision
        const batch: Array<EventStore.EventData> = []
        if (done === 0) {
          batch.push(seal({ _tag: "AccountOpened", sealedEmail: "", emailHash: "" }), seal(granted(id)))
        }
        while (batch.length < 500 && done + batch.length < each) batch.push(...charge(id, done + batch.length, now).map(seal))
        done += batch.length
        if (Array.isArrayNonEmpty(batch)) yield* store.append(stream, expected, batch)
      }
    }
    return ids
  })

const lotOf = (accountId: string) => accountId.replace("acc_", "lot_")

const granted = (accountId: string): AccountEvent => ({
  _tag: "CreditsGranted",
  lotId: lotOf(accountId),
  amount: Credits.of(1e12),
  source: "promotion",
  priority: 10,
  expiresAt: null,
  paymentRef: null
})

const charge = (accountId: string, n: number, now: number): ReadonlyArray<AccountEvent> => {
  const reservationId = `res_${n.toString().padStart(26, "0")}`
  const amount = Credits.of(500)
  const lots = [{ lotId: lotOf(accountId), amount }]
  return [
    {
      _tag: "CreditReserved",
      reservationId,
      requestId: "9493509b-0f3e-470e-b7dd-65b0c612f44a",
      operation: "bin.lookup",
      quantity: 1,
      priceVersion: 1,
      amount,
      lots,
      expiresAt: now + 60_000
    },
    { _tag: "OperationSucceeded", reservationId, charged: amount, quantity: 1, lots, replyHash: "0".repeat(43) }
  ]
}
