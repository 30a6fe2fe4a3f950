/** Rules of what is told of an account: a low balance and an expiry ahead are told once, when they are true. */
import { type Account, Lots, LowBalance } from "@millrace/core"
import { noAmount, type Stake } from "../Means.ts"
import { iso } from "../Report.ts"
import { credits, type Rule, rule } from "./Rule.ts"

/** What the account should have been told at the end of its last decision, and was not; undefined if nothing is missing. */
export const untold = ({ lowBalance, purse }: Account.Account): string | undefined => {
  const low = LowBalance.untold(lowBalance, purse.lots)
  return low && `the balance of ${credits(low.balance)} is below the threshold of ${credits(low.threshold)}, and this is not told`
}

/** A notice that is missing or wrong moves no money. */
export const UNTOLD: Stake = noAmount("the account has what it had, but was not told that this is below its threshold")

export const noticeRules: ReadonlyArray<Rule> = [
  // A balance below its threshold is told by the decision that took the credits: before any later event
  {
    name: "low-balance-is-told",
    tags: "all",
    broken: (_, { before, at, since }) => (at > since && before.lowBalance.threshold !== null ? untold(before) : undefined),
    means: () => UNTOLD
  },

  // An announced expiry is that of a lot with these available credits, lies ahead, and was not announced before
  rule(
    "lot-expiry-is-announced-once",
    ["LotExpiryAnnounced"],
    ({ amount, expiresAt, lotId }, { before, at }) => {
      const lot = Lots.find(before.purse.lots, lotId)
      if (lot === undefined) return `lot ${lotId} had no credits`
      if (lot.announced) return `the expiry of lot ${lotId} was announced already`
      if (lot.expiresAt !== expiresAt) return `lot ${lotId} does not expire at ${iso(expiresAt)}`
      if (expiresAt <= at) return `lot ${lotId} had expired`
      return amount === lot.left && amount > 0 ? undefined : `lot ${lotId} had ${credits(lot.left)} available, not ${credits(amount)}`
    },
    ({ lotId }) => noAmount(`the account was told of an expiry of lot ${lotId} that was announced before, or is not so`)
  ),

  // What is told of a balance is true, and was not told before
  rule(
    "low-balance-is-true",
    ["BalanceFellBelow"],
    ({ balance, threshold }, { before: { lowBalance, purse } }) => {
      if (threshold !== lowBalance.threshold)
        return `the threshold was ${lowBalance.threshold === null ? "not set" : credits(lowBalance.threshold)}, not ${credits(threshold)}`
      if (lowBalance.told) return "it was told already, and no credits have lifted the balance since"
      const owned = Lots.owned(purse.lots)
      if (owned !== balance) return `the balance was ${credits(owned)}, not ${credits(balance)}`
      return balance < threshold ? undefined : `a balance of ${credits(balance)} is not below ${credits(threshold)}`
    },
    ({ threshold }, _, say) => noAmount(`the account was told of a balance below ${say(threshold)} that was told before, or is not so`)
  )
]
