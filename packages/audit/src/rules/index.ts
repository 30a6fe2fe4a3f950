/** All rules of accounts, in the order in which they check an event. `Log.ts` has the rules of streams and of the whole log. */
import type { AccountEvent } from "@millrace/core"
import * as Accounts from "./Accounts.ts"
import * as Charges from "./Charges.ts"
import * as Holds from "./Holds.ts"
import * as Jobs from "./Jobs.ts"
import * as Lots from "./Lots.ts"
import * as Payments from "./Payments.ts"
import type { Rule } from "./Rule.ts"

export const rules: ReadonlyArray<Rule> = [
  Accounts.accountIsOpenedFirst,
  Accounts.barredAccountHoldsNothing,
  Accounts.closedAccountIsGrantedNothing,
  Accounts.trialHasItsSlots,
  Lots.whatIsDueComesFirst,
  Lots.lotIsGrantedOnce,
  Lots.paidLotNamesItsPayment,
  Lots.lotExpiresAtItsTime,
  Lots.holdLapsesAtItsTime,
  Charges.holdIsPriced,
  Charges.chargeIsPriced,
  Holds.holdIsItsLots,
  Holds.holdTakesWhatIsFree,
  Holds.holdTakesLotsInOrder,
  Holds.holdHasADeadline,
  Holds.keyRunsOnce,
  Holds.lateCallWasAbandoned,
  Holds.holdEndsOnce,
  Holds.chargeIsPartOfItsHold,
  Holds.refundIsItsHold,
  Holds.clawbackTakesWhatIsReleased,
  Jobs.jobIsChargedForItsResult,
  Jobs.jobIsRefundedForItsFailure,
  Payments.clawbackIsOfAPaidLot,
  Payments.reversalIsOfAClawback,
  Payments.debtIsRepaidByPaidLots
]

const byTag = new Map<AccountEvent["_tag"], ReadonlyArray<Rule>>()

/** The rules for events of a type. */
export const rulesFor = (tag: AccountEvent["_tag"]): ReadonlyArray<Rule> => {
  let found = byTag.get(tag)
  if (found === undefined) {
    found = rules.filter(({ tags }) => tags === "all" || tags.includes(tag))
    byTag.set(tag, found)
  }
  return found
}
