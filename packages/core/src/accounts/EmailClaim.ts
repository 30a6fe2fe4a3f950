/** Which account an e-mail address belongs to: claimed once, for ever. Stream `email-{HMAC of the address}`. */
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result, Schema } from "effect"
import { AccountId } from "../Ids.ts"

// events

export const EmailClaimEvent = Schema.TaggedUnion({ EmailClaimed: { accountId: AccountId } })
export type EmailClaimEvent = typeof EmailClaimEvent.Type

// state

export interface EmailClaim {
  readonly accountId: AccountId | undefined
}

export const EmailClaim: Decider<EmailClaim, EmailClaimEvent> = {
  category: "email",
  codec: EventCodec.make(EmailClaimEvent),
  initial: { accountId: undefined },
  // The first claim counts
  evolve: (claim, event) => (claim.accountId === undefined ? { accountId: event.accountId } : claim)
}

// decisions

/** Claims an address that nobody has claimed. A claimed address stays with its account. */
export const claim =
  (accountId: AccountId) =>
  (email: EmailClaim): Decision<EmailClaimEvent> =>
    Result.succeed(email.accountId === undefined ? [{ _tag: "EmailClaimed", accountId }] : [])
