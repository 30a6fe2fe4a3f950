/** A projection of the messages of the last day, by public number, in the order in which they came. It wakes the waits of every host. */
import { type EventStore, Projection, type StateStore } from "@millrace/event-sourcing"
import { Duration, type Effect, Schema, SchemaTransformation, type Scope } from "effect"
import { Sms, type SmsEvent } from "./Sms.ts"

/** How long messages are kept. */
export const KEPT = Duration.toMillis("24 hours")

/** The most messages of a number. The oldest of more are not found any more. */
const MOST = 10_000

const Entry = Schema.Struct({
  /** The id of its stream. */
  id: Schema.String,
  /** The hash of its sealed text. */
  hash: Schema.String,
  /** Milliseconds since 1970. */
  at: Schema.Int
})
export type Entry = typeof Entry.Type

/** The messages of a number, and how many it ever had. */
const Arrivals = Schema.Struct({ number: Schema.String, count: Schema.Int, entries: Schema.Array(Entry) })

export class RecentSms {
  readonly #numbers = new Map<string, { count: number; entries: Array<Entry> }>()

  /** The numbers that ever had a message. */
  numbers(): Iterable<string> {
    return this.#numbers.keys()
  }

  /** How many messages a number ever had. */
  countOf(number: string): number {
    return this.#numbers.get(number)?.count ?? 0
  }

  /** The messages after the first `count` that the number ever had, and after `since`. */
  after(number: string, count: number, since = Number.NEGATIVE_INFINITY): ReadonlyArray<Entry> {
    const arrivals = this.#numbers.get(number)
    if (arrivals === undefined) return []
    const known = Math.max(0, count - (arrivals.count - arrivals.entries.length))
    return arrivals.entries.slice(known).filter(({ at }) => at > since)
  }

  add(number: string, entry: Entry): this {
    const arrivals = this.#numbers.get(number) ?? { count: 0, entries: [] }
    this.#numbers.set(number, arrivals)
    arrivals.count++
    arrivals.entries.push(entry)
    const kept = arrivals.entries.findIndex(({ at }) => at > entry.at - KEPT)
    arrivals.entries.splice(0, Math.max(kept, arrivals.entries.length - MOST))
    return this
  }

  static of(stored: ReadonlyArray<typeof Arrivals.Type>): RecentSms {
    const recent = new RecentSms()
    for (const { count, entries, number } of stored) recent.#numbers.set(number, { count, entries: [...entries] })
    return recent
  }

  get stored(): ReadonlyArray<typeof Arrivals.Type> {
    return Array.from(this.#numbers, ([number, { count, entries }]) => ({ number, count, entries }))
  }
}

const Stored = Schema.Array(Arrivals).pipe(
  Schema.decodeTo(
    Schema.instanceOf(RecentSms),
    SchemaTransformation.transform({ decode: (stored) => RecentSms.of(stored), encode: (recent) => recent.stored })
  )
)

export const make: Effect.Effect<
  Projection.Projection<RecentSms>,
  never,
  EventStore.EventStore | StateStore.StateStore | Scope.Scope
> = Projection.make({
  name: "sms",
  version: 1,
  state: Stored,
  initial: () => new RecentSms(),
  ...Projection.of<RecentSms, SmsEvent>(Sms, {
    SmsReceived: ({ number, text: { hash } }, { at, id }, recent) => recent.add(number, { id, hash, at })
  })
})
