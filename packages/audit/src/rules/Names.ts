/**
 * Rules of names that must be unique in the whole log: an event's id, an account's reservation, a payment that grants credits, an account's
 * sign-up credits. Names are collected while the log is read; suspected duplicates are compared afterwards.
 */
import { Account, type AccountEvent, Lots } from "@millrace/core"
import { type EventStore, StreamName } from "@millrace/event-sourcing"
import type { RuleName } from "./Catalog.ts"

/** No event id occurs twice, in any stream. */
export const EVENT_ID = "event-id-is-unique" satisfies RuleName

interface UniqueName {
  readonly rule: RuleName
  /** The name, in parts. */
  readonly parts: ReadonlyArray<string>
}

/** The name in an account event that no other event may have: a new reservation, the account's sign-up, or a payment. */
export const uniqueName = (stream: string, event: AccountEvent): UniqueName | undefined => {
  switch (event._tag) {
    case "CreditReserved":
      return { rule: "reservation-is-made-once", parts: ["reservation ", event.reservationId, " of ", stream] }
    case "CreditsGranted":
      if (event.source === "signup") return { rule: "sign-up-credits-are-granted-once", parts: ["sign-up of ", stream] }
      if (!Lots.isPaid(event.source) || event.paymentRef === null) return undefined
      return { rule: "payment-grants-once", parts: ["payment ", event.paymentRef] }
    default:
      return undefined
  }
}

const TYPES = Account.Account.codec.typesOf(["CreditReserved", "CreditsGranted"])

/** The unique name in a recorded event, if any. */
export const readUniqueName = ({ data, stream, type }: EventStore.RecordedEvent): UniqueName | undefined => {
  const mayHaveOne = TYPES.has(type) && StreamName.category(stream) === Account.Account.category
  try {
    return mayHaveOne ? uniqueName(stream, Account.Account.codec.decode(type, data)) : undefined
  } catch {
    // Another rule reports that this event cannot be read
    return undefined
  }
}
