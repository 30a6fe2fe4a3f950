/** All checks of the evidence at the end of a simulation. */
import { invariants } from "../../Invariants.ts"
import type { Evidence, Report } from "../Evidence.ts"
import type { LogRecorder } from "../LogRecorder.ts"
import { checkCalls, checkKeys } from "./Calls.ts"
import { checkCodes } from "./Codes.ts"
import { checkGrants } from "./Grants.ts"
import { checkInboxes } from "./Inboxes.ts"
import { checkObservations } from "./JobAnswers.ts"
import { checkJobs } from "./Jobs.ts"
import { checkPayments } from "./Payments.ts"
import { checkPeople } from "./People.ts"
import { checkProxies } from "./Proxies.ts"
import { checkSubscriptions } from "./Subscriptions.ts"
import { checkTrials } from "./Trials.ts"
import { checkWebhooks } from "./Webhooks.ts"

/** Reports every violation. */
export const check = (evidence: Evidence, report: Report): void => {
  checkInvariants(evidence.recorder, report)
  for (const { end, hold, stream } of evidence.reservations.byId.values())
    if (end === undefined) report(`${stream}: the hold ${hold.reservationId} of ${hold.requestId} has no end, due at ${hold.expiresAt}`)
  checkCalls(evidence, report)
  checkKeys(evidence, report)
  checkTrials(evidence, report)
  checkGrants(evidence, report)
  checkJobs(evidence, report)
  checkObservations(evidence, report)
  checkWebhooks(evidence, report)
  checkInboxes(evidence, report)
  checkCodes(evidence, report)
  checkProxies(evidence, report)
  checkPayments(evidence, report)
  checkSubscriptions(evidence, report)
  checkPeople(evidence, report)
}

/** Reports every violation in the log so far. */
export const checkInvariants = ({ all }: LogRecorder, report: Report): void => {
  for (const { stream, revision, rule, detail } of invariants(all)) report(`${stream} ${revision}: ${rule}: ${detail}`)
}
