/** The replay of one account: its state by the fold, and its balances by the postings. */
import { Account, type AccountEvent, Postings } from "@millrace/core"
import type { JobIndex } from "./JobIndex.ts"
import type { Prices } from "./Prices.ts"
import type { ReportProblem } from "./Replay.ts"
import { type Balances, balancesOf, booksAgree, postingsSumToZero } from "./rules/Books.ts"
import { rulesFor } from "./rules/index.ts"
import type { Step } from "./rules/Rule.ts"

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
    const unbalanced = postingsSumToZero(postings)
    if (unbalanced !== undefined) report("postings-sum-to-zero", unbalanced)
    let { available, reserved, receivable } = this.#byPostings
    const own = this.#own
    for (const { account, amount } of postings) {
      if (account === own.available) available -= amount
      else if (account === own.reserved) reserved -= amount
      else if (account === own.receivable) receivable += amount
    }
    const byFold = balancesOf(this.state)
    const disagreement = booksAgree({ available, reserved, receivable }, byFold)
    if (disagreement !== undefined) report("books-agree", disagreement)
    // Continue from the fold, so that one error is not reported again at every later event
    this.#byPostings = byFold
  }
}

const holdOf = (before: Account.Account, event: AccountEvent): Account.Hold | undefined =>
  event._tag === "OperationSucceeded" || event._tag === "Refunded" ? Account.hold(before, event.reservationId) : undefined
