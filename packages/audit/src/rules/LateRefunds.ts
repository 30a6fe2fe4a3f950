/**
 * Rules of refunds after settlement. Of each lot, a refund returns at most the amount that was charged and not refunded yet, and a revived
 * lot has the terms of its grant. The account's state does not keep settled charges, so they are looked up in its stream after the log was
 * read.
 */
import { Account, type EventOf, type Lots } from "@millrace/core"
import { EventStore, HashChain, type StreamName } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"
import type { Problems } from "../Report.ts"
import { credits } from "./Rule.ts"

type Refund = EventOf<"Refunded">

export class LateRefunds {
  /** Accepted refunds, by stream and revision. */
  readonly #streams = new Map<StreamName.StreamName, Map<EventStore.Revision, Refund>>()

  note({ stream, revision }: EventStore.RecordedEvent, refund: Refund): void {
    this.#streams.set(stream, (this.#streams.get(stream) ?? new Map()).set(revision, refund))
  }

  check(problems: Problems): Effect.Effect<void, EventStore.StoreUnavailable, EventStore.EventStore> {
    return Effect.forEach(this.#streams, ([stream, refunds]) => checkStream(stream, refunds, problems), { discard: true })
  }
}

const checkStream = Effect.fnUntraced(function* (
  stream: StreamName.StreamName,
  refunds: ReadonlyMap<EventStore.Revision, Refund>,
  problems: Problems
) {
  const store = yield* EventStore.EventStore
  const past = new Past(refunds)
  const see = (event: EventStore.RecordedEvent): void => {
    const refund = refunds.get(event.revision)
    if (refund === undefined) return past.learn(event)
    for (const detail of past.wrongWith(refund)) problems.add(event, "late-refund-is-of-its-charge", detail)
  }
  let last = 0
  for (const revision of refunds.keys()) last = Math.max(last, revision)
  yield* store.readStream(stream, { limit: last + 1 }).pipe(Stream.runForEachArray((events) => Effect.sync(() => events.forEach(see))))
})

const TYPES = Account.Account.codec.typesOf(["OperationSucceeded", "CreditsGranted"])

/** The terms of a lot: with them a refund revives it. */
const TERMS = ["source", "priority", "expiresAt", "grantedAt"] as const

/** The charges and grants to which the refunds of one stream refer. */
class Past {
  readonly #about: ReadonlySet<string>
  /** The part of each charge that is not refunded, by lot. */
  readonly #charges = new Map<string, Map<string, number>>()
  readonly #grants = new Map<string, Lots.LotTerms & { readonly grantedAt: number }>()

  constructor(refunds: ReadonlyMap<EventStore.Revision, Refund>) {
    this.#about = new Set([...refunds.values()].map(({ reservationId }) => reservationId))
  }

  learn(recorded: EventStore.RecordedEvent): void {
    if (!TYPES.has(recorded.type)) return
    const event = Account.Account.codec.decode(recorded.type, recorded.data)
    if (event._tag === "CreditsGranted") {
      this.#grants.set(event.lotId, { ...event, grantedAt: Date.parse(HashChain.atOf(recorded)) })
    } else if (event._tag === "OperationSucceeded" && this.#about.has(event.reservationId)) {
      this.#charges.set(event.reservationId, new Map(event.lots.map(({ lotId, amount }) => [lotId, amount])))
    }
  }

  *wrongWith({ reservationId, lots, revived = [] }: Refund): Iterable<string> {
    const charge = this.#charges.get(reservationId)
    if (charge === undefined) return yield `nothing was charged under ${reservationId}`
    for (const { lotId, amount } of lots) {
      const left = charge.get(lotId) ?? 0
      if (amount > left) yield `${credits(amount)} was refunded to lot ${lotId}, but only ${credits(left)} is charged and not refunded`
      charge.set(lotId, Math.max(0, left - amount))
    }
    for (const lot of revived) {
      const grant = this.#grants.get(lot.lotId)
      if (!TERMS.every((term) => grant?.[term] === lot[term])) yield `lot ${lot.lotId} is revived on other terms than it was granted`
    }
  }
}
