import type { Result } from "effect"
import type { EventCodec, Tagged } from "./EventCodec.ts"

/**
 * The pure part of an aggregate: its events and the fold into its state. Decisions are plain functions of that state, one for each command,
 * in the same file.
 */
export interface Decider<State, Event extends Tagged> {
  /** Stream names are `{category}-{id}`. */
  readonly category: string
  /** Encodes and decodes the events. Every reader of the category uses this codec, so every reader knows all versions. */
  readonly codec: EventCodec<Event>
  readonly initial: State
  /** `at`: when the event was decided, milliseconds since 1970. */
  readonly evolve: (state: State, event: Event, at: number) => State
}

/** The result of a decision: the events to append (none if it was decided before), or a refusal. */
export type Decision<Event, E = never> = Result.Result<ReadonlyArray<Event>, E>

/** Decides a command. Must be pure, because it runs again after a conflict. `now` (milliseconds since 1970) never goes back in a stream. */
export type Decide<State, Event, E = never> = (state: State, now: number) => Decision<Event, E>
