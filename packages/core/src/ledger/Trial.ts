/**
 * The free trial: an account that was never verified may make a few free calls. A call reserves a slot, then uses or releases it. The trial
 * is over once the account was verified, or was granted credits.
 */
import { HashMap, Schema } from "effect"
import { AccountEvent, type EventOf } from "./AccountEvent.ts"
import { remove } from "./Get.ts"

/** Free calls of an account that was never verified. */
export const TRIAL_SLOTS = 10

const { expiresAt, fingerprint, keyHash } = AccountEvent.cases.TrialReserved.fields

/** A slot that a call holds. `expiresAt`: milliseconds since 1970. */
export const Slot = Schema.Struct({ expiresAt: Schema.toType(expiresAt), keyHash, fingerprint })
export type Slot = typeof Slot.Type

export const Trial = Schema.Struct({
  used: Schema.Int,
  /** The reserved slots, by reservation. */
  open: Schema.HashMap(Schema.String, Slot),
  /** Ended slots, for repeated commands: all used ones and the newest released ones. */
  lastUsed: Schema.Array(Schema.String),
  lastReleased: Schema.Array(Schema.String),
  /** Whether the account was ever granted credits. From then on, its calls are paid by credits. */
  isCredited: Schema.Boolean
})
export type Trial = typeof Trial.Type

export const initial: Trial = { used: 0, open: HashMap.empty(), lastUsed: [], lastReleased: [], isCredited: false }
/** Most accounts are granted credits before any call: these share one value. */
const UNUSED: Trial = { ...initial, isCredited: true }

/** How a slot ended; undefined when it is open, unknown or forgotten. */
export const outcome = ({ lastReleased, lastUsed }: Trial, reservationId: string): "succeeded" | "refunded" | undefined =>
  lastUsed.includes(reservationId) ? "succeeded" : lastReleased.includes(reservationId) ? "refunded" : undefined

/** Slots that are neither used nor reserved. */
export const remaining = ({ open, used }: Trial): number => Math.max(0, TRIAL_SLOTS - used - HashMap.size(open))

export const isUsedUp = (trial: Trial): boolean => remaining(trial) === 0

export const evolve = (trial: Trial, event: EventOf<"TrialReserved" | "TrialUsed" | "TrialReleased" | "CreditsGranted">): Trial => {
  if (event._tag === "CreditsGranted") return trial.isCredited ? trial : trial === initial ? UNUSED : { ...trial, isCredited: true }
  const { _tag, reservationId } = event
  if (_tag === "TrialReserved") return { ...trial, open: HashMap.set(trial.open, reservationId, slotOf(event)) }
  const open = remove(trial.open, reservationId)
  const newest = (before: ReadonlyArray<string>) => [...before, reservationId].slice(-TRIAL_SLOTS)
  return _tag === "TrialUsed"
    ? { ...trial, open, used: trial.used + 1, lastUsed: newest(trial.lastUsed) }
    : { ...trial, open, lastReleased: newest(trial.lastReleased) }
}

const slotOf = ({ expiresAt, fingerprint, keyHash }: EventOf<"TrialReserved">): Slot => ({
  expiresAt,
  ...(keyHash === undefined ? {} : { keyHash }),
  ...(fingerprint === undefined ? {} : { fingerprint })
})
