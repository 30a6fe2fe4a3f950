/** A codec that writes events as an earlier release did: with other type names and other field names. */
import { EventCodec } from "@millrace/event-sourcing"
import type { Schema } from "effect"

/** The earlier names of a type and of its fields, by today's names. */
export interface EarlierNames {
  readonly type: string
  readonly fields: Readonly<Record<string, string>>
}

type Data = Readonly<Record<string, unknown>>

const renamed = (data: Data, names: Readonly<Record<string, string>>): Data =>
  Object.fromEntries(Object.entries(data).map(([name, value]) => [names[name] ?? name, value]))

/** Reads the events of both releases, and writes only those of the earlier one. */
export const earlierRelease = <Event extends EventCodec.Tagged>(
  events: Schema.Codec<Event, EventCodec.Tagged>,
  names: { readonly [Tag in Event["_tag"]]?: EarlierNames }
): EventCodec.EventCodec<Event> => {
  const earlier = new Map(Object.entries<EarlierNames | undefined>(names))
  const upcasts: Record<string, EventCodec.Upcasts[string]> = {}
  for (const [tag, name] of earlier) {
    if (name === undefined) continue
    const today = Object.fromEntries(Object.entries(name.fields).map(([now, then]) => [then, now]))
    upcasts[name.type] = (data) => ({ ...renamed(data, today), _tag: tag })
  }
  const codec = EventCodec.make(events, upcasts)
  return {
    ...codec,
    encode: (event) => {
      const encoded = codec.encode(event)
      const name = earlier.get(encoded.type)
      return name === undefined ? encoded : { type: name.type, data: JSON.stringify(renamed(JSON.parse(encoded.data), name.fields)) }
    }
  }
}
