/**
 * Rules of names that must be unique in the whole log: an event's id, an account's reservation, a payment that grants credits, an account's
 * sign-up credits. Names are collected while the log is read; suspected duplicates are compared afterwards.
 */
import { Account, type AccountEvent, Lots } from "@millrace/core"
import { type EventStore, StreamName } from "@millrace/event-sourcing"

/** No event id occurs twice, in any stream. */
export const EVENT_ID = "event-id-is-unique"
/** Each attempt has a new reservation, and no reservation is made twice. */
const RESERVATION = "reservation-is-made-once"
/** A payment grants credits once, to one account. */
const PAYMENT = "payment-grants-once"
/** Signing up grants credits once. */
const SIGN_UP = "sign-up-credits-are-granted-once"

export interface UniqueName {
  readonly rule: string
  /** The name, in parts. */
  readonly parts: ReadonlyArray<string>
}

/** The name in an account event that no other event may have, if any. */
export const uniqueName = (stream: string, event: AccountEvent): UniqueName | undefined => {
  switch (event._tag) {
    case "CreditReserved":
      return { rule: RESERVATION, parts: ["reservation ", event.reservationId, " of ", stream] }
    case "CreditsGranted":
      if (event.source === "signup") return { rule: SIGN_UP, parts: ["sign-up of ", stream] }
      if (!Lots.isPaid(event.source) || event.paymentRef === null) return undefined
      return { rule: PAYMENT, parts: ["payment ", event.paymentRef] }
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
