/**
 * Finds names that occur twice in a log of any length, in bounded memory: a set of 64-bit fingerprints of eight bytes each. A name with the
 * fingerprint of an earlier one is only a suspect, and so is that earlier one. Reading the log again compares the full names of suspects,
 * so the answer is exact.
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
  /**
   * The newest fingerprints, two words each, which are not in the table yet. The table is larger than the processor's caches, so a lookup
   * waits for memory. Lookups right after each other wait at the same time, which halves the time of a name.
   */
  readonly #added = new Int32Array(2 * 512)
  #addedWords = 0
  /** Fingerprints that were added more than once. */
  readonly #suspects = new Set<number>()

  constructor(most: number = UniqueNames.MOST) {
    this.#most = most
  }

  /** The number of shares, known after the first reading: each takes one reading of the log. */
  get shares(): number {
    this.#lookUpAdded()
    return 2 ** this.#bits
  }

  /** Forgets all names but the suspects, and begins another share. */
  begin(share: number): void {
    this.#lookUpAdded()
    this.#share = share
    this.#slots.fill(0)
    this.#size = 0
  }

  /** Adds a name; one of another share has no effect. */
  add(name: string, beginning: Beginning = NO_BEGINNING): void {
    this.#addedWords = writeFingerprint(beginning, name, this.#added, this.#addedWords)
    if (this.#addedWords === this.#added.length) this.#lookUpAdded()
  }

  /** Whether any name was added twice, or two names have the same fingerprint. */
  get hasSuspects(): boolean {
    this.#lookUpAdded()
    return this.#suspects.size > 0
  }

  /** Whether a name, or one with its fingerprint, was added more than once. */
  isSuspect(name: string, beginning: Beginning = NO_BEGINNING): boolean {
    this.#lookUpAdded()
    const added = this.#added
    writeFingerprint(beginning, name, added, 0)
    return this.#suspects.has(suspectOf(added[0] ?? 0, added[1] ?? 0))
  }

  #lookUpAdded(): void {
    const added = this.#added
    const words = this.#addedWords
    this.#addedWords = 0
    for (let i = 0; i < words; i += 2) this.#insert(added[i] ?? 0, added[i + 1] ?? 0)
  }

  #insert(high: number, low: number): void {
    if (this.#bits > 0 && high >>> (32 - this.#bits) !== this.#share) return
    const slots = this.#slots
    const mask = slots.length / 2 - 1
    for (let slot = low & mask; ; slot = (slot + 1) & mask) {
      const stored = slots[2 * slot + 1]
      if (stored === low && slots[2 * slot] === high) {
        this.#suspects.add(suspectOf(high, low))
        return
      }
      if (stored !== 0) continue
      slots[2 * slot] = high
      slots[2 * slot + 1] = low
      // Up to three quarters full, a free slot is found in a few steps
      if (++this.#size > (mask + 1) * 0.75) this.#makeRoom()
      return
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

/** How names begin, read once for all of them: what is known of their fingerprints so far. */
export interface Beginning {
  readonly high: number
  readonly low: number
}

const NO_BEGINNING: Beginning = { high: 0xdeadbeef | 0, low: 0x41c6ce57 }

/** The beginning of many names: `add(b, beginningOf(a))` adds the name `ab`. */
export const beginningOf = (text: string): Beginning => readOn(NO_BEGINNING, text)

/**
 * Fingerprints are cyrb53 without its final truncation, by bryc, public domain: two multiplicative hashes mixed into each other. Numbers stay
 * within 32 signed bits: beyond them they are doubles, with which this takes four times as long.
 */
const readOn = ({ high, low }: Beginning, text: string): Beginning => {
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i)
    high = Math.imul(high ^ char, 2654435761)
    low = Math.imul(low ^ char, 1597334677)
  }
  return { high, low }
}

/** Writes the fingerprint of a name after its beginning: two words, of which the second is not zero. Returns the place after it. */
const writeFingerprint = (beginning: Beginning, name: string, into: Int32Array, at: number): number => {
  let { high, low } = readOn(beginning, name)
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909)
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909)
  into[at] = high
  into[at + 1] = low === 0 ? 1 : low
  return at + 2
}

/** The first 53 bits of a fingerprint, which a number holds exactly. Names that share only these are suspects too, which harms nothing. */
const suspectOf = (high: number, low: number): number => (high >>> 0) * 2 ** 21 + (low >>> 11)
