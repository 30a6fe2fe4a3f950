/**
 * Typed handlers for the events of a category. The decider's codec decodes the events, so a handler gets current events, even if an
 * earlier release wrote them.
 */
import type { Decider } from "./Decider.ts"
import type { EventOf, Tagged } from "./EventCodec.ts"
import type { RecordedEvent } from "./EventStore.ts"
import * as HashChain from "./HashChain.ts"
import { fromIso } from "./Iso.ts"
import * as StreamName from "./StreamName.ts"

/** The place of an event in the log, and the time of its decision. */
export interface Origin extends Pick<RecordedEvent, "stream" | "revision" | "position"> {
  /** The stream's name without its category. */
  readonly id: string
  /** Milliseconds since 1970. */
  readonly at: number
}

const originOf = (recorded: RecordedEvent): Origin => {
  const { decided, position, revision, stream } = recorded
  return { stream, revision, position, id: StreamName.id(stream), at: decided?.at ?? fromIso(HashChain.atOf(recorded)) }
}

/** A function for each handled event tag. `Rest`: its further parameters. */
export type Handlers<Event extends Tagged, Rest extends ReadonlyArray<unknown>, A> = {
  readonly [Tag in Event["_tag"]]?: (event: EventOf<Event, Tag>, origin: Origin, ...rest: Rest) => A
}

export interface Options<Event extends Tagged> {
  /**
   * An optional field for a tag. The handler is not called for events without it. Data whose text does not contain the field's name is not
   * parsed, because parsing is the main cost of a busy log.
   */
  readonly onlyWith?: { readonly [Tag in Event["_tag"]]?: Exclude<keyof EventOf<Event, Tag>, "_tag"> & string }
}

/**
 * The handlers of one decider's events, for recorded events of any category. `dispatch` returns undefined for an event without a handler,
 * and throws if the codec or the handler throws.
 */
export const of = <Event extends Tagged, Rest extends ReadonlyArray<unknown>, A>(
  { category, codec }: Pick<Decider<never, Event>, "category" | "codec">,
  handlers: Handlers<Event, Rest, A>,
  { onlyWith = {} }: Options<Event> = {}
) => {
  type Handler = (event: Event, origin: Origin, ...rest: Rest) => A
  const byTag = new Map(Object.entries(handlers) as ReadonlyArray<[Event["_tag"], Handler]>)
  const types = codec.typesOf(byTag.keys())
  const isOfCategory = StreamName.isOf(category)
  const fields = new Map(Object.entries(onlyWith) as ReadonlyArray<[string, string]>)
  const mayBeOfInterest = (type: string, data: string): boolean => {
    const field = fields.get(type)
    // An upcast may read the field from another name
    return field === undefined || codec.upcastTypes.has(type) || data.includes(`"${field}"`)
  }
  return {
    categories: [category],
    types: [...types],
    dispatch: (recorded: RecordedEvent, ...rest: Rest): A | undefined => {
      const { data, decided, stream, type } = recorded
      if (!types.has(type) || !isOfCategory(stream)) return undefined
      // An event of this codec is what decoding its data would return
      const known = decided?.codec === codec ? (decided.event as Event) : undefined
      if (known === undefined && !mayBeOfInterest(type, data)) return undefined
      const event = known ?? codec.decode(type, data)
      const field = fields.get(event._tag)
      return field === undefined || field in event ? byTag.get(event._tag)?.(event, originOf(recorded), ...rest) : undefined
    }
  }
}
