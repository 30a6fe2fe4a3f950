/**
 * Commands of a stream, decided one after another on the state in memory, and the events of all of them, which are appended together: all
 * of them happen, or none.
 */
import { type Clock, Exit, Result } from "effect"
import type { Decide, Decider } from "./Decider.ts"
import type { Tagged } from "./EventCodec.ts"
import type { EventIds } from "./EventIds.ts"
import type { EventData, Position } from "./EventStore.ts"
import * as HashChain from "./HashChain.ts"
import { toIso } from "./Iso.ts"
import type { StreamName } from "./StreamName.ts"
import type { Current, Durable } from "./StreamState.ts"

/** Recorded beside each event: the request, its cause, and for administrative acts who and why. */
export interface Metadata {
  readonly $correlationId?: string
  readonly $causationId?: string
  readonly actor?: string
  readonly reason?: string
  /** Why an upstream failed, sealed. */
  readonly failure?: string
}

/** The result of a command: its events (none when it was decided before), and the stream right after them. */
export interface Committed<State, Event> extends Current<State> {
  readonly events: ReadonlyArray<Event>
}

/** UTF-16 code units of one append. They are at most three bytes each, so every store takes the append. */
const BATCH_CHARS = 300_000

/** A caller that waits, and the answer that it gets once all that led to it is durable. */
export interface Command<State, Event> {
  readonly decide: Decide<State, Event, unknown>
  readonly metadata: Metadata | undefined
  readonly resume: (exit: Exit.Exit<Committed<State, Event>, unknown>) => void
  /** Its caller was interrupted while it waited. */
  dropped: boolean
  /** What was decided last, given the position of the stream's last event. */
  answer: (position: Position) => Exit.Exit<Committed<State, Event>, unknown>
}

/** What decides commands. */
export interface Deciding<State, Event extends Tagged> {
  readonly decider: Decider<State, Event>
  readonly newId: EventIds
  readonly clock: Clock.Clock
}

/** The state after events that were decided and not yet appended, and the UTF-16 code units of all of them. */
interface Decided<State> extends Pick<Durable<State>, "state" | "revision" | "hash" | "at"> {
  readonly chars: number
}

export interface CommandBatch<State, Event> extends Decided<State> {
  readonly commands: Array<Command<State, Event>>
  readonly events: Array<EventData>
}

/**
 * Takes commands out of `waiting`, at most `limit` and as many as one append takes, and decides each as if all before it had happened.
 * Commands that were dropped are taken and not decided.
 */
export const decideAll = <State, Event extends Tagged>(
  services: Deciding<State, Event>,
  name: StreamName,
  durable: Durable<State>,
  waiting: Array<Command<State, Event>>,
  limit: number
): CommandBatch<State, Event> => {
  const { state, revision, hash } = durable
  const commands: Array<Command<State, Event>> = []
  const events: Array<EventData> = []
  let decided: Decided<State> = { state, revision, hash, at: Math.max(services.clock.currentTimeMillisUnsafe(), durable.at), chars: 0 }
  let taken = 0
  for (const command of waiting.slice(0, limit)) {
    if (!command.dropped) {
      const before = events.length
      const next = decideOne(services, name, decided, command, events)
      const isTooLarge = next.chars > BATCH_CHARS && events.length > before
      if (isTooLarge && commands.length > 0) {
        // The append would be too large with this command: it goes first in the next one
        events.length = before
        break
      }
      decided = next
      commands.push(command)
      if (isTooLarge) {
        // Too large by itself: it goes alone, because the store may refuse it
        taken++
        break
      }
    }
    taken++
  }
  waiting.splice(0, taken)
  return { ...decided, commands, events }
}

/** Adds the command's events to `events`; answers the state after them. */
const decideOne = <State, Event extends Tagged>(
  { decider, newId }: Deciding<State, Event>,
  name: StreamName,
  decided: Decided<State>,
  command: Command<State, Event>,
  events: Array<EventData>
): Decided<State> => {
  const before = events.length
  const { at } = decided
  let { state, revision, hash, chars } = decided
  const refuse = (exit: Exit.Exit<never, unknown>) => {
    command.answer = () => exit
    return decided
  }
  try {
    const decision = command.decide(state, at)
    if (Result.isFailure(decision)) return refuse(Exit.fail(decision.failure))
    const metadata = command.metadata === undefined ? "{}" : JSON.stringify(command.metadata)
    for (const event of decision.success) {
      const { type, data } = decider.codec.encode(event)
      const sealed = HashChain.seal(hash, name, ++revision, { id: newId(at), type, data }, toIso(at), metadata)
      events.push(sealed)
      chars += data.length + sealed.metadata.length + 100
      state = decider.evolve(state, event, at)
      hash = HashChain.hashOf(sealed)
    }
    const committed = { events: decision.success, state, revision, at }
    command.answer = (position) => Exit.succeed({ ...committed, position })
    return { state, revision, hash, at, chars }
  } catch (defect) {
    events.length = before
    return refuse(Exit.die(defect))
  }
}
