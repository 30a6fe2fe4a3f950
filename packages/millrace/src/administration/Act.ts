/** What an administrator does: the same functions for the command line and for hosts. */
import type { Millrace } from "@millrace/core"
import type { EventStore } from "@millrace/event-sourcing"
import type { Effect } from "effect"
import type { Failure } from "../Failure.ts"

/** An act on a store. It fails with anything that has a sentence in `Failure.ts`. */
export type Act<A> = Effect.Effect<A, Failure, Millrace.Administration | EventStore.EventStore>

export const dateOf = (millis: number | null | undefined): Date | null =>
  millis === null || millis === undefined ? null : new Date(millis)
