/** The free trial: an account that was never verified may make a few free calls. A call reserves a slot, then uses or releases it. */
import { HashMap, Schema } from "effect"
import type { EventOf } from "./AccountEvent.ts"

/** Free calls of an account that was never verified. */
export const TRIAL_SLOTS = 10

export const Trial = Schema.Struct({
  used: Schema.Int,
  /** When each reserved slot expires, by reservation: milliseconds since 1970. */
  open: Schema.HashMap(Schema.String, Schema.Int),
  /** Ended slots, for repeated commands: all used ones and the newest released ones. */
  lastUsed: Schema.Array(Schema.String),
  lastReleased: Schema.Array(Schema.String)
})
export type Trial = typeof Trial.Type

export const initial: Trial = { used: 0, open: HashMap.empty(), lastUsed: [], lastReleased: [] }

/** How a slot ended; undefined when it is open, unknown or forgotten. */
export const outcome = ({ lastReleased, lastUsed }: Trial, reservationId: string): "succeeded" | "refunded" | undefined =>
  lastUsed.includes(reservationId) ? "succeeded" : lastReleased.includes(reservationId) ? "refunded" : undefined

export const isUsedUp = ({ open, used }: Trial): boolean => used + HashMap.size(open) >= TRIAL_SLOTS

export const evolve = (trial: Trial, event: EventOf<"TrialReserved" | "TrialUsed" | "TrialReleased">): Trial => {
  const { _tag, reservationId } = event
  if (_tag === "TrialReserved") return { ...trial, open: HashMap.set(trial.open, reservationId, event.expiresAt) }
  const open = HashMap.remove(trial.open, reservationId)
  const newest = (before: ReadonlyArray<string>) => [...before, reservationId].slice(-TRIAL_SLOTS)
  return _tag === "TrialUsed"
    ? { ...trial, open, used: trial.used + 1, lastUsed: newest(trial.lastUsed) }
    : { ...trial, open, lastReleased: newest(trial.lastReleased) }
}
