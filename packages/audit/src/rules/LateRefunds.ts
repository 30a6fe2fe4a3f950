/**
 * Rules of refunds after settlement. Of each lot, a refund returns at most the amount that was charged and not refunded yet, and a revived
 * lot has the terms of its grant. The account's state does not keep settled charges, so they are looked up in its stream after the log was
 * read.
 */
import { Account, type EventOf, type Lots } from "@millrace/core"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"
import type { Say, Stake } from "../Means.ts"
import type { Problems } from "../Report.ts"
import { credits, excess, wholeOf } from "./Rule.ts"

type Refund = EventOf<"Refunded">

export class LateRefunds {
  /** Accepted refunds, by stream and revision. */
  readonly #streams = new Map<StreamName.StreamName, Map<EventStore.Revision, Refund>>()

  note({ stream, revision }: EventStore.RecordedEvent, refund: Refund): void {
    this.#streams.set(stream, (this.#streams.get(stream) ?? new Map()).set(revision, refund))
  }

  /** `together`: reads the whole log once for all streams, where reading one stream takes as long. */
  check(problems: Problems, together: boolean): Effect.Effect<void, EventStore.StoreUnavailable, EventStore.EventStore> {
    if (this.#streams.size === 0) return Effect.void
    return Effect.flatMap(EventStore.EventStore, (store) => {
      if (together) return Stream.runForEachArray(store.readAll(EventStore.start), checkerOf(this.#streams, problems))
      return Effect.forEach(
        this.#streams,
        ([stream, refunds]) => {
          let last = 0
          for (const revision of refunds.keys()) last = Math.max(last, revision)
          return Stream.runForEachArray(store.readStream(stream, { limit: last + 1 }), checkerOf(new Map([[stream, refunds]]), problems))
        },
        { discard: true }
      )
    })
  }
}

/** Checks the refunds of some streams, given all events of these streams in order. */
const checkerOf = (
  streams: ReadonlyMap<StreamName.StreamName, ReadonlyMap<EventStore.Revision, Refund>>,
  problems: Problems
): ((events: ReadonlyArray<EventStore.RecordedEvent>) => Effect.Effect<void>) => {
  const pasts = new Map([...streams].map(([stream, refunds]) => [stream, new Past(refunds)]))
  const see = (event: EventStore.RecordedEvent): void => {
    const refund = streams.get(event.stream)?.get(event.revision)
    if (refund === undefined) return pasts.get(event.stream)?.learn(event)
    for (const { detail, stake } of pasts.get(event.stream)?.wrongWith(refund) ?? []) {
      const account = StreamName.id(event.stream)
      problems.add(event, "late-refund-is-of-its-charge", detail, (say) => ({ account, ...stake(say) }))
    }
  }
  return (events) => Effect.sync(() => events.forEach(see))
}

const TYPES = Account.Account.codec.typesOf(["OperationSucceeded", "CreditsGranted"])

/** A charge or a grant. Undefined for others, and for what cannot be read: another rule reports it. */
const readable = ({ data, type }: EventStore.RecordedEvent) => {
  try {
    return TYPES.has(type) ? Account.Account.codec.decode(type, data) : undefined
  } catch {
    return undefined
  }
}

/** The terms of a lot: with them a refund revives it. */
const TERMS = ["source", "priority", "expiresAt", "grantedAt"] as const

interface Wrong {
  readonly detail: string
  readonly stake: (say: Say) => Stake
}

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
    const event = readable(recorded)
    if (event?._tag === "CreditsGranted") {
      this.#grants.set(event.lotId, { ...event, grantedAt: HashChain.timeOf(recorded) })
    } else if (event?._tag === "OperationSucceeded" && this.#about.has(event.reservationId)) {
      this.#charges.set(event.reservationId, new Map(event.lots.map(({ lotId, amount }) => [lotId, amount])))
    }
  }

  *wrongWith(refund: Refund): Iterable<Wrong> {
    const { reservationId, lots, revived = [] } = refund
    const charge = this.#charges.get(reservationId)
    if (charge === undefined) {
      const detail = `nothing was charged under ${reservationId}`
      return yield { detail, stake: (say) => wholeOf(refund, "although nothing had been charged", say) }
    }
    for (const { lotId, amount } of lots) {
      const left = charge.get(lotId) ?? 0
      if (amount > left) {
        const detail = `${credits(amount)} was refunded to lot ${lotId}, but only ${credits(left)} is charged and not refunded`
        yield { detail, stake: (say) => excess(amount, left, "refunded", say, lotId) }
      }
      charge.set(lotId, Math.max(0, left - amount))
    }
    for (const lot of revived) {
      const grant = this.#grants.get(lot.lotId)
      if (TERMS.every((term) => grant?.[term] === lot[term])) continue
      const detail = `lot ${lot.lotId} is revived on other terms than it was granted`
      const clause = `to lot ${lot.lotId} on other terms than it was granted: they expire at another time, or are used in another order`
      yield { detail, stake: (say) => wholeOf(refund, clause, say) }
    }
  }
}
