/**
 * Claims: which account an e-mail address or a host's own id belongs to. Each is claimed once, for ever. Streams
 * `email-{HMAC of the address}`, `reference-{HMAC of the id}`.
 */
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result, Schema } from "effect"
import { AccountId } from "../Ids.ts"

interface Claimed {
  readonly _tag: string
  readonly accountId: string
}

/** The account that made a claim; undefined while there is no claim. */
export type Claim<Event extends Claimed> = { readonly accountId: Event["accountId"] | undefined }

const claims = <Event extends Claimed>(category: string, codec: EventCodec.EventCodec<Event>): Decider<Claim<Event>, Event> => ({
  category,
  codec,
  initial: { accountId: undefined },
  // The first claim counts
  evolve: (claim, { accountId }) => (claim.accountId === undefined ? { accountId } : claim)
})

export const EmailClaim = claims("email", EventCodec.make(Schema.TaggedUnion({ EmailClaimed: { accountId: AccountId } })))

export const ReferenceClaim = claims("reference", EventCodec.make(Schema.TaggedUnion({ ReferenceClaimed: { accountId: AccountId } })))

/** Claims what is unclaimed. A later claim decides nothing. */
export const claim =
  <const Event extends Claimed>(event: Event) =>
  ({ accountId }: Claim<Claimed>): Decision<Event> =>
    Result.succeed(accountId === undefined ? [event] : [])
