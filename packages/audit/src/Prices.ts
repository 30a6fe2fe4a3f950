/** The prices published in the log so far. A hold can only pin a version that was published before it. */
import type { Credits } from "@millrace/core"

export interface PriceVersion {
  readonly version: number
  /** Milliseconds since 1970. */
  readonly effectiveAt: number
  readonly prices: Readonly<Record<string, Credits.Credits>>
}

export class Prices {
  readonly #versions = new Map<number, Array<PriceVersion>>()
  #complete = true

  /**
   * Each price plan counts its own versions, so one number may stand for several price lists. `at`: when the version was published. One
   * that came into force at once is in force from its place in the log, whatever the clock of the host that then holds by it.
   */
  learn(published: PriceVersion, at: number): void {
    const version = published.effectiveAt <= at ? { ...published, effectiveAt: Number.NEGATIVE_INFINITY } : published
    const same = this.#versions.get(version.version)
    if (same === undefined) this.#versions.set(version.version, [version])
    else same.push(version)
  }

  /** Notes that a part of a plan could not be replayed: an unknown version may be in that part. */
  doubt(): void {
    this.#complete = false
  }

  /**
   * Why `amount` is not `quantity` times the unit price of a pinned version; undefined when it is. A log without any price plan,
   * as of a host that keeps its prices elsewhere, only shows whether there can be a unit price at all.
   */
  mismatch(operation: string, version: number, quantity: number, amount: Credits.Credits, at: number): string | undefined {
    if (this.#versions.size === 0) {
      const divides = quantity === 0 ? amount === 0 : amount % quantity === 0
      return divides ? undefined : `${amount / 1000} cannot be the price of ${quantity}`
    }
    const lists = this.#versions.get(version)?.filter((list) => list.effectiveAt <= at) ?? []
    if (lists.length === 0 && !this.#complete) return undefined
    if (lists.length === 0) return `price version ${version} did not hold then`
    let wrong = `price version ${version} has no price for ${operation}`
    for (const { prices } of lists) {
      const unitPrice = prices[operation]
      if (unitPrice === undefined) continue
      if (unitPrice * quantity === amount) return undefined
      wrong = `${quantity} × ${unitPrice / 1000} of price version ${version} is not ${amount / 1000}`
    }
    return wrong
  }
}
