/** Events for examples: fields that do not matter have defaults. */
import { Credits, type EventOf, Lots } from "@millrace/core"

export const credits = Credits.of

/** Lots by id and amount: `parts({ a: 3, b: 4 })`. */
export const parts = (amounts: Readonly<Record<string, number>>): Lots.LotParts =>
  Object.entries(amounts).map(([lotId, amount]) => ({ lotId, amount: credits(amount) }))

export const opened: EventOf<"AccountOpened"> = { _tag: "AccountOpened", sealedEmail: "sealed", emailHash: "hash" }

export const granted = (
  lotId: string,
  amount: number,
  terms: { readonly source?: Lots.LotSource; readonly priority?: number; readonly expiresAt?: number; readonly paymentRef?: string } = {}
): EventOf<"CreditsGranted"> => {
  const { source = "topup", expiresAt = null, paymentRef = null } = terms
  const { priority = Lots.DEFAULT_PRIORITY[source] } = terms
  return { _tag: "CreditsGranted", lotId, amount: credits(amount), source, priority, expiresAt, paymentRef }
}

type Reserved = EventOf<"CreditReserved">

/** A hold of one unit for each thousandth, with no expiry unless given. */
export const reserved = (
  reservationId: string,
  lots: Readonly<Record<string, number>>,
  more: Partial<Omit<Reserved, "_tag" | "reservationId" | "lots" | "amount">> = {}
): Reserved => {
  const amount = Lots.total(parts(lots))
  const call = { requestId: "req", operation: "grammar.check", quantity: amount, priceVersion: 1, ...more }
  return { _tag: "CreditReserved", reservationId, ...call, amount, lots: parts(lots) }
}

export const succeeded = (
  reservationId: string,
  lots: Readonly<Record<string, number>>,
  more: Partial<EventOf<"OperationSucceeded">> = {}
): EventOf<"OperationSucceeded"> => {
  const charged = Lots.total(parts(lots))
  return { _tag: "OperationSucceeded", reservationId, charged, quantity: charged, lots: parts(lots), replyHash: "reply", ...more }
}

export const refunded = (
  reservationId: string,
  lots: Readonly<Record<string, number>>,
  more: Partial<EventOf<"Refunded">> = {}
): EventOf<"Refunded"> => ({
  _tag: "Refunded",
  reservationId,
  stage: "reserved",
  amount: Lots.total(parts(lots)),
  reason: "service_error",
  lots: parts(lots),
  ...more
})

export const expired = (lotId: string, amount: number, dueAt: number): EventOf<"LotExpired"> => ({
  _tag: "LotExpired",
  lotId,
  amount: credits(amount),
  dueAt
})

export const clawedBack = (
  lotId: string,
  amounts: { readonly fromAvailable?: number; readonly fromHeld?: number; readonly debt?: number },
  paymentRef: string | null = null
): EventOf<"CreditsClawedBack"> => {
  const { fromAvailable = 0, fromHeld = 0, debt = 0 } = amounts
  return {
    _tag: "CreditsClawedBack",
    lotId,
    paymentRef,
    amount: credits(fromAvailable + fromHeld + debt),
    fromAvailable: credits(fromAvailable),
    fromHeld: credits(fromHeld),
    debt: credits(debt)
  }
}

export const reversed = (
  lotId: string,
  amounts: { readonly toHeld?: number; readonly toDebt?: number; readonly toAvailable?: number }
): EventOf<"ClawbackReversed"> => {
  const { toHeld = 0, toDebt = 0, toAvailable = 0 } = amounts
  return {
    _tag: "ClawbackReversed",
    lotId,
    paymentRef: null,
    amount: credits(toHeld + toDebt + toAvailable),
    toHeld: credits(toHeld),
    toDebt: credits(toDebt),
    toAvailable: credits(toAvailable)
  }
}

export const repaid = (lotId: string, amount: number): EventOf<"DebtRepaid"> => ({ _tag: "DebtRepaid", lotId, amount: credits(amount) })
