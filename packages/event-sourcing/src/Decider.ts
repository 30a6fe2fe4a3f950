import type { Result } from "effect"
import type { EventCodec, Tagged } from "./EventCodec.ts"

/**
 * The pure half of an aggregate: its events and how they fold into a state. Decisions are plain functions of that state and live beside
 * it, one for each command.
 */
export interface Decider<State, Event extends Tagged> {
  /** Stream names are `{category}-{id}`. */
  readonly category: string
  /** Reads and writes the events. Whoever reads this category uses this codec, so every reader knows every version. */
  readonly codec: EventCodec<Event>
  readonly initial: State
  /** `at`: when the event was decided, milliseconds since 1970. */
  readonly evolve: (state: State, event: Event, at: number) => State
}

/** What a command decides: the events to append (none if it was decided before), or the refusal. */
export type Decision<Event, E = never> = Result.Result<ReadonlyArray<Event>, E>

/** A command. It must be pure, because it runs again after a conflict. `now` (milliseconds since 1970) never goes back within a stream. */
export type Decide<State, Event, E = never> = (state: State, now: number) => Decision<Event, E>
