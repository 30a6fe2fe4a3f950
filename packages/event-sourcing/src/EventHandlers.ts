/**
 * Typed handlers for the events of a category. Events are decoded by the decider's codec, so a handler sees the current event even
 * where the log holds one of an earlier release.
 */
import type { Decider } from "./Decider.ts"
import type { EventOf, Tagged } from "./EventCodec.ts"
import type { Position, RecordedEvent, Revision } from "./EventStore.ts"
import * as HashChain from "./HashChain.ts"
import * as StreamName from "./StreamName.ts"

/** Where an event stands in the log, and when it was decided. */
export class Origin {
  readonly #recorded: RecordedEvent

  constructor(recorded: RecordedEvent) {
    this.#recorded = recorded
  }

  get stream(): StreamName.StreamName {
    return this.#recorded.stream
  }

  /** The stream's name without its category. */
  get id(): string {
    return StreamName.id(this.#recorded.stream)
  }

  get revision(): Revision {
    return this.#recorded.revision
  }

  get position(): Position {
    return this.#recorded.position
  }

  /** Milliseconds since 1970. */
  get at(): number {
    return Date.parse(HashChain.atOf(this.#recorded))
  }
}

/** A function for each event tag that is of interest. `Rest`: what it is given besides. */
export type Handlers<Event extends Tagged, Rest extends ReadonlyArray<unknown>, A> = {
  readonly [Tag in Event["_tag"]]?: (event: EventOf<Event, Tag>, origin: Origin, ...rest: Rest) => A
}

export interface Options<Event extends Tagged> {
  /**
   * For a tag, an optional field without which the handler is not called. Data whose text does not mention the field is not even
   * parsed: parsing is what most events of a busy log cost.
   */
  readonly onlyWith?: { readonly [Tag in Event["_tag"]]?: Exclude<keyof EventOf<Event, Tag>, "_tag"> & string }
}

/** The handlers of a category, ready to be given recorded events of any. */
export interface Dispatcher<Rest extends ReadonlyArray<unknown>, A> {
  readonly categories: ReadonlyArray<string>
  readonly types: ReadonlyArray<string>
  /** Undefined where there is no handler for this event. Throws what the codec or the handler throws. */
  readonly dispatch: (recorded: RecordedEvent, ...rest: Rest) => A | undefined
}

/** The handlers of one decider's events. */
export const of = <Event extends Tagged, Rest extends ReadonlyArray<unknown>, A>(
  { category, codec }: Pick<Decider<never, Event>, "category" | "codec">,
  handlers: Handlers<Event, Rest, A>,
  { onlyWith = {} }: Options<Event> = {}
): Dispatcher<Rest, A> => {
  type Handler = (event: Event, origin: Origin, ...rest: Rest) => A
  const byTag = new Map(Object.entries(handlers) as ReadonlyArray<[Event["_tag"], Handler]>)
  const types = codec.typesOf(byTag.keys())
  const fields = new Map(Object.entries(onlyWith) as ReadonlyArray<[string, string]>)
  const mayBeOfInterest = (type: string, data: string): boolean => {
    const field = fields.get(type)
    // An upcast may read the field from another name
    return field === undefined || codec.upcastTypes.has(type) || data.includes(`"${field}"`)
  }
  return {
    categories: [category],
    types: [...types],
    dispatch: (recorded, ...rest) => {
      const { data, stream, type } = recorded
      if (!types.has(type) || StreamName.category(stream) !== category || !mayBeOfInterest(type, data)) return undefined
      const event = codec.decode(type, data)
      const field = fields.get(event._tag)
      return field === undefined || field in event ? byTag.get(event._tag)?.(event, new Origin(recorded), ...rest) : undefined
    }
  }
}
