/** Checks grants: credits in the log were granted, refused grants are not there, and confirmed grants are. */
import type { Evidence, Report } from "../Evidence.ts"
import type { RecordedAccountEvent } from "../LogRecorder.ts"
import type { Grant } from "../Records.ts"

const nameOf = ({ accountId, lotId }: Grant): string => `${accountId} ${lotId}`

/** Answers after which a grant was certainly not written. */
const REFUSED = new Set(["AccountNotFound", "AccountClosed", "StoreUnavailable", "Busy"])

export const checkGrants = ({ records: { grants, recorder } }: Evidence, report: Report): void => {
  const written = checkOrigins(recorder.accountEvents, new Map(grants.map((grant) => [nameOf(grant), grant])), report)
  for (const [name, asked] of Map.groupBy(grants, nameOf)) {
    const isWritten = written.has(name)
    if (asked.some(({ answer }) => answer === "ok") && !isWritten) report(`${name} was granted, but is not in the log`)
    if (isWritten && asked.every(({ answer }) => REFUSED.has(answer))) report(`${name} was refused, but is in the log`)
  }
}

/** Every lot comes from sign-up, from a grant, or from an expired lot that a failed call returned credits to. Returns the lots' names. */
const checkOrigins = (
  events: ReadonlyArray<RecordedAccountEvent>,
  asked: ReadonlyMap<string, Grant>,
  report: Report
): ReadonlySet<string> => {
  const written = new Set<string>()
  const expired = new Map<string, number>()
  for (const { event, stream } of events) {
    if (event._tag === "LotExpired") expired.set(stream, event.amount)
    if (event._tag !== "CreditsGranted") continue
    const name = `${stream.slice("account-".length)} ${event.lotId}`
    written.add(name)
    const isFounded =
      event.source === "adjustment"
        ? expired.get(stream) === event.amount
        : event.source === "signup" || asked.get(name)?.amount === event.amount
    if (!isFounded) report(`${stream}: no administrator granted the ${event.amount} credits of ${event.lotId}`)
    if (event.source === "adjustment") expired.delete(stream)
  }
  return written
}
