/**
 * What an account remembers of calls that ended, so that a command sent again finds its outcome and an idempotency key runs once.
 *
 * Two stores together know every success under an idempotency key. The reply store has each reply before the account records the success,
 * and keeps it for a day. The account remembers the newest successes. The rule between them uses counts and no clock:
 *
 * 1. A caller takes `recorded`, the number of successes that the account has recorded, from any state of the account that it knows.
 * 2. Then it looks into the reply store. Every success up to that number has a reply there, so the caller finds it.
 * 3. Then it reserves, with that number as `since`. The account knows every success after that number, unless it has forgotten one of
 *    them (`forgotten > since`). Then the lookup is stale, and the caller starts again; likewise where it knows a success of this key after
 *    that number.
 *
 * So the account may forget at any time, by count and by age, and no key runs twice: it only answers more often that a lookup is stale.
 */
import { HashMap, Schema } from "effect"
import { Credits } from "../Credits.ts"
import type { Timestamp } from "../Timestamp.ts"
import { type AccountEvent, type EventOf, RefundReason } from "./AccountEvent.ts"
import * as Generations from "./Generations.ts"
import * as NewestEntries from "./NewestEntries.ts"
import * as SmallMap from "./SmallMap.ts"

/** How a reservation ended. */
const Outcome = Schema.Union([
  Schema.TaggedStruct("succeeded", { charged: Credits }),
  Schema.TaggedStruct("refunded", { reason: RefundReason })
])
export type Outcome = typeof Outcome.Type

/** A success under an idempotency key. */
const KeyedSuccess = Schema.Struct({
  /** Its place among the successes that the account recorded, from 1. */
  number: Schema.Int,
  reservationId: Schema.String,
  fingerprint: Schema.String,
  at: Schema.Int
})
export type KeyedSuccess = typeof KeyedSuccess.Type

export interface Memory {
  /** How the newest reservations ended: by reservation. */
  readonly outcomes: NewestEntries.NewestEntries<Outcome>
  /** Open holds by idempotency key. */
  readonly openKeys: SmallMap.SmallMap<string>
  /** The newest successes by idempotency key. */
  readonly successes: Generations.Generations<KeyedSuccess>
  /** How many successes under an idempotency key the account has recorded. */
  readonly recorded: number
  /** How many of these, counted from the first, it may have forgotten. */
  readonly forgotten: number
  /** When the newer generation of successes began, and how many successes were recorded before it. */
  readonly generation: { readonly since: Timestamp; readonly recorded: number }
}

/** Outcomes in a generation. */
export const OUTCOMES = 100
/**
 * Successes in a generation. While 1,024 callers wait for an account, some thousands of calls may end between a caller's lookup and its
 * reservation: with fewer here, lookups would often be stale.
 */
export const SUCCESSES = 2_048
/** A generation of successes also ends at this age, milliseconds. */
export const KEY_MEMORY = 10 * 60_000
/** The newest successes that a snapshot holds: 64 of 150 characters each are 10 kB. */
export const SAVED_SUCCESSES = 64

export const initial: Memory = {
  outcomes: NewestEntries.empty,
  openKeys: SmallMap.empty,
  successes: Generations.empty(),
  recorded: 0,
  forgotten: 0,
  generation: { since: 0, recorded: 0 }
}

// questions

/** How a reservation ended; undefined when it is open, unknown or forgotten. */
export const outcome = ({ outcomes }: Memory, reservationId: string): Outcome | undefined => NewestEntries.get(outcomes, reservationId)

/** A caller's idempotency key. */
export interface Key {
  readonly hash: string
  /** An HMAC of the request. Different requests have different fingerprints. */
  readonly fingerprint: string
  /** What {@link Memory.recorded} was before the caller looked into the reply store. */
  readonly since: number
}

/** The state of an idempotency key. Undefined instead if a new attempt may run. */
export type KeyState =
  | { readonly _tag: "running"; readonly reservationId: string }
  | ({ readonly _tag: "succeeded" } & KeyedSuccess)
  | { readonly _tag: "stale" }

/**
 * The state of a key. For ten minutes after a success it is `succeeded`, even if the reply store lost the reply. After that only the reply
 * store knows, which keeps replies for a day: `stale` if the caller's lookup came before the success, else undefined, since a later lookup
 * without a reply means that the key is free.
 */
export const keyState = (memory: Memory, { hash, since }: Omit<Key, "fingerprint">, now: Timestamp): KeyState | undefined => {
  const running = SmallMap.get(memory.openKeys, hash)
  if (running !== undefined) return { _tag: "running", reservationId: running }
  const success = Generations.get(memory.successes, hash)
  if (success !== undefined && now - success.at < KEY_MEMORY) return { _tag: "succeeded", ...success }
  return memory.forgotten > since || (success !== undefined && success.number > since) ? { _tag: "stale" } : undefined
}

// evolve

