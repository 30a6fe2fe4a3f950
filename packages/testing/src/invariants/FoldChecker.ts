/** Checks the ledger's own fold and postings: after every event both must agree with the balances that were counted from the events. */
import { Account, type AccountEvent, Lots, Postings } from "@millrace/core"
import type { Report } from "./Rules.ts"

/** Balances counted from the events: thousandths of a credit. */
interface Balances {
  readonly available: number
  readonly held: number
  /** Debt, and what clawbacks still claim of held credits. */
  readonly receivable: number
}

export class FoldChecker {
  readonly #accountId: string
  readonly #report: Report
  /** Undefined after an event that did not fold. */
  #account: Account.Account | undefined = Account.initial
  readonly #posted = new Map<string, number>()

  constructor(accountId: string, report: Report) {
    this.#accountId = accountId
    this.#report = report
  }

  enter(event: AccountEvent, at: number, counted: Balances): void {
    if (this.#account === undefined) return
    try {
      this.#post(Postings.postings(this.#accountId, this.#account, event))
      this.#account = Account.Account.evolve(this.#account, event, at)
      const { lots } = this.#account.purse
      const claimed = lots.reduce((sum, lot) => sum + lot.claimed, 0)
      this.#compare(Postings.available(this.#accountId), -Lots.left(lots), -counted.available)
      this.#compare(Postings.reserved(this.#accountId), -Lots.held(lots), -counted.held)
      this.#compare(Postings.receivable(this.#accountId), Account.debt(this.#account) + claimed, counted.receivable)
    } catch (error) {
      this.#account = undefined
      this.#report("folds", error instanceof Error ? error.message : String(error))
    }
  }

  #post(postings: ReadonlyArray<Postings.Posting>): void {
    const sum = postings.reduce((sum, { amount }) => sum + amount, 0)
    if (sum !== 0) this.#report("books", `they sum to ${sum}`)
    for (const { account, amount } of postings) this.#posted.set(account, (this.#posted.get(account) ?? 0) + amount)
  }

  #compare(account: string, folded: number, counted: number): void {
    const posted = this.#posted.get(account) ?? 0
    if (Math.abs(posted - folded) + Math.abs(posted - counted) !== 0)
      this.#report("books", `${account} is ${posted}, ${folded} folded, ${counted} counted`)
  }
}
