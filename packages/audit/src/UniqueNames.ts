/**
 * Finds names that occur twice in a log of any length, in bounded memory: a set of 64-bit fingerprints of eight bytes each. A name with the
 * fingerprint of an earlier one is only a suspect. Reading the log again compares the full names, so the answer is exact.
 *
 * If there are more names than fit, one reading of the log takes only a share of them, by the first bits of their fingerprints. The log is
 * read again for each other share.
 */
export class UniqueNames {
  /** Names in one reading. 24 million take 256 MiB. */
  static readonly MOST = 24_000_000

  readonly #most: number
  /** A hash table with open addressing: two words a slot, both zero if it is free. */
  #slots = new Int32Array(2 * 1024)
  #size = 0
  /** The number of first bits that select a share, and the current share. */
  #bits = 0
  #share = 0

  constructor(most: number = UniqueNames.MOST) {
    this.#most = most
  }

  /** The number of shares: each takes one reading of the log. */
  get shares(): number {
    return 2 ** this.#bits
  }

  /** Forgets all names and begins another share. */
  begin(share: number): void {
    this.#share = share
    this.#slots.fill(0)
    this.#size = 0
  }

  /**
   * Adds a name. True if it, or another name with its fingerprint, was added before. False for names of another share. A name may come in
   * parts, because joining them takes longer than hashing them.
   */
  add(...parts: ReadonlyArray<string>): boolean {
    // cyrb53 without its final truncation, by bryc, public domain: two multiplicative hashes mixed into each other. Numbers stay
    // within 32 signed bits: beyond them they are doubles, with which this takes four times as long
    let high = 0xdeadbeef | 0
    let low = 0x41c6ce57
    for (const part of parts) {
      for (let i = 0; i < part.length; i++) {
        const char = part.charCodeAt(i)
        high = Math.imul(high ^ char, 2654435761)
        low = Math.imul(low ^ char, 1597334677)
      }
    }
    high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909)
    low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909)
    return this.#insert(high, low === 0 ? 1 : low)
  }

  #insert(high: number, low: number): boolean {
    if (this.#bits > 0 && high >>> (32 - this.#bits) !== this.#share) return false
    const slots = this.#slots
    const mask = slots.length / 2 - 1
    for (let slot = low & mask; ; slot = (slot + 1) & mask) {
      const stored = slots[2 * slot + 1]
      if (stored === low && slots[2 * slot] === high) return true
      if (stored !== 0) continue
      slots[2 * slot] = high
      slots[2 * slot + 1] = low
      // Up to three quarters full, a free slot is found in a few steps
      if (++this.#size > (mask + 1) * 0.75) this.#makeRoom()
      return false
    }
  }

  #makeRoom(): void {
    const before = this.#slots
    // Only the first reading divides the names into shares; the shares of the others are as large
    const divide = this.#share === 0 && this.#size >= this.#most
    if (divide) this.#bits++
    this.#slots = new Int32Array(divide ? before.length : before.length * 2)
    this.#size = 0
    for (let i = 0; i < before.length; i += 2) {
      const low = before[i + 1]
      if (low !== 0) this.#insert(before[i] ?? 0, low ?? 0)
    }
  }
}
