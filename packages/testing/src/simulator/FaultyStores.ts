/** The stores of one host with faults: calls are refused, slow, or not answered, by chance, and the host may be cut off. */
import { BlobStore } from "@millrace/core"
import { EventStore, StateStore } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"
import * as FaultyEventStore from "../FaultyEventStore.ts"
import type { SeededRandom } from "../SeededRandom.ts"
import type { Faults } from "./Faults.ts"

type Events = EventStore.EventStore["Service"]
type States = StateStore.StateStore["Service"]

/** During an outage nothing can be read and no append is confirmed. Appends are lost, some are written, or all (`unconfirmed`) are. */
export type Outage = "whole" | "oneWay" | "unconfirmed"

const OUTAGES = {
  whole: { before: 0, after: 0, lost: 1, unanswered: 0 },
  oneWay: { before: 0, after: 0.4, lost: 0.4, unanswered: 0.2 },
  unconfirmed: { before: 0, after: 1, lost: 0, unanswered: 0 }
} as const

export interface FaultyEvents {
  readonly store: FaultyEventStore.FaultyEventStore
  /** Cuts the host off for so many milliseconds. */
  readonly cut: (millis: number, outage: Outage) => Effect.Effect<void>
  /** From now on the store serves without faults. */
  readonly calm: () => void
}

export const faultyEvents = (store: Events, { events, delay, lateBy }: Faults, random: SeededRandom): FaultyEvents => {
  const usual = { before: events / 4, after: events / 4, lost: events / 4, unanswered: events / 4 }
  const rates = { ...usual }
  let isCut = false
  const reads = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | EventStore.StoreUnavailable> =>
    Effect.suspend((): Effect.Effect<A, E | EventStore.StoreUnavailable> => (isCut ? unreachable : effect))
  const streamed = <A>(stream: Stream.Stream<A, EventStore.StoreUnavailable>) => Stream.unwrap(reads(Effect.succeed(stream)))
  const faulty = FaultyEventStore.make(
    {
      ...store,
      readStream: (stream, options) => streamed(store.readStream(stream, options)),
      readAll: (after) => streamed(store.readAll(after)),
      lastRevision: (stream) => reads(store.lastRevision(stream)),
      head: reads(store.head)
    },
    { random, rates, unavailable: events / 2, delay, lateBy }
  )
  const change = (to: typeof rates, cut: boolean) =>
    Effect.sync(() => {
      Object.assign(rates, to)
      isCut = cut
    })
  return {
    store: faulty,
    cut: (millis, outage) => change(OUTAGES[outage], true).pipe(Effect.andThen(Effect.sleep(millis)), Effect.andThen(change(usual, false))),
    calm: () => {
      isCut = false
      faulty.calm()
    }
  }
}

const unreachable = Effect.fail(new EventStore.StoreUnavailable({ reason: "unreachable" }))

export interface FaultyStateStore extends States {
  /** From now on the store serves without faults. */
  readonly calm: () => void
}

/** A state store that refuses a call, does it without confirming it, or is slow. `note` gets each fault. */
export const faultyStates = (
  store: States,
  { states, slow, delay }: Faults,
  random: SeededRandom,
  note: (what: string) => void
): FaultyStateStore => {
  let calm = false
  const call = <A, E>(name: string, effect: Effect.Effect<A, E>): Effect.Effect<A, E | StateStore.StateUnavailable> =>
    Effect.suspend((): Effect.Effect<A, E | StateStore.StateUnavailable> => {
      const drawn = random.next()
      const isSlow = random.chance(slow) && !calm
      const wait = isSlow ? random.below(60_000) : random.below(delay + 1)
      const fault = faultOf(drawn, states, calm)
      if (isSlow) note(`${name} takes ${wait} ms`)
      if (fault !== undefined) note(`${name} fails ${fault}`)
      return faulty(fault, wait, effect, () => new StateStore.StateUnavailable({ reason: name }))
    })
  return {
    get: (space, key) => call(`state get ${space}`, store.get(space, key)),
    list: (space, options) => call(`state list ${space}`, store.list(space, options)),
    write: (changes) => call(`state write ${changes[0].space}`, store.write(changes)),
    calm: () => {
      calm = true
    }
  }
}

/** What happens to a call: `before`: it does not run; `after`: it runs, but is not confirmed. `drawn`: a number that was drawn for it. */
const faultOf = (drawn: number, rate: number, isCalm: boolean): "before" | "after" | undefined =>
  isCalm || drawn >= rate ? undefined : drawn < rate / 2 ? "before" : "after"

/** The call with its fault, so many milliseconds later. */
const faulty = <A, E, E2>(fault: ReturnType<typeof faultOf>, millis: number, call: Effect.Effect<A, E>, error: () => E2) => {
  const unavailable = Effect.suspend(() => Effect.fail(error()))
  const done: Effect.Effect<A, E | E2> =
    fault === undefined ? call : fault === "before" ? unavailable : Effect.andThen(Effect.exit(call), unavailable)
  return millis === 0 ? done : Effect.delay(done, millis)
}

/** The sealed blobs of all hosts, by name. `at`: when each was stored, milliseconds since 1970. */
export type Blobs = Map<string, { readonly bytes: Uint8Array; readonly at: number }>

/** Fails blob calls as often as calls to the state store. */
export const blobFaults =
  ({ states, delay }: Faults, random: SeededRandom, isCalm: () => boolean) =>
  <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | BlobStore.BlobUnavailable> =>
    Effect.suspend((): Effect.Effect<A, E | BlobStore.BlobUnavailable> => {
      const drawn = random.next()
      const wait = random.below(delay + 1)
      const fault = faultOf(drawn, states, isCalm())
      return faulty(fault, wait, effect, () => new BlobStore.BlobUnavailable({ reason: "drawn" }))
    })
