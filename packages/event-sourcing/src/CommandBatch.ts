/**
 * A batch of commands of one stream. They are decided one after another on the state in memory, and the events of all of them are
 * appended together, all or none.
 */
import { type Clock, Exit, Result } from "effect"
import type { Decide, Decider } from "./Decider.ts"
import type { Tagged } from "./EventCodec.ts"
import type { EventIds } from "./EventIds.ts"
import type { Condition, EventData, ExpectedRevision, Position } from "./EventStore.ts"
import * as HashChain from "./HashChain.ts"
import { toIso } from "./Iso.ts"
import type { StreamName } from "./StreamName.ts"
import type { Current, Durable } from "./StreamState.ts"

/** Metadata of each event: the request, its cause, and for administrative commands the actor and the reason. */
export interface Metadata {
  readonly $correlationId?: string
  readonly $causationId?: string
  readonly actor?: string
  readonly reason?: string
  /** Why an upstream failed, sealed. */
  readonly failure?: string
}

/** The result of a command: its events (none if it was decided before), and the stream right after them. */
export interface Committed<State, Event> extends Current<State> {
  readonly events: ReadonlyArray<Event>
}

/** The most UTF-16 code units in one append. Each is at most three bytes, so every store takes the append. */
const BATCH_CHARS = 300_000

const UNDECIDED = Exit.die("not decided")

/** A waiting caller. It gets its answer once all events that led to the answer are durable. */
export class Command<State, Event> {
  readonly decide: Decide<State, Event, unknown>
  readonly metadata: Metadata | undefined
  /** Where other streams must end for the decision to count. */
  readonly conditions: ReadonlyArray<Condition> | undefined
  /** Whether the caller was interrupted while it waited. */
  dropped = false
  readonly #told: (exit: Exit.Exit<Committed<State, Event>, unknown>) => void
  /** The last decision, up to the position of the stream's last event. */
  #decided: Omit<Committed<State, Event>, "position"> | Exit.Exit<never, unknown> = UNDECIDED

  constructor(
    decide: Decide<State, Event, unknown>,
    metadata: Metadata | undefined,
    told: (exit: Exit.Exit<Committed<State, Event>, unknown>) => void,
    conditions?: ReadonlyArray<Condition>
  ) {
    this.decide = decide
    this.metadata = metadata
    this.conditions = conditions
    this.#told = told
  }

  decided(events: ReadonlyArray<Event>, state: State, revision: number, at: number): void {
    this.#decided = { events, state, revision, at }
  }

  refused(exit: Exit.Exit<never, unknown>): void {
    this.#decided = exit
  }

  /** Tells the last decision. `position`: of the stream's last event. */
  answer(position: Position): void {
    const decided = this.#decided
    if (Exit.isExit(decided)) return this.#told(decided)
    const { at, events, revision, state } = decided
    this.#told(Exit.succeed({ events, state, revision, at, position }))
  }

  fail(exit: Exit.Exit<never, unknown>): void {
    this.#told(exit)
  }
}

/** The dependencies of a decision. */
export interface Deciding<State, Event extends Tagged> {
  readonly decider: Decider<State, Event>
  readonly newId: EventIds
  readonly clock: Clock.Clock
}

/** The state after decided events that are not yet appended, and their total size in UTF-16 code units. */
interface Decided<State> extends Pick<Durable<State>, "state" | "revision" | "hash" | "at"> {
  /** The events of the last decision; of a batch, those of all of its decisions. */
  readonly events: Array<EventData>
  readonly chars: number
}

export interface CommandBatch<State, Event> extends Decided<State> {
  readonly commands: Array<Command<State, Event>>
  /** The conditions of all commands. */
  readonly conditions: ReadonlyArray<Condition> | undefined
}

/**
 * Adds to a list. Most lists here get one item, so each begins as the list of its first items: an empty list that grows makes room for 17.
 */
const joined = <A>(list: Array<A>, more: Array<A>): Array<A> => {
  if (list.length === 0) return more
  for (const one of more) list.push(one)
  return list
}

