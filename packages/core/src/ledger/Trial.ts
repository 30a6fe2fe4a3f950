/** The free trial: an account that was never verified may make a few free calls. A call reserves a slot, then uses or releases it. */
import { HashMap } from "effect"
import type { Timestamp } from "../Timestamp.ts"
import type { EventOf } from "./AccountEvent.ts"

/** Free calls of an account that was never verified. */
export const TRIAL_SLOTS = 10

export interface Trial {
  readonly used: number
  /** When each reserved slot expires, by reservation. */
  readonly open: HashMap.HashMap<string, Timestamp>
  /** Ended slots, for repeated commands: all used ones and the newest released ones. */
  readonly lastUsed: ReadonlyArray<string>
  readonly lastReleased: ReadonlyArray<string>
}

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
