/** A small decider for tests: a till with a limit. Its stream is `till-{id}`. */
import { Result, Schema } from "effect"
import type { Decide, Decider } from "../src/Decider.ts"
import * as EventCodec from "../src/EventCodec.ts"

export const TillEvent = Schema.Union([
  Schema.TaggedStruct("Paid", { key: Schema.String, amount: Schema.Int }),
  Schema.TaggedStruct("Emptied", {})
])
export type TillEvent = typeof TillEvent.Type

/** `count` is the number of events folded, so every answer and refusal shows the state that it is based on. */
export const Till = Schema.Struct({ total: Schema.Int, keys: Schema.Array(Schema.String), count: Schema.Int, lastAt: Schema.Int })
export type Till = typeof Till.Type

export const LIMIT = 100

export class Full extends Schema.TaggedError<Full>()("Full", { total: Schema.Int, count: Schema.Int }) {}

export const till: Decider<Till, TillEvent> = {
  category: "till",
  codec: EventCodec.make(TillEvent),
  initial: { total: 0, keys: [], count: 0, lastAt: 0 },
  evolve: ({ total, keys, count }, event, at) =>
    event._tag === "Emptied"
      ? { total: 0, keys, count: count + 1, lastAt: at }
      : { total: total + event.amount, keys: [...keys, event.key], count: count + 1, lastAt: at }
}

/** Pays in this many parts, each an event; no events if the key was paid before. */
export const pay =
  (key: string, amount: number, parts = 1): Decide<Till, TillEvent, Full> =>
  ({ total, keys, count }) => {
    if (keys.includes(key)) return Result.succeed([])
    if (total + amount * parts > LIMIT) return Result.fail(new Full({ total, count }))
    return Result.succeed(Array.from({ length: parts }, (): TillEvent => ({ _tag: "Paid", key, amount })))
  }

export const empty: Decide<Till, TillEvent> = ({ total }) => Result.succeed(total === 0 ? [] : [{ _tag: "Emptied" }])
