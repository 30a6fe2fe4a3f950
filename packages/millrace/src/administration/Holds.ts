/** Open holds of all accounts. */
import { Account, Credits } from "@millrace/core"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Clock, Effect, HashMap, Stream } from "effect"
import type { Failure } from "../Failure.ts"
import { dateOf } from "./Act.ts"

/** An open hold. `amount` in credits. */
export interface OpenHold {
  readonly reservation: string
  readonly account: string
  readonly operation: string
  readonly amount: number
  readonly request: string
  readonly reservedAt: Date
  /** Null for the hold of a job that was accepted: it ends with the job. */
  readonly expiresAt: Date | null
  /** It is due, and ends with its account's next decision, or by recovery. */
  readonly overdue: boolean
}

const { category, codec, evolve } = Account.Account

/** Every open hold. Reads the whole log. */
export const list: Effect.Effect<ReadonlyArray<OpenHold>, Failure, EventStore.EventStore> = Effect.gen(function* () {
  const log = yield* EventStore.EventStore
  const now = yield* Clock.currentTimeMillis
  const accounts = new Map<string, Account.Account>()
  yield* Stream.runForEachArray(log.readAll(EventStore.start), (events) =>
    Effect.sync(() => {
      for (const event of events) {
        if (StreamName.category(event.stream) !== category) continue
        const id = StreamName.id(event.stream)
        const at = Date.parse(HashChain.atOf(event))
        accounts.set(id, evolve(accounts.get(id) ?? Account.initial, codec.decode(event.type, event.data), at))
      }
    })
  )
  return [...accounts].flatMap(([account, { purse }]) =>
    [...HashMap.entries(purse.holds)].map(
      ([reservation, { acceptBy, amount, expiresAt = acceptBy, operation, requestId, reservedAt }]) => ({
        ...{ reservation, account, operation, amount: Credits.toDecimal(amount), request: requestId },
        reservedAt: new Date(reservedAt),
        expiresAt: dateOf(expiresAt),
        overdue: expiresAt !== undefined && expiresAt <= now
      })
    )
  )
})
