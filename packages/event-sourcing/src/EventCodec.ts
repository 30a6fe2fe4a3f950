/** Events to JSON text and back, every version ever written. */
import { Schema } from "effect"
import type { Decider } from "./Decider.ts"
import * as FieldDecoder from "./FieldDecoder.ts"

/** What the log holds is not known to this release, or is not what its type promises. */
export class UnreadableEvent extends Error {
  override readonly name = "UnreadableEvent"
}

export interface EventCodec<Event> {
  readonly encode: (event: Event) => { readonly type: string; readonly data: string }
  /** @throws UnreadableEvent */
  readonly decode: (type: string, data: string) => Event
}

export const make = <Event extends { readonly _tag: string }>(
  decider: Pick<Decider<never, Event>, "events" | "versions">
): EventCodec<Event> => {
  // Decoding by the flipped schema is encoding
  const encodeSchema = FieldDecoder.make(Schema.flip(decider.events))
  const decodeSchema = FieldDecoder.make(decider.events)
  return {
    encode: (event) => {
      const { _tag, ...data } = encodeSchema(event)
      return { type: _tag, data: JSON.stringify(data) }
    },
    decode: (type, data) => {
      try {
        const fields = JSON.parse(data)
        const upcast = decider.versions !== undefined && Object.hasOwn(decider.versions, type) ? decider.versions[type] : undefined
        if (upcast !== undefined) return decodeSchema(upcast(fields))
        fields._tag = type
        return decodeSchema(fields)
      } catch (cause) {
        throw new UnreadableEvent(`${type}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
      }
    }
  }
}
