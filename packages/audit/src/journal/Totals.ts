/** The sums of all postings, by the accounts and what they are in: credits, or a currency. */
import type { Postings } from "@millrace/core"
import type { Balance } from "./Format.ts"

/** Keys in which no two accounts or currencies meet: a currency has no space. */
const keyOf = (account: string, currency: string | undefined): string => `${currency ?? ""} ${account}`

export class Totals {
  readonly #sums = new Map<string, Balance>()
  readonly #accounts = new Set<string>()
  readonly #currencies = new Set<string>()

  /** Adds an entry. Returns the currency and the accounts that it is the first to name. */
  add(
    postings: ReadonlyArray<Postings.Posting>,
    currency: string | undefined
  ): { readonly currency: string | undefined; readonly accounts: ReadonlyArray<string> } {
    const accounts = new Set<string>()
    for (const { account, amount } of postings) {
      if (!this.#accounts.has(account)) accounts.add(account)
      this.#accounts.add(account)
      const key = keyOf(account, currency)
      const balance = (this.#sums.get(key)?.balance ?? 0) + amount
      this.#sums.set(key, { account, balance, ...(currency !== undefined && { currency }) })
    }
    const isNew = currency !== undefined && !this.#currencies.has(currency)
    if (currency !== undefined) this.#currencies.add(currency)
    return { currency: isNew ? currency : undefined, accounts: [...accounts] }
  }

  has(account: string): boolean {
    return this.#accounts.has(account)
  }

  /** The balances of all accounts, in the order in which they were first posted to: by the given ones where those have an account, else the sums. */
  closing(known: ReadonlyArray<Balance>): ReadonlyArray<Balance> {
    const byFold = new Map(known.map(({ account, balance, currency }) => [keyOf(account, currency), balance]))
    return [...this.#sums].map(([key, sum]) => ({ ...sum, balance: byFold.get(key) ?? sum.balance }))
  }
}
