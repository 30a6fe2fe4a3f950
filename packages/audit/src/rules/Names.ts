/**
 * Rules of names that must be unique in the whole log: an event's id, an account's reservation, a payment that grants credits, an account's
 * sign-up credits. Names are collected while the log is read; suspected duplicates are compared afterwards.
 */
import { Account, type AccountEvent, Lots } from "@millrace/core"
import { type EventStore, StreamName } from "@millrace/event-sourcing"
import type { RuleName } from "./Catalog.ts"

/** No event id occurs twice, in any stream. */
export const EVENT_ID = "event-id-is-unique" satisfies RuleName

export interface UniqueName {
  readonly rule: RuleName
  readonly id: string
  /** Whether only events of its stream may not repeat it. Others may not either. */
  readonly isOfStream: boolean
}

/** The name in an account event that no other event may have: a new reservation, the account's sign-up, or a payment. */
export const uniqueName = (event: AccountEvent): UniqueName | undefined => {
  switch (event._tag) {
    case "CreditReserved":
      return { rule: "reservation-is-made-once", id: event.reservationId, isOfStream: true }
    case "CreditsGranted":
      if (event.source === "signup") return { rule: "sign-up-credits-are-granted-once", id: "", isOfStream: true }
      if (!Lots.isPaid(event.source) || event.paymentRef === null) return undefined
      return { rule: "payment-grants-once", id: event.paymentRef, isOfStream: false }
    default:
      return undefined
  }
}

const PREFIX: Partial<Record<RuleName, string>> = {
  "reservation-is-made-once": "reservation ",
  "sign-up-credits-are-granted-once": "sign-up",
  "payment-grants-once": "payment "
}

/** A unique name as findings have it: `reservation res_… of account-acc_…`. Different names have different texts. */
export const textOf = ({ id, isOfStream, rule }: UniqueName, stream: string): string =>
  `${PREFIX[rule] ?? ""}${id}${isOfStream ? ` of ${stream}` : ""}`

const TYPES = Account.Account.codec.typesOf(["CreditReserved", "CreditsGranted"])

/** The unique names in a recorded event: its id, and that of an account event, if any. */
export const uniqueNames = ({ data, id, stream, type }: EventStore.RecordedEvent): ReadonlyArray<UniqueName> => {
  const ofEvent: UniqueName = { rule: EVENT_ID, id, isOfStream: false }
  if (!TYPES.has(type) || StreamName.category(stream) !== Account.Account.category) return [ofEvent]
  try {
    const unique = uniqueName(Account.Account.codec.decode(type, data))
    return unique === undefined ? [ofEvent] : [ofEvent, unique]
  } catch {
    // Another rule reports that this event cannot be read
    return [ofEvent]
  }
}
