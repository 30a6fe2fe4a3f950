/**
 * What may stand only once in the whole log: an event's id, a reservation of an account, a payment that grants credits, the sign-up
 * credits of an account. The names are collected while the log is read, and those that stand twice looked up after.
 */
import { Account, type AccountEvent, Lots } from "@millrace/core"
import { type EventStore, StreamName } from "@millrace/event-sourcing"

/** No event is in the log twice, under whatever stream. */
export const EVENT_ID = "event-id-is-unique"
/** A reservation is a new one for each attempt: none is made again after it ended. */
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

/** What an account's event names that no other event may. */
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

/** The same, of an event as it was recorded. */
export const readUniqueName = ({ data, stream, type }: EventStore.RecordedEvent): UniqueName | undefined => {
  const mayHaveOne = TYPES.has(type) && StreamName.category(stream) === Account.Account.category
  try {
    return mayHaveOne ? uniqueName(stream, Account.Account.codec.decode(type, data)) : undefined
  } catch {
    // That this event cannot be read is another rule's
    return undefined
  }
}
