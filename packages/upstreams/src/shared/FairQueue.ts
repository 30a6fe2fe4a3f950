/**
 * A fair queue between accounts for a shared resource. The next item belongs to the account that has used the resource least since it began
 * to wait, or among equals to the one whose last turn is longest ago. So an account with cheap items is served more often than one with
 * expensive items (start-time fair queueing: Goyal, Vin, Cheng, 1996). Items of one account keep their order.
 */
export class FairQueue<Item> {
  /** Accounts that wait or use the resource, in the order of their last turns. */
  readonly #accounts = new Map<string, Account<Item>>()

  add(accountId: string, item: Item): void {
    const account = this.#accounts.get(accountId) ?? this.#enter(accountId)
    account.waiting.add(item)
  }

  /** Removes a waiting item. */
  remove(accountId: string, item: Item): void {
    this.#accounts.get(accountId)?.waiting.delete(item)
    this.#leaveIfIdle(accountId)
  }

  /** Takes the next item; undefined if none waits. {@link release} must be called after its use. */
  take(): Item | undefined {
    let next: readonly [accountId: string, account: Account<Item>] | undefined
    for (const entry of this.#accounts) if (entry[1].waiting.size > 0 && (next === undefined || entry[1].used < next[1].used)) next = entry
    if (next === undefined) return undefined
    const [accountId, account] = next
    this.#moveToEnd(accountId, account)
    account.inUse += 1
    const [item] = account.waiting
    if (item !== undefined) account.waiting.delete(item)
    return item
  }

  /** Ends the use of a taken item. `cost`: its usage, in one unit for all items, such as milliseconds. */
  release(accountId: string, cost: number): void {
    const account = this.#accounts.get(accountId)
    if (account === undefined) return
    account.inUse -= 1
    account.used += cost
    this.#moveToEnd(accountId, account)
    this.#leaveIfIdle(accountId)
  }

  #moveToEnd(accountId: string, account: Account<Item>): void {
    this.#accounts.delete(accountId)
    this.#accounts.set(accountId, account)
  }

  /** Starts an account with the usage of the next one, so that it gains no advantage from having been idle. */
  #enter(accountId: string): Account<Item> {
    const used = this.#accounts.size === 0 ? 0 : Math.min(...Array.from(this.#accounts.values(), (account) => account.used))
    const account = { waiting: new Set<Item>(), inUse: 0, used }
    this.#accounts.set(accountId, account)
    return account
  }

  #leaveIfIdle(accountId: string): void {
    const account = this.#accounts.get(accountId)
    if (account !== undefined && account.waiting.size === 0 && account.inUse === 0) this.#accounts.delete(accountId)
  }
}

interface Account<Item> {
  /** Waiting items, in the order of arrival. */
  readonly waiting: Set<Item>
  /** Items taken and not yet released. */
  inUse: number
  /** The account's usage: the sum of costs, on a scale that all accounts share. */
  used: number
}