/** The fields of an ended hold, or of an ended slot of the trial, that the memory needs. */
type KeyedHold = Pick<EventOf<"CreditReserved">, "keyHash" | "fingerprint">

/** The memory after an event. `hold` is the hold or slot that the event ends. How slots ended is remembered by the trial itself. */
export const evolve = (memory: Memory, event: AccountEvent, hold: KeyedHold | undefined, at: Timestamp): Memory => {
  switch (event._tag) {
    case "CreditReserved":
    case "TrialReserved": {
      const { keyHash, reservationId } = event
      return keyHash === undefined ? memory : { ...memory, openKeys: SmallMap.set(memory.openKeys, keyHash, reservationId) }
    }
    case "OperationSucceeded":
      return recordSuccess(ended(memory, event.reservationId, hold, { _tag: "succeeded", charged: event.charged }), event, hold, at)
    case "Refunded":
      return event.stage === "settled" ? memory : ended(memory, event.reservationId, hold, { _tag: "refunded", reason: event.reason })
    case "TrialUsed":
      return recordSuccess(withoutKey(memory, hold), event, hold, at)
    case "TrialReleased":
      return withoutKey(memory, hold)
    default:
      return memory
  }
}

const ended = (memory: Memory, reservationId: string, hold: KeyedHold | undefined, outcome: Outcome): Memory => ({
  ...withoutKey(memory, hold),
  outcomes: NewestEntries.add(OUTCOMES, memory.outcomes, reservationId, outcome)
})

const withoutKey = (memory: Memory, hold: KeyedHold | undefined): Memory =>
  hold?.keyHash === undefined ? memory : { ...memory, openKeys: SmallMap.remove(memory.openKeys, hold.keyHash) }

type Success = EventOf<"OperationSucceeded" | "TrialUsed">

const recordSuccess = (memory: Memory, event: Success, hold: KeyedHold | undefined, at: Timestamp): Memory => {
  if (hold?.keyHash === undefined) return memory
  const { fingerprint = "", keyHash } = hold
  const before = isOver(memory, at) ? forgetOlder(memory, at) : memory
  const number = memory.recorded + 1
  const success: KeyedSuccess = { number, reservationId: event.reservationId, fingerprint, at }
  return { ...before, successes: Generations.add(before.successes, keyHash, success), recorded: number }
}

const isOver = ({ generation, successes }: Memory, at: Timestamp): boolean =>
  HashMap.size(successes.newer) >= SUCCESSES || at - generation.since >= KEY_MEMORY

const forgetOlder = ({ generation, recorded, successes, ...rest }: Memory, at: Timestamp): Memory => {
  const begun = { since: at, recorded }
  return at - generation.since < 2 * KEY_MEMORY
    ? { ...rest, successes: Generations.turn(successes), recorded, forgotten: generation.recorded, generation: begun }
    : { ...rest, successes: Generations.empty(), recorded, forgotten: recorded, generation: begun }
}

// snapshots

const Outcomes = Schema.HashMap(Schema.String, Outcome)

/** What a snapshot holds of a memory. */
export const Saved = Schema.Struct({
  outcomes: Schema.Struct({ newer: Outcomes, older: Outcomes }),
  openKeys: Schema.HashMap(Schema.String, Schema.String),
  /** By key, in the order in which they were recorded. */
  successes: Schema.Array(Schema.Tuple([Schema.String, KeyedSuccess])),
  recorded: Schema.Int,
  forgotten: Schema.Int
})
export type Saved = typeof Saved.Type

/**
 * What a snapshot holds of a memory: of the successes the newest {@link SAVED_SUCCESSES}, as far as they are from the last ten minutes
 * before the newest. It depends on the events alone, not on where generations began, so all hosts and the audit save the same.
 */
export const save = ({ outcomes, openKeys, recorded, successes }: Memory): Saved => {
  const newest: Array<readonly [string, KeyedSuccess]> = []
  let last = 0
  for (const entry of Generations.toMap(successes)) {
    if (entry[1].number > recorded - SAVED_SUCCESSES) newest.push(entry)
    last = Math.max(last, entry[1].at)
  }
  const saved = newest.filter(([, { at }]) => last - at < KEY_MEMORY).sort(([, a], [, b]) => a.number - b.number)
  const forgotten = (saved[0]?.[1].number ?? recorded + 1) - 1
  return { outcomes: NewestEntries.save(outcomes), openKeys: SmallMap.toHashMap(openKeys), recorded, forgotten, successes: saved }
}

/** The memory that a snapshot holds. */
export const restore = ({ openKeys, outcomes, successes, ...saved }: Saved): Memory => ({
  ...saved,
  outcomes: NewestEntries.restore(outcomes),
  openKeys: SmallMap.of(openKeys),
  successes: { newer: HashMap.fromIterable(successes), older: HashMap.empty() },
  generation: { since: successes[0]?.[1].at ?? 0, recorded: saved.forgotten }
})
