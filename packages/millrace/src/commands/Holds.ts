/** `holds`: open holds of all accounts. */
import { Account, Credits } from "@millrace/core"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Clock, Effect, HashMap, Stream } from "effect"
import * as Administration from "../Administration.ts"
import * as StoreUrl from "../StoreUrl.ts"

const list = Administration.query(
  "list",
  "List every open hold; one that is overdue ends with its account's next decision, or by recovery",
  { "millrace holds list": "List the open holds of all accounts" },
  StoreUrl.logLayer,
  {},
  Effect.fnUntraced(function* () {
    const log = yield* EventStore.EventStore
    const now = yield* Clock.currentTimeMillis
    const accounts = new Map<string, Account.Account>()
    yield* Stream.runForEachArray(log.readAll(EventStore.start), (events) =>
      Effect.sync(() => {
        for (const event of events) {
          if (StreamName.category(event.stream) !== Account.Account.category) continue
          const id = StreamName.id(event.stream)
          const at = Date.parse(HashChain.atOf(event))
          accounts.set(
            id,
            Account.Account.evolve(accounts.get(id) ?? Account.initial, Account.Account.codec.decode(event.type, event.data), at)
          )
        }
      })
    )
    return [...accounts].flatMap(([account, { purse }]) =>
      [...HashMap.entries(purse.holds)].map(([reservation, hold]) => {
        const due = hold.expiresAt ?? hold.acceptBy
        return {
          reservation,
          account,
          operation: hold.operation,
          amount: Credits.toDecimal(hold.amount),
          request: hold.requestId,
          reservedAt: Administration.isoOrNull(hold.reservedAt),
          expiresAt: Administration.isoOrNull(due),
          overdue: due !== undefined && due <= now
        }
      })
    )
  })
)

export const holds = Administration.group("holds", "Look at open holds", [list])
