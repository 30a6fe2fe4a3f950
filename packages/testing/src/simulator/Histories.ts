/** The events of streams of one kind as they came into the log, and the state after each of them. */
import type { Decider, EventCodec } from "@millrace/event-sourcing"

/** One event in the log. */
export interface Recorded<Event> {
  /** Its place in the log, from 1: also the number of events in the log once it had arrived. */
  readonly index: number
  readonly stream: string
  readonly revision: number
  readonly event: Event
  /** When it was decided: milliseconds since 1970. */
  readonly at: number
  readonly metadata: Readonly<Record<string, unknown>>
}

/** The place of the last of these events in a log of this length. */
export const lastAt = (events: ReadonlyArray<{ readonly index: number }>, length: number): number =>
  events.filter(({ index }) => index <= length).length - 1

/** All events of one stream, and its state after each of them. */
export interface History<State, Event> {
  readonly events: ReadonlyArray<Recorded<Event>>
  readonly states: ReadonlyArray<State>
}

export class Histories<State, Event extends EventCodec.Tagged> {
  readonly decider: Decider<State, Event>
  /** By the id of the stream. */
  readonly byId = new Map<string, { readonly events: Array<Recorded<Event>>; readonly states: Array<State> }>()

  constructor(decider: Decider<State, Event>) {
    this.decider = decider
  }

  record(id: string, recorded: Recorded<Event>): void {
    const { evolve, initial } = this.decider
    const history = this.byId.get(id) ?? { events: [], states: [] }
    const before = history.states.at(-1) ?? initial
    this.byId.set(id, history)
    history.events.push(recorded)
    try {
      history.states.push(evolve(before, recorded.event, recorded.at))
    } catch {
      // The audit reports an event that does not fold
      history.states.push(before)
    }
  }

  /** The history of a stream; an empty one if there is no such stream. */
  of(id: string): History<State, Event> {
    return this.byId.get(id) ?? { events: [], states: [] }
  }

  /** The newest state of a stream. */
  stateOf(id: string): State {
    return this.of(id).states.at(-1) ?? this.decider.initial
  }

  /** The states that a reader may have been shown: those from the first to the last of these lengths of the log. */
  between(id: string, lengthBefore: number, lengthAfter: number): ReadonlyArray<State> {
    const { events, states } = this.of(id)
    const first = lastAt(events, lengthBefore)
    const last = lastAt(events, lengthAfter)
    return [...(first < 0 ? [this.decider.initial] : []), ...states.slice(Math.max(0, first), last + 1)]
  }
}
