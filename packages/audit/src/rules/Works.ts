/** Rules of calls whose work leaves a stream of its own: they are charged for what stands there. */
import { CREATE_INBOX, type Left, OPEN_SESSION, WAIT } from "../CallIndex.ts"
import type { RuleName } from "./Catalog.ts"
import { type Rule, rule, wholeOf } from "./Rule.ts"

/** A charge of an operation has one of these in the log before it. `what`: what they are, for sentences. */
const chargedFor = (name: RuleName, operation: string, due: ReadonlyArray<Left>, what: string): Rule =>
  rule(
    name,
    ["OperationSucceeded"],
    ({ reservationId }, { calls, hold }) => {
      const left = hold?.operation === operation ? calls.leftBy(operation, reservationId) : "unknown"
      if (left === "unknown" || (left !== undefined && due.includes(left))) return undefined
      return left === undefined ? `before the charge, the log has nothing that this call did` : `what the log has of this call is ${left}`
    },
    (event, _, say) => wholeOf(event, `without ${what}`, say)
  )

export const workRules: ReadonlyArray<Rule> = [
  // A wait whose caller left is not charged, and one that ended with its process has no outcome
  chargedFor("wait-is-charged-for-its-outcome", WAIT, ["CodeFound", "WaitTimedOut"], "a wait that came to its end"),
  chargedFor("inbox-is-charged-when-created", CREATE_INBOX, ["InboxCreated"], "an inbox"),
  chargedFor("proxy-session-is-charged-when-opened", OPEN_SESSION, ["ProxySessionOpened"], "a proxy session")
]
