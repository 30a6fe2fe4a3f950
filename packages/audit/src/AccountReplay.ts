/** One account as the log tells it, event after event: its fold, and its balances as postings make them. */
import { Account, type AccountEvent, Postings } from "@millrace/core"
import type { JobBook } from "./JobBook.ts"
import type { Prices } from "./Prices.ts"
import type { Say } from "./Replay.ts"
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

  /** Asks every rule, then folds and posts the event. False when it does not fold: then the account is known no further. */
  next(event: AccountEvent, at: number, prices: Prices, jobs: JobBook, say: Say): boolean {
    const before = this.state
    const step: Step = { before, at, prices, jobs, hold: holdOf(before, event) }
    let broken = false
    try {
      for (const { name, broken: ask } of rulesFor(event._tag)) {
        const detail = ask(event, step)
        if (detail === undefined) continue
        broken = true
        say(name, detail)
      }
      const postings = Postings.postings(this.#own, before, event)
      this.state = Account.Account.evolve(before, event, at)
      // What posts nothing must move nothing
      if (postings.length > 0 || this.state.purse !== before.purse) this.#post(postings, say)
      return true
    } catch (error) {
      // A rule has said it better
      if (!broken) say("account-folds", error instanceof Error ? error.message : String(error))
      return false
    }
  }

  #post(postings: ReadonlyArray<Postings.Posting>, say: Say): void {
    const unbalanced = postingsSumToZero(postings)
    if (unbalanced !== undefined) say("postings-sum-to-zero", unbalanced)
    let { available, reserved, receivable } = this.#byPostings
    const own = this.#own
    for (const { account, amount } of postings) {
      if (account === own.available) available -= amount
      else if (account === own.reserved) reserved -= amount
      else if (account === own.receivable) receivable += amount
    }
    const byFold = balancesOf(this.state)
    const disagreement = booksAgree({ available, reserved, receivable }, byFold)
    if (disagreement !== undefined) say("books-agree", disagreement)
    // From the fold, so that what is wrong here is not wrong again at every later event
    this.#byPostings = byFold
  }
}

const holdOf = (before: Account.Account, event: AccountEvent): Account.Hold | undefined =>
  event._tag === "OperationSucceeded" || event._tag === "Refunded" ? Account.hold(before, event.reservationId) : undefined
