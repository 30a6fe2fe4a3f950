/** How streams other than accounts are replayed: an event that its decider does not know or cannot fold is a problem. */

import { ApiKey, EmailClaim, Job, PaymentClaim, PricePlan } from "@millrace/core"
import type { Decider, StreamName } from "@millrace/event-sourcing"
import type { JobBook } from "./JobBook.ts"
import type { Prices } from "./Prices.ts"
import type { Replay, Say } from "./Replay.ts"

/** The streams of one category. */
export interface Category {
  readonly name: string
  /** A stream at its beginning: give it each event. Throws where it does not know or cannot fold one. */
  readonly begin: (stream: StreamName.StreamName, say: Say) => Replay
  /** A stream of it was replayed no further: what it would have taught is not known. */
  readonly lost?: (stream: StreamName.StreamName) => void
}

/** Streams of a decider: of this library, or of a host that keeps its own in the same log. */
export const category = <State, Event extends { readonly _tag: string }>(
  decider: Decider<State, Event>,
  learn?: (event: Event, at: number) => void
): Category => {
  const { codec } = decider
  return {
    name: decider.category,
    begin: () => {
      let state = decider.initial
      return (type, data, at) => {
        const event = codec.decode(type, data)
        state = decider.evolve(state, event, at)
        learn?.(event, at)
      }
    }
  }
}

/** The library's own, of which price plans teach the prices that holds pin, and jobs how holds are to end. */
export const coreCategories = (prices: Prices, jobs: JobBook): ReadonlyArray<Category> => [
  { name: Job.Job.category, begin: (stream, say) => jobs.begin(stream, say), lost: (stream) => jobs.lost(stream) },
  { ...category(PricePlan.PricePlan, (published, at) => prices.learn(published, at)), lost: () => prices.doubt() },
  category(ApiKey.ApiKey),
  category(EmailClaim),
  category(PaymentClaim)
]
