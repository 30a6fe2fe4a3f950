/** How a projection folds events into its state. */
import { Schema } from "effect"
import { type Batch, endOf, type Position, type RecordedEvent } from "./EventStore.ts"
import { type Selection, selects } from "./Following.ts"

export interface Definition<State> extends Selection {
  /** Names it in the state store. Never changes. */
  readonly name: string
  /** Raised whenever `evolve`, the selection or the schema changes. The log is then folded from the start. */
  readonly version: number
  /** The schema of the stored state, which is JSON. */
  readonly state: Schema.Codec<State, unknown>
  /** Makes a new state for each fold, so `evolve` may mutate it. */
  readonly initial: () => State
  /** Must not throw: if it does, the projection stops at that event. */
  readonly evolve: (state: State, event: RecordedEvent) => State
}

/** If `evolve` mutates the state, read what you need before the next `yield*`, and do not keep a reference. */
export interface Folded<State> {
  readonly state: State
  readonly position: Position
}

/** The fold threw at this event. The fix is a release whose fold handles the event, with a new `version`. */
export class ProjectionStopped extends Schema.TaggedError<ProjectionStopped>()("ProjectionStopped", {
  projection: Schema.String,
  position: Schema.String,
  stream: Schema.String,
  revision: Schema.Int,
  reason: Schema.String
}) {
  override get message(): string {
    return `The projection ${this.projection} stopped at ${this.position}, event ${this.revision} of ${this.stream}: ${this.reason}`
  }
}

/** Folds batches of events by one definition. */
export const folder = <State>(definition: Definition<State>) => {
  const { evolve, name } = definition
  const concerns = selects(definition)
  return ({ state, position }: Folded<State>, batch: Batch): Folded<State> | ProjectionStopped => {
    let isNew = false
    for (const event of batch.events) {
      // A rebuilt state may be ahead of its subscription. All that follows a new event is new
      isNew ||= event.position > position
      if (!isNew) continue
      try {
        if (concerns(event)) state = evolve(state, event)
      } catch (cause) {
        const { stream, revision } = event
        return new ProjectionStopped({ projection: name, position: event.position, stream, revision, reason: String(cause) })
      }
      position = event.position
    }
    const end = endOf(batch)
    return { state, position: end !== undefined && end > position ? end : position }
  }
}
