/** The replay of one account: its state by the fold, and its balances by the postings. The two must agree after every event. */
import { Account, type AccountEvent, Lots, Postings } from "@millrace/core"
import type { CallIndex } from "./CallIndex.ts"
import type { JobIndex } from "./JobIndex.ts"
import type { Say, Stake } from "./Means.ts"
import type { PaymentIndex } from "./PaymentIndex.ts"
import type { Prices } from "./Prices.ts"
import type { ReportProblem } from "./Report.ts"
import type { RuleName } from "./rules/Catalog.ts"
import { rulesFor } from "./rules/index.ts"
import { credits, type Step } from "./rules/Rule.ts"
import type { Beginning } from "./UniqueNames.ts"

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

/** The sum over open holds and the held amount of all lots, where they differ. */
export const uncoveredHolds = ({ purse }: Account.Account): { readonly open: number; readonly held: number } | undefined => {
  let open = 0
  for (const [, { amount }] of purse.holds) open += amount
  const held = Lots.held(purse.lots)
  return open === held ? undefined : { open, held }
}

/** The balances of an account by its postings. */
class Books implements Balances {
  available = 0
  reserved = 0
  receivable = 0
  /** Of the postings of one event: zero, if the books balance. */
  sum = 0
  readonly #own: Postings.OwnAccounts

  constructor(own: Postings.OwnAccounts) {
    this.#own = own
  }

  readonly take: Postings.Book = (account, amount) => {
    this.sum += amount
    if (account === this.#own.available) this.available -= amount
    else if (account === this.#own.reserved) this.reserved -= amount
    else if (account === this.#own.receivable) this.receivable += amount
  }

  /** Begins the next event, from these balances. */
  begin({ available, receivable, reserved }: Balances): void {
    this.available = available
    this.reserved = reserved
    this.receivable = receivable
    this.sum = 0
  }
}

/** What the log has beside accounts, as far as it was read. */
export interface Known {
  readonly prices: Prices
  readonly jobs: JobIndex
  readonly calls: CallIndex
  readonly payments: PaymentIndex
}

export class AccountReplay {
  readonly accountId: string
  /** The beginning of the names that must be unique in its stream. */
  readonly names: Beginning
  /** Grants and holds so far. */
  lots = 0
  holds = 0
  state: Account.Account = Account.initial
  /** Milliseconds since 1970, if it was. */
  closedAt: number | undefined
  readonly #own: Postings.OwnAccounts
  #at: number | undefined
  readonly #books: Books

  constructor(accountId: string, names: Beginning) {
    this.accountId = accountId
    this.names = names
    this.#own = Postings.ownAccounts(accountId)
    this.#books = new Books(this.#own)
  }

  /** Checks every rule, then folds and posts the event. False if it does not fold: then the account cannot be replayed further. */
  next(event: AccountEvent, at: number, { calls, jobs, payments, prices }: Known, report: ReportProblem): boolean {
    const { accountId, state: before } = this
    const step: Step = { accountId, before, at, since: this.#at ?? at, prices, jobs, calls, payments, hold: holdOf(before, event) }
    this.#at = at
    let broken = false
    try {
      for (const rule of rulesFor(event._tag)) {
        const detail = rule.broken(event, step)
        if (detail === undefined) continue
        broken = true
        report(rule.name, detail, (say) => ({ ...this.#spendable(event, at), ...rule.means(event, step, say) }))
      }
      if (event._tag === "CreditReserved") this.holds++
      else if (event._tag === "CreditsGranted") this.lots++
      else if (event._tag === "AccountClosed") this.closedAt = at
      Postings.post(this.#own, before, event, this.#books.take)
      this.state = Account.Account.evolve(before, event, at)
      calls.learn(accountId, event)
      this.#compareBooks(report)
      return true
    } catch (error) {
      // A rule has reported it already
      if (!broken) report("account-folds" satisfies RuleName, error instanceof Error ? error.message : String(error))
      return false
    }
  }

  /** What the account can spend before an event and, if the event folds, after it. */
  #spendable(event: AccountEvent, at: number): Pick<Stake, "account" | "before" | "after"> {
    const before = balancesOf(this.state).available
    try {
      return { account: this.accountId, before, after: balancesOf(Account.Account.evolve(this.state, event, at)).available }
    } catch {
      return { account: this.accountId, before }
    }
  }

  /** What is proven of the account: the stake of an event that cannot be replayed. */
  proven(say: Say, claim?: string): Stake {
    const { available, receivable, reserved } = balancesOf(this.state)
    const debt = receivable === 0 ? "" : `, and ${say(receivable)} owed`
    const known = `${say(available)} to spend, ${say(reserved)} held${debt}`
    const until = `The last proven balance of the account is ${known}.`
    return {
      account: this.accountId,
      before: available,
      sentence: `${claim === undefined ? "" : `${claim}. `}${until} Nothing that the log says of it from here on is proven.`
    }
  }

  /** After each event: its postings sum to zero, and the balances by postings are those of the fold. */
  #compareBooks(report: ReportProblem): void {
    const books = this.#books
    const { sum } = books
    if (sum !== 0) {
      report("postings-sum-to-zero" satisfies RuleName, `the postings sum to ${credits(sum)}`, (say) => ({
        account: this.accountId,
        amount: sum,
        sentence: `${say(sum)} ${sum > 0 ? "disappeared: more was taken than arrived" : "came from nowhere: more arrived than was taken"}.`
      }))
    }
    const byFold = balancesOf(this.state)
    if (books.available !== byFold.available || books.reserved !== byFold.reserved || books.receivable !== byFold.receivable)
      this.#reportBooks(books, byFold, report)
    // Continue from the fold, so that one error is not reported again at every later event
    books.begin(byFold)
  }

  /** Reports the first balance that is not the same by the postings and by the fold. */
  #reportBooks(byPostings: Balances, byFold: Balances, report: ReportProblem): void {
    const wrong = BALANCES.find((name) => byPostings[name] !== byFold[name])
    if (wrong === undefined) return
    const [books, lots] = [byPostings[wrong], byFold[wrong]]
    const detail = `${wrong} is ${credits(books)} by the postings, ${credits(lots)} by the account's lots`
    report("books-agree" satisfies RuleName, detail, (say) => ({
      account: this.accountId,
      before: books,
      after: lots,
      amount: lots - books,
      sentence: `The books say ${say(books)} ${IN_WORDS[wrong]}, the account's lots say ${say(lots)}: they differ by ${say(lots - books)}.`
    }))
  }
}

const BALANCES = ["available", "reserved", "receivable"] as const
const IN_WORDS = { available: "to spend", reserved: "held", receivable: "owed by the account" } as const

const holdOf = (before: Account.Account, event: AccountEvent): Account.Hold | undefined =>
  event._tag === "OperationSucceeded" || event._tag === "Refunded" ? Account.hold(before, event.reservationId) : undefined
