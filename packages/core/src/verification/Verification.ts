/**
 * How a wait for a verification code ended. Stream `verification-{id}`, with the ULID of the reservation that pays for the wait. Its one
 * event is the outcome. A wait that runs has no stream: it ends with its process at the latest, and then its hold is released.
 */
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result, Schema } from "effect"
import type { Timestamp } from "../Timestamp.ts"

export { verificationIdOf as idOf } from "../Ids.ts"

// events

const wait = {
  accountId: Schema.String,
  reservationId: Schema.String,
  /** The public number, E.164. */
  number: Schema.String
}

export const VerificationEvent = Schema.TaggedUnion({
  /** A message that matched and has a code was answered. `sms`: the id of its stream. */
  CodeFound: { ...wait, sms: Schema.String },
  /** No such message came in time. The wait is charged: it was done. */
  WaitTimedOut: wait,
  /** The caller left before. The hold is released. */
  WaitAbandoned: wait
})
export type VerificationEvent = typeof VerificationEvent.Type

// state

type Ended = {
  [Tag in VerificationEvent["_tag"]]: { readonly status: Tag; readonly endedAt: Timestamp } & Omit<
    Extract<VerificationEvent, { readonly _tag: Tag }>,
    "_tag"
  >
}[VerificationEvent["_tag"]]

export type Verification = { readonly status: "absent" } | Ended

const evolve = (verification: Verification, { _tag, ...outcome }: VerificationEvent, at: Timestamp): Verification => {
  if (verification.status !== "absent") throw new Error("A wait has one outcome")
  return { status: _tag, ...outcome, endedAt: at } as Ended
}

export const Verification: Decider<Verification, VerificationEvent> = {
  category: "verification",
  codec: EventCodec.make(VerificationEvent),
  initial: { status: "absent" },
  evolve
}

// decisions

/** Ends a wait. The first outcome counts: a later one decides nothing. */
export const end =
  (outcome: VerificationEvent) =>
  (verification: Verification): Decision<VerificationEvent> =>
    Result.succeed(verification.status === "absent" ? [outcome] : [])
