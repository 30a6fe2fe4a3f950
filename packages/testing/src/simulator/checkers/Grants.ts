/** Checks grants: credits in the log were granted, refused grants are not there, and confirmed grants are. */
import type { Evidence, Report } from "../Evidence.ts"
import type { RecordedAccountEvent } from "../LogRecorder.ts"
import type { Grant } from "../Records.ts"
import { lotsOf } from "./Payments.ts"

const nameOf = ({ accountId, lotId }: Grant): string => `${accountId} ${lotId}`

/** Answers after which a grant was certainly not written. */
const REFUSED = new Set(["AccountNotFound", "AccountClosed", "StoreUnavailable", "Busy"])

export const checkGrants = ({ records: { grants, paid, recorder, recurring } }: Evidence, report: Report): void => {
  const asked = new Map(grants.map((grant) => [nameOf(grant), grant]))
  for (const { accountId, amount, grantId } of recurring)
    asked.set(`${accountId} ${grantId}`, { accountId, lotId: grantId, amount, answer: "" })
  // Whether they were captured, and how much they bought, is checked with the payments
  const bought = new Set([...paid.keys()].flatMap((paymentId) => lotsOf(paymentId)))
  const written = checkOrigins(recorder.accountEvents, asked, bought, report)
  for (const [name, asked] of Map.groupBy(grants, nameOf)) {
    const isWritten = written.has(name)
    if (asked.some(({ answer }) => answer === "ok") && !isWritten) report(`${name} was granted, but is not in the log`)
    if (isWritten && asked.every(({ answer }) => REFUSED.has(answer))) report(`${name} was refused, but is in the log`)
  }
}

/** Every lot comes from sign-up, from a grant, from a recurring grant, from a payment, or from an expired lot that a failed call returned credits to. Returns the lots' names. */
const checkOrigins = (
  events: ReadonlyArray<RecordedAccountEvent>,
  asked: ReadonlyMap<string, Grant>,
  bought: ReadonlySet<string>,
  report: Report
): ReadonlySet<string> => {
  const written = new Set<string>()
  const expired = new Map<string, number>()
  for (const { event, stream } of events) {
    if (event._tag === "LotExpired") expired.set(stream, event.amount)
    if (event._tag !== "CreditsGranted") continue
    const name = `${stream.slice("account-".length)} ${event.lotId}`
    written.add(name)
    if (bought.has(event.lotId)) continue
    const recurs = event.recurring === undefined ? undefined : asked.get(`${stream.slice("account-".length)} ${event.recurring.grantId}`)
    const isRenewal = event.source === "adjustment" && event.recurring === undefined
    const isFounded = isRenewal
      ? expired.get(stream) === event.amount
      : event.source === "signup" || (recurs ?? asked.get(name))?.amount === event.amount
    if (!isFounded) report(`${stream}: no administrator granted the ${event.amount} credits of ${event.lotId}`)
    if (isRenewal) expired.delete(stream)
  }
  return written
}
