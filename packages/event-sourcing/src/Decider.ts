import type { Result, Schema } from "effect"

/**
 * The pure half of an aggregate: which events it knows and how they fold into a state.
 * Decisions are plain functions of that state and live beside it, one for each command.
 */
export interface Decider<State, Event extends { readonly _tag: string }> {
  /** Stream names are `{category}-{id}`. */
  readonly category: string
  /** What is written to the store; see {@link versions} for what was written before. */
  readonly events: Schema.Codec<Event, { readonly _tag: string }>
  /**
   * Readers of what earlier releases wrote, by the type as it stands in the log: each turns that event's data into the encoded
   * form of today's. A type that neither `events` nor this names makes the stream refused, never skipped.
   */
  readonly versions?: Readonly<Record<string, (data: Readonly<Record<string, unknown>>) => { readonly _tag: string }>>
  readonly initial: State
  /** `at`: when the event was decided, milliseconds since 1970. */
  readonly evolve: (state: State, event: Event, at: number) => State
}

/** What a command decides: the events that follow, none when it was already done, or why not. */
export type Decision<Event, E = never> = Result.Result<ReadonlyArray<Event>, E>

/** A command: pure, for it may run again after a conflict. `now` never goes back within a stream. Milliseconds since 1970. */
export type Decide<State, Event, E = never> = (state: State, now: number) => Decision<Event, E>
