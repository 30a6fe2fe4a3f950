/** How bad a day it is: drawn from the seed, each kind of fault often not at all, for what never fails hides what rarely does. */
import type * as FaultyEventStore from "../FaultyEventStore.ts"
import type * as SeededRandom from "../SeededRandom.ts"
import type { Stage } from "./Network.ts"

/** Probabilities, where nothing else is said. */
export interface Faults {
  /** An append is refused, lost, or its answer is; half of that: another call to the event store is refused. */
  readonly events: number
  /** A call to the state store is refused, or what it wrote is not confirmed. */
  readonly states: number
  /** A call to the state store takes up to a minute. */
  readonly slow: number
  /** The upstream of a call fails, hangs, takes too long, lies. */
  readonly upstreams: number
  /** A caller hangs up. */
  readonly hangUps: number
  /** For each step: a host crashes, is restarted, stands still for a while, or hears nothing of its event store. */
  readonly hosts: number
  /** For each step: a host's clock is set, forwards or back, within `skew`. */
  readonly clocks: number
  /** For each step: the whole world sleeps for minutes, hours or days. */
  readonly leaps: number
  /** The longest way to a store and back, milliseconds. */
  readonly delay: number
  /** How long after its sender gave it up an append may still arrive, milliseconds. */
  readonly lateBy: number
  /** How far the clocks of two hosts are apart at the most, milliseconds. */
  readonly skew: number
  /** The next fiber to run is not the one that waits longest. */
  readonly disorder: number
  /** Steps of a fiber after which others run. */
  readonly yieldEvery: number
  /** The host's policy for work that is done after its hold has ended. */
  readonly late: "withhold" | "charge"
  /** What happens to the appends of all hosts together, counted from 1 when faults begin, besides what chance does. */
  readonly appends?: Readonly<Record<number, FaultyEventStore.Fault>>
  /** A host crashes at this stage of the so many-th write of all hosts together, counted from 1, and is started again a little later. */
  readonly crash?: { readonly write: number; readonly stage: Stage }
}

export const none: Faults = {
  events: 0,
  states: 0,
  slow: 0,
  upstreams: 0,
  hangUps: 0,
  hosts: 0,
  clocks: 0,
  leaps: 0,
  delay: 5,
  lateBy: 1_000,
  skew: 0,
  disorder: 0,
  yieldEvery: 2_048,
  late: "withhold"
}

export const draw = (random: SeededRandom.SeededRandom): Faults => {
  const rate = (upTo: number) => {
    const drawn = random.next() * upTo
    return random.chance(0.3) ? 0 : drawn
  }
  return {
    events: rate(0.3),
    states: rate(0.15),
    slow: rate(0.06),
    upstreams: rate(0.8),
    hangUps: rate(0.3),
    hosts: rate(0.25),
    leaps: rate(0.12),
    delay: random.pick([0, 5, 50, 400]),
    lateBy: random.pick([100, 1_000, 8_000, 40_000]),
    skew: random.pick([0, 20, 2_000]),
    disorder: random.pick([0, 0.1, 1]),
    yieldEvery: random.pick([2_048, 2_048, 64, 9]),
    late: random.pick(["withhold", "charge"]),
    clocks: rate(0.1)
  }
}