/**
 * Takes commands out of `waiting`, at most `limit` and as many as fit in one append. Decides each on the state that the commands before it
 * led to. Dropped commands are taken and not decided.
 */
export const decideAll = <State, Event extends Tagged>(
  services: Deciding<State, Event>,
  name: StreamName,
  durable: Durable<State>,
  waiting: Array<Command<State, Event>>,
  limit: number
): CommandBatch<State, Event> => {
  const { state, revision, hash } = durable
  const at = Math.max(services.clock.currentTimeMillisUnsafe(), durable.at)
  let decided: Decided<State> = { state, revision, hash, at, events: [], chars: 0 }
  let commands: Array<Command<State, Event>> = []
  let { events } = decided
  let ends: Ends | undefined
  let taken = 0
  for (const command of waiting) {
    if (taken === limit) break
    if (!command.dropped) {
      // Of two commands that expect different ends of a stream, the second begins the next append
      if (!isConsistent(ends, command.conditions)) break
      const next = decideOne(services, name, decided, command)
      const isTooLarge = next.chars > BATCH_CHARS && next.events.length > 0
      // With this command the append would be too large, so the command begins the next append
      if (isTooLarge && commands.length > 0) break
      decided = next
      commands = joined(commands, [command])
      events = joined(events, next.events)
      ends = addAll(ends, command.conditions)
      if (isTooLarge) {
        // Too large by itself: it is sent alone, because the store may refuse it
        taken++
        break
      }
    }
    taken++
  }
  // Most batches take all that wait
  if (taken === waiting.length) waiting.length = 0
  else waiting.splice(0, taken)
  return {
    state: decided.state,
    revision: decided.revision,
    hash: decided.hash,
    at,
    events,
    chars: decided.chars,
    commands,
    conditions: conditionsOf(ends)
  }
}

type Ends = Map<StreamName, ExpectedRevision>

/** Whether a command expects no other end of a stream than the commands before it. */
const isConsistent = (ends: Ends | undefined, conditions: ReadonlyArray<Condition> = []): boolean =>
  ends === undefined || conditions.every(({ stream, expected }) => (ends.get(stream) ?? expected) === expected)

const addAll = (ends: Ends | undefined, conditions: ReadonlyArray<Condition> | undefined): Ends | undefined => {
  if (conditions === undefined) return ends
  const all: Ends = ends ?? new Map()
  for (const { stream, expected } of conditions) all.set(stream, expected)
  return all
}

const conditionsOf = (ends: Ends | undefined): ReadonlyArray<Condition> | undefined =>
  ends && [...ends].map(([stream, expected]) => ({ stream, expected }))

/** Returns the command's events, and the state after them. */
const decideOne = <State, Event extends Tagged>(
  { decider, newId }: Deciding<State, Event>,
  name: StreamName,
  before: Decided<State>,
  command: Command<State, Event>
): Decided<State> => {
  const { at } = before
  let { state, revision, hash, chars } = before
  let events: Array<EventData> = []
  try {
    const decision = command.decide(state, at)
    if (Result.isFailure(decision)) {
      command.refused(Exit.fail(decision.failure))
      return { ...before, events }
    }
    const metadata = command.metadata === undefined ? "{}" : JSON.stringify(command.metadata)
    for (const event of decision.success) {
      const { type, data } = decider.codec.encode(event)
      const id = newId(at)
      const link = HashChain.link(hash, name, ++revision, { id, type, data }, toIso(at), metadata)
      const decided = { codec: decider.codec, event, at }
      events = joined(events, [{ id, type, data, metadata: link.metadata, decided }])
      chars += data.length + link.metadata.length + 100
      state = decider.evolve(state, event, at)
      hash = link.hash
    }
    command.decided(decision.success, state, revision, at)
    return { state, revision, hash, at, events, chars }
  } catch (defect) {
    command.refused(Exit.die(defect))
    return { ...before, events: [] }
  }
}
