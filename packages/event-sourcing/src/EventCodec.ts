/** Encodes the events of one category as JSON text, and decodes every version that a release ever wrote. */
import { Schema } from "effect"
import * as FieldDecoder from "./FieldDecoder.ts"

export interface Tagged {
  readonly _tag: string
}

/** The event of this tag in a union of events. */
export type EventOf<Event extends Tagged, Tag extends Event["_tag"]> = Extract<Event, { readonly _tag: Tag }>

/**
 * Upcasts by the event type that an earlier release wrote to the log. Each turns the parsed JSON of that type into the encoded form of
 * a current event. It runs before the current schema decodes the result, so it cannot produce an event that the schema refuses.
 * A type may keep its name: then the upcast is called for old and new data alike and must tell them apart.
 */
export type Upcasts = Readonly<Record<string, (data: Readonly<Record<string, unknown>>) => Tagged>>

/** The event type is unknown to this release, or the data does not fit the type's schema. */
export class UnreadableEvent extends Error {
  override readonly name = "UnreadableEvent"
}

export interface EventCodec<Event extends Tagged> {
  readonly encode: (event: Event) => { readonly type: string; readonly data: string }
  /** @throws UnreadableEvent */
  readonly decode: (type: string, data: string) => Event
  /** The second step of {@link decode}, after {@link parse}: many events are decoded faster if all are parsed first. Does not throw. */
  readonly decodeParsed: (type: string, parsed: unknown) => Event | UnreadableEvent
  /** The types under which the log may hold events of these tags: the tags themselves and every type that has an upcast. */
  readonly typesOf: (tags: Iterable<Event["_tag"]>) => ReadonlySet<string>
  /** The types that an upcast reads. */
  readonly upcastTypes: ReadonlySet<string>
}

/** What a text of JSON says; the error of a text that is no JSON. */
export const parse = (data: string): unknown => {
  try {
    return JSON.parse(data)
  } catch (error) {
    return error
  }
}

/**
 * The codec of a category's events. A type that neither `events` nor `upcasts` knows cannot be decoded: its stream is refused, never
 * skipped.
 */
export const make = <Event extends Tagged>(events: Schema.Codec<Event, Tagged>, upcasts: Upcasts = {}): EventCodec<Event> => {
  const encoder = FieldDecoder.make(Schema.flip(events)) // decoding the flipped schema is encoding
  const decoder = FieldDecoder.make(events)
  const upcastTypes = new Set(Object.keys(upcasts))
  const decodeFields = (type: string, fields: Fields): Event => {
    const upcast = upcastTypes.has(type) ? upcasts[type] : undefined
    if (upcast !== undefined) return decoder.decode(upcast(fields))
    const event = decoder.decodeFields(type, fields)
    if (event !== undefined) return event
    fields._tag = type
    return decoder.decode(fields)
  }
  const decodeParsed = (type: string, parsed: unknown): Event | UnreadableEvent => {
    if (parsed instanceof Error) return unreadable(type, parsed)
    try {
      return decodeFields(type, parsed as Fields)
    } catch (cause) {
      return unreadable(type, cause)
    }
  }
  return {
    encode: (event) => {
      const encoded = encoder.decode(event)
      // JSON leaves out what is undefined
      return { type: encoded._tag, data: JSON.stringify({ ...encoded, _tag: undefined }) }
    },
    decode: (type, data) => {
      const event = decodeParsed(type, parse(data))
      if (event instanceof UnreadableEvent) throw event
      return event
    },
    decodeParsed,
    typesOf: (tags) => new Set([...tags, ...upcastTypes]),
    upcastTypes
  }
}

/** The fields of an event, to which its tag is added. */
type Fields = { _tag: string }

const unreadable = (type: string, cause: unknown): UnreadableEvent =>
  new UnreadableEvent(`${type}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
