/**
 * Counts calls in windows, including those at other hosts. Windows are numbered from 1970, so they are the same at all hosts. If hosts
 * together admit more calls in a window than the limit, before they have each other's counts, the excess is a debt of the key, which counts
 * in the following windows.
 */
import type { Mutable } from "effect/Types"

/** The calls of a key that one host admitted in a window. */
export interface Share {
  /** The number of the window. */
  readonly window: number
  /** Calls in it. */
  readonly calls: number
  /** Calls in the window before. */
  readonly before: number
  /** The excess of earlier windows, which counts in this one. */
  readonly debt: number
}

/** The counts of one key: those of this host, and those that other hosts have reported (`elsewhere`). */
export interface Tally extends Mutable<Share> {
  readonly key: string
  /** The debt in the window before. */
  debtBefore: number
  elsewhere: number
  elsewhereBefore: number
  /** All calls admitted here, and how many of them were reported to other hosts (`reported`). Calls of past windows count as reported. */
  admitted: number
  reported: number
}

/**
 * The most keys in memory, as clients without an account choose their key. A key is kept for at least a window after its last call; beyond
 * this number, the least recently used keys are dropped early.
 */
export const KEYS = 200_000

/** Counts one call that is admitted. */
export const admit = (tally: Tally): void => {
  tally.calls++
  tally.admitted++
}

/** Calls not yet reported to other hosts. */
export const unreported = ({ admitted, reported }: Tally): number => admitted - reported

/** The counts of all keys of this host. */
export class Counts {
  readonly limit: number
  readonly #length: number
  readonly #keys: number
  #since: number
  #recent = new Map<string, Tally>()
  #older = new Map<string, Tally>()

  /** `length`: of a window, milliseconds. */
  constructor({ limit, length }: { readonly limit: number; readonly length: number }, since: number, keys = KEYS) {
    this.limit = limit
    this.#length = length
    this.#since = since
    this.#keys = keys
  }

  /** Keys in memory. */
  get size(): number {
    return this.#recent.size + this.#older.size
  }

  windowAt(now: number): number {
    return Math.floor(now / this.#length)
  }

  /** When a window begins, in milliseconds since 1970. */
  startOf(window: number): number {
    return window * this.#length
  }

  /** The calls that count in the window: admitted at all hosts, plus the debt. */
  total({ debt, calls, elsewhere }: Tally): number {
    return debt + calls + elsewhere
  }

  /** When the limit next admits a call that it refuses now: milliseconds since 1970. */
  freeAt(tally: Tally): number {
    return this.startOf(tally.window + 1 + Math.floor(this.#debtAfter(tally, 1) / this.limit))
  }

  /** The debt that remains `windows` windows later. */
  #debtAfter(tally: Tally, windows: number): number {
    return Math.max(0, this.total(tally) - windows * this.limit)
  }

  /** Moves a tally to the current window. */
  settle(tally: Tally, now: number): void {
    const window = this.windowAt(now)
    const passed = window - tally.window
    // A clock set back by less than a window changes nothing
    if (passed === 0 || passed === -1) return
    const isNext = passed === 1
    const isPast = passed > 0
    Object.assign(tally, {
      window,
      debtBefore: isNext ? tally.debt : isPast ? this.#debtAfter(tally, passed - 1) : 0,
      debt: isPast ? this.#debtAfter(tally, passed) : 0,
      before: isNext ? tally.calls : 0,
      elsewhereBefore: isNext ? tally.elsewhere : 0,
      calls: 0,
      elsewhere: 0,
      reported: tally.admitted
    })
  }

  /** The tally of a key in the current window; undefined if there is none. */
  find(key: string, now: number): Tally | undefined {
    const tally = this.#recent.get(key) ?? this.#older.get(key)
    if (tally !== undefined) this.settle(tally, now)
    return tally
  }

  /** The tally of a key in the current window. Keeps the key in memory. */
  remember(key: string, now: number): Tally {
    if (now < this.#since || now - this.#since >= this.#length) this.#turn(now)
    const tally = this.find(key, now) ?? emptyTally(key, this.windowAt(now))
    if (this.#recent.has(key)) return tally
    if (this.#recent.size >= this.#keys / 2) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(key, tally)
    return tally
  }

  #turn(now: number): void {
    const forgotten = now - this.#since < 2 * this.#length ? [this.#older] : [this.#older, this.#recent]
    this.#older = forgotten.length === 1 ? this.#recent : new Map()
    this.#recent = new Map()
    this.#since = now
    for (const tallies of forgotten)
      for (const [key, tally] of tallies) {
        this.settle(tally, now)
        // A debt outlives the memory of its key
        if (tally.debt > 0 && !this.#older.has(key)) this.#older.set(key, tally)
      }
  }

  /** Adds the reports of other hosts to a tally. */
  merge(tally: Tally, shares: ReadonlyArray<Share>, now: number): void {
    this.settle(tally, now)
    let { debt, debtBefore } = tally
    let elsewhere = 0
    let elsewhereBefore = 0
    for (const share of shares) {
      switch (share.window - tally.window) {
        case 0:
          elsewhere += share.calls
          elsewhereBefore += share.before
          debt = Math.max(debt, share.debt)
          break
        case -1:
          elsewhereBefore += share.calls
          debtBefore = Math.max(debtBefore, share.debt)
          break
        // The other host's clock is a little ahead
        case 1:
          elsewhere += share.before
          break
      }
    }
    tally.elsewhere = Math.max(tally.elsewhere, elsewhere)
    tally.elsewhereBefore = Math.max(tally.elsewhereBefore, elsewhereBefore)
    tally.debtBefore = debtBefore
    tally.debt = Math.max(debt, debtBefore + tally.before + tally.elsewhereBefore - this.limit)
  }
}

export const emptyTally = (key: string, window: number): Tally => ({
  key,
  window,
  calls: 0,
  before: 0,
  debt: 0,
  debtBefore: 0,
  elsewhere: 0,
  elsewhereBefore: 0,
  admitted: 0,
  reported: 0
})
