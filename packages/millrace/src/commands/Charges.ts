/** What became of a request: its hold, its price, its lots, its end, each with the event that says so. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { Credits, type EventOf, History } from "@millrace/core"
import { HashChain } from "@millrace/event-sourcing"
import * as Administration from "../Administration.ts"
import { CommandFailed } from "../Failure.ts"
import * as Output from "../Output.ts"
import * as StoreUrl from "../StoreUrl.ts"

type LotParts = EventOf<"CreditReserved">["lots"]

const lotsOf = (parts: LotParts) => parts.map(({ lotId, amount }) => ({ lot: lotId, amount: Credits.toDecimal(amount) }))

const describe = ({ accountId, hold, events }: History.ReservationHistory) => {
  const end = events.find(({ event }) => event._tag === "OperationSucceeded" || event._tag === "Refunded")
  const outcome = end === undefined ? "open" : end.event._tag === "OperationSucceeded" ? "succeeded" : "refunded"
  return {
    reservation: hold.reservationId,
    account: accountId,
    request: hold.requestId,
    operation: hold.operation,
    outcome,
    quantity: hold.quantity,
    priceVersion: hold.priceVersion,
    held: Credits.toDecimal(hold.amount),
    charged: end?.event._tag === "OperationSucceeded" ? Credits.toDecimal(end.event.charged) : 0,
    lots: lotsOf(hold.lots),
    events: events.map(({ recorded, event }) => ({
      type: recorded.type,
      at: HashChain.atOf(recorded),
      amount: "amount" in event ? Credits.toDecimal(event.amount) : "charged" in event ? Credits.toDecimal(event.charged) : 0,
      ...(event._tag === "Refunded" ? { reason: event.reason } : {}),
      lots: "lots" in event ? lotsOf(event.lots) : [],
      event: recorded.id,
      stream: recorded.stream,
      revision: recorded.revision,
      position: recorded.position
    }))
  }
}

const show = Command.make(
  "show",
  {
    store: Administration.store,
    request: Flag.String("request").pipe(Flag.withDescription("Id of the request: X-Request-Id of its reply")),
    json: Output.json
  },
  ({ request, store, json }) =>
    Effect.gen(function* () {
      const found = yield* History.reservations({ requestId: request })
      if (found.length === 0) return yield* Effect.fail(new CommandFailed(`no call of request ${request} held any credits`))
      for (const reservation of found) yield* Output.print(json, describe(reservation))
    }).pipe(Effect.provide(StoreUrl.logLayer(store)))
).pipe(
  Command.withDescription("Show what a request held, at which price, from which lots, and what became of it"),
  Command.withExamples([{ command: "millrace charges show --request 5f0c7c4e-7c39-4d2f-9b57-0d1f3a3f7a11", description: "By the id in its reply" }])
)

export const charges = Command.make("charges").pipe(Command.withDescription("Look at single charges"), Command.withSubcommands([show]))
