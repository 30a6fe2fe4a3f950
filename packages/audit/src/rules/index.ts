/** All rules of accounts, in the order in which they check an event. `LogReader.ts` checks places, hashes and times. */
import type { AccountEvent } from "@millrace/core"
import { accountRules } from "./Accounts.ts"
import { chargeRules } from "./Charges.ts"
import { holdRules } from "./Holds.ts"
import { jobRules } from "./Jobs.ts"
import { lotRules } from "./Lots.ts"
import { noticeRules } from "./Notices.ts"
import { paymentRules } from "./Payments.ts"
import { recurringRules } from "./Recurring.ts"
import type { Rule } from "./Rule.ts"
import { workRules } from "./Works.ts"

export const rules: ReadonlyArray<Rule> = [
  ...accountRules,
  ...lotRules,
  ...holdRules,
  ...chargeRules,
  ...jobRules,
  ...workRules,
  ...paymentRules,
  ...recurringRules,
  ...noticeRules
]

const byTag = new Map<AccountEvent["_tag"], ReadonlyArray<Rule>>()

/** The rules for events of a type. */
export const rulesFor = (tag: AccountEvent["_tag"]): ReadonlyArray<Rule> => {
  const known = byTag.get(tag)
  if (known !== undefined) return known
  const found = rules.filter(({ tags }) => tags === "all" || tags.includes(tag))
  byTag.set(tag, found)
  return found
}
