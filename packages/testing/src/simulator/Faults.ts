/** The fault model of one simulation. Each kind of fault is often left out, because frequent faults hide the effects of rare ones. */
import type * as FaultyEventStore from "../FaultyEventStore.ts"
import type { SeededRandom } from "../SeededRandom.ts"

/** Where a host may crash while it writes: before it sends the request, once it has sent it, or when the store has handled it. */
export type WriteStage = "before" | "sent" | "arrived"

/** Probabilities, unless stated otherwise. */
export interface Faults {
  /** An append is refused or lost, or its answer is lost. Other calls to the event store are refused half as often. */
  readonly events: number
  /** A call to the state store is refused, or its answer is lost. */
  readonly states: number
  /** A call to the state store takes up to a minute. */
  readonly slow: number
  /** The upstream of a call fails, hangs, takes too long, or answers malformed data. */
  readonly upstreams: number
  /** The receiver of a webhook fails, refuses, asks for patience, loses its answer, or is down for a while. */
  readonly receivers: number
  /** A link between two hosts breaks under a call that is forwarded, if one host leads each account. */
  readonly links: number
  /** A caller hangs up. */
  readonly hangUps: number
  /** In each step: a host crashes, restarts, pauses, or is cut off from its event store. */
  readonly hosts: number
  /** In each step: a host's clock is stepped, forwards or back, within `skew`. */
  readonly clocks: number
  /** In each step: time skips by minutes, hours or days while nothing runs. */
  readonly leaps: number
  /** The longest way to a store and back, milliseconds. */
  readonly delay: number
  /** The longest time that an append may arrive after its sender gave it up, milliseconds. */
  readonly lateBy: number
  /** The largest difference between the clocks of two hosts, milliseconds. */
  readonly skew: number
  /** The scheduler runs any ready task instead of the oldest. */
  readonly disorder: number
  /** Steps after which a fiber yields to others. */
  readonly yieldEvery: number
  /** What hosts do with work that is done after its hold has ended. */
  readonly late: "withhold" | "charge"
  /** Planned faults of single appends, counted over all hosts from 1 once faults begin. They come on top of the random ones. */
  readonly appends?: Readonly<Record<number, FaultyEventStore.Fault>>
  /** Planned crash: a host crashes at this stage of the n-th write of all hosts, counted from 1, and restarts a little later. */
  readonly crash?: { readonly write: number; readonly stage: WriteStage }
  /**
   * Planned outage: from the n-th write of all hosts on, counted from 1, its host reads nothing from the event store for so many
   * milliseconds. Its appends are written, but not confirmed.
   */
  readonly outage?: { readonly write: number; readonly millis: number }
}

/** No faults at all. */
export const none: Faults = {
  events: 0,
  states: 0,
  slow: 0,
  upstreams: 0,
  receivers: 0,
  links: 0,
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

/** Draws a fault model. */
export const draw = (random: SeededRandom): Faults => {
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
    clocks: rate(0.1),
    receivers: rate(0.7),
    links: rate(0.6)
  }
}

/** Whether a fault is planned for a certain write. */
export const isPlanned = ({ appends, crash, outage }: Faults): boolean =>
  appends !== undefined || crash !== undefined || outage !== undefined

/** Whether nothing can keep a host from its stores: no faults of stores or hosts, and no skipped time. */
export const areHostsUndisturbed = (faults: Faults): boolean => {
  const { events, hosts, leaps, slow, states } = faults
  return events + states + slow + hosts + leaps === 0 && !isPlanned(faults)
}
