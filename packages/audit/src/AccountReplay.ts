/** The replay of one account: its state by the fold, and its balances by the postings. The two must agree after every event. */
import { Account, type AccountEvent, Lots, Postings } from "@millrace/core"
import type { JobIndex } from "./JobIndex.ts"
import type { Prices } from "./Prices.ts"
import type { ReportProblem } from "./Report.ts"
import { rulesFor } from "./rules/index.ts"
import { credits, type Step } from "./rules/Rule.ts"

/** An account's balances in thousandths, credits positive. `receivable`: the account's debt. */
interface Balances {
  readonly available: number
  readonly reserved: number
  readonly receivable: number
}

/** The balances of the fold. */
export const balancesOf = (account: Account.Account): Balances => {
  let available = 0
  let reserved = 0
  let receivable: number = account.purse.debts.length === 0 ? 0 : Account.debt(account)
  for (const lot of account.purse.lots) {
    available += lot.left
    reserved += lot.held
    receivable += lot.claimed
  }
  return { available, reserved, receivable }
}

/** Why the held amount of all lots is not the sum over open holds; undefined if it is. */
export const uncoveredHolds = ({ purse }: Account.Account): string | undefined => {
  let open = 0
  for (const [, { amount }] of purse.holds) open += amount
  const held = Lots.held(purse.lots)
  return open === held ? undefined : `open holds sum to ${credits(open)}, but lots hold ${credits(held)}`
}

export class AccountReplay {
  readonly accountId: string
  state: Account.Account = Account.initial
  readonly #own: Postings.OwnAccounts
  #byPostings: Balances = { available: 0, reserved: 0, receivable: 0 }

  constructor(accountId: string) {
    this.accountId = accountId
    this.#own = Postings.ownAccounts(accountId)
  }

  /** Checks every rule, then folds and posts the event. False if it does not fold: then the account cannot be replayed further. */
  next(event: AccountEvent, at: number, prices: Prices, jobs: JobIndex, report: ReportProblem): boolean {
    const before = this.state
    const step: Step = { before, at, prices, jobs, hold: holdOf(before, event) }
    let broken = false
    try {
      for (const { name, broken: ask } of rulesFor(event._tag)) {
        const detail = ask(event, step)
        if (detail === undefined) continue
        broken = true
        report(name, detail)
      }
      const postings = Postings.postings(this.#own, before, event)
      this.state = Account.Account.evolve(before, event, at)
      // An event without postings must not change lots or debts
      if (postings.length > 0 || this.state.purse !== before.purse) this.#post(postings, report)
      return true
    } catch (error) {
      // A rule has reported it already
      if (!broken) report("account-folds", error instanceof Error ? error.message : String(error))
      return false
    }
  }

  #post(postings: ReadonlyArray<Postings.Posting>, report: ReportProblem): void {
    let sum = 0
    let { available, reserved, receivable } = this.#byPostings
    const own = this.#own
    for (const { account, amount } of postings) {
      sum += amount
      if (account === own.available) available -= amount
      else if (account === own.reserved) reserved -= amount
      else if (account === own.receivable) receivable += amount
    }
    if (sum !== 0) report("postings-sum-to-zero", `the postings sum to ${credits(sum)}`)
    const byPostings: Balances = { available, reserved, receivable }
    const byFold = balancesOf(this.state)
    const wrong = BALANCES.find((name) => byPostings[name] !== byFold[name])
    if (wrong !== undefined)
      report("books-agree", `${wrong} is ${credits(byPostings[wrong])} by the postings, ${credits(byFold[wrong])} by the account's lots`)
    // Continue from the fold, so that one error is not reported again at every later event
    this.#byPostings = byFold
  }
}

const BALANCES = ["available", "reserved", "receivable"] as const

const holdOf = (before: Account.Account, event: AccountEvent): Account.Hold | undefined =>
  event._tag === "OperationSucceeded" || event._tag === "Refunded" ? Account.hold(before, event.reservationId) : undefined
