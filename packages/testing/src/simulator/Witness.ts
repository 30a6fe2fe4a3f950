/** Stands at the store itself and sees each event arrive: what truly was, whatever anybody is told. */
import { Account, type AccountEvent, type Balance, balanceOf } from "@millrace/core"
import { EventCodec, type EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Effect } from "effect"
import type { World } from "./World.ts"

type Events = EventStore.EventStore["Service"]

/** An account event as it arrived. */
export interface Arrival {
  /** Place in the log, from 1. */
  readonly place: number
  readonly stream: string
  readonly revision: number
  readonly event: AccountEvent
  /** When it was decided. */
  readonly at: number
  readonly metadata: Readonly<Record<string, unknown>>
}

const codec = EventCodec.make(Account.Account)

export class Witness {
  /** Events in the log. */
  length = 0
  readonly arrivals: Array<Arrival> = []
  readonly store: Events
  readonly #states = new Map<string, Array<Account.Account>>()
  /** What stands in the log, but after something that was not seen yet, by the place before it. */
  readonly #unseen = new Map<number, () => void>()

  constructor(world: World, store: Events) {
    this.store = {
      ...store,
      append: (stream, expected, events) =>
        Effect.tap(store.append(stream, expected, events), ({ position }) =>
          Effect.sync(() => {
            const last = Number(position)
            // Sent again, it was there already
            if (last <= this.length) return
            // Its own fiber may be overtaken between the append and this
            this.#unseen.set(last - events.length, () => {
              const first = expected === "noStream" ? 0 : expected + 1
              world.say("log", `${stream} ${first}: ${events.map(({ type }) => type).join(", ")}`)
              events.forEach((event, i) => this.#see(stream, first + i, event))
            })
            for (let see = this.#unseen.get(this.length); see !== undefined; see = this.#unseen.get(this.length)) {
              this.#unseen.delete(this.length)
              see()
            }
          })
        )
    }
  }

  /** The account after each of its events; before the first, that which is not there. */
  states(accountId: string): ReadonlyArray<Account.Account> {
    return this.#states.get(accountId) ?? []
  }

  stateAt(accountId: string, revision: number): Account.Account {
    return this.states(accountId)[revision] ?? Account.initial
  }

  /** By the events that had been decided by then. */
  balanceAt(accountId: string, at: number): Balance {
    const before = this.arrivals.filter((arrival) => arrival.stream.endsWith(`-${accountId}`) && arrival.at <= at)
    return balanceOf(accountId, this.stateAt(accountId, before.length - 1), at)
  }

  #see(stream: StreamName.StreamName, revision: number, { type, data, metadata }: EventStore.EventData): void {
    const place = ++this.length
    if (StreamName.category(stream) !== Account.Account.category) return
    const event = codec.decode(type, data)
    const at = Date.parse(HashChain.atOf({ type, data, metadata, id: "" }))
    const accountId = StreamName.id(stream)
    const states = this.#states.get(accountId) ?? []
    this.#states.set(accountId, states)
    states.push(Account.Account.evolve(states.at(-1) ?? Account.initial, event, at))
    this.arrivals.push({ place, stream, revision, event, at, metadata: JSON.parse(metadata) })
  }
}
