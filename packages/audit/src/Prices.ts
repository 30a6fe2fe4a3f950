/** The prices published in the log so far. A hold can only pin a version that was published before it. */
import type { Credits } from "@millrace/core"

interface Published {
  readonly version: number
  /** Milliseconds since 1970. */
  readonly effectiveAt: number
  readonly prices: Readonly<Record<string, Credits.Credits>>
}

interface PriceList {
  readonly effectiveAt: number
  /** Unit prices by operation. In a map: a text that was just read must become a name of V8's before a property is found by it. */
  readonly prices: ReadonlyMap<string, Credits.Credits>
}

export class Prices {
  readonly #versions = new Map<number, ReadonlyArray<PriceList>>()
  #complete = true
  /** How many price lists were published. */
  published = 0

  /**
   * Adds a version that was published at `at`. Each price plan counts its own versions, so one number may stand for several price lists. A
   * version that came into force at once is in force from its place in the log, whatever the clocks of the hosts that use it.
   */
  learn({ effectiveAt, prices, version }: Published, at: number): void {
    this.published++
    const list: PriceList = {
      effectiveAt: effectiveAt <= at ? Number.NEGATIVE_INFINITY : effectiveAt,
      prices: new Map(Object.entries(prices))
    }
    this.#versions.set(version, [...(this.#versions.get(version) ?? []), list])
  }

  /** Notes that a part of a plan could not be replayed: it may have more versions. */
  doubt(): void {
    this.#complete = false
  }

  /**
   * Why `amount` is not `quantity` times the unit price of a pinned version; undefined when it is. A host may keep its prices outside the
   * log; then the amount must only be divisible by the quantity.
   */
  mismatch(operation: string, version: number, quantity: number, amount: Credits.Credits, at: number): string | undefined {
    if (this.#versions.size === 0) {
      const divides = quantity === 0 ? amount === 0 : amount % quantity === 0
      return divides ? undefined : `${amount / 1000} is not divisible by ${quantity} units`
    }
    let isInForce = false
    let wrongPrice: number | undefined
    for (const { effectiveAt, prices } of this.#versions.get(version) ?? []) {
      if (effectiveAt > at) continue
      isInForce = true
      const unitPrice = prices.get(operation)
      if (unitPrice === undefined) continue
      if (unitPrice * quantity === amount) return undefined
      wrongPrice = unitPrice
    }
    if (!isInForce) return this.#complete ? `price version ${version} was not in force` : undefined
    if (wrongPrice === undefined) return `price version ${version} has no price for ${operation}`
    return `${quantity} × ${wrongPrice / 1000} of price version ${version} is not ${amount / 1000}`
  }

  /** Whether a call of an operation may have cost nothing, by a version published so far or by prices outside the log. */
  mayBeFree(operation: string): boolean {
    if (!this.#complete || this.#versions.size === 0) return true
    for (const lists of this.#versions.values()) if (lists.some(({ prices }) => prices.get(operation) === 0)) return true
    return false
  }

  /** What `quantity` units cost at a pinned version that was in force; undefined if it has no price for the operation. */
  priceOf(operation: string, version: number, quantity: number, at: number): number | undefined {
    const prices = (this.#versions.get(version) ?? []).filter((list) => list.effectiveAt <= at)
    const unitPrice = prices.map(({ prices }) => prices.get(operation)).find((price) => price !== undefined)
    return unitPrice === undefined || quantity < 0 ? undefined : unitPrice * quantity
  }
}
