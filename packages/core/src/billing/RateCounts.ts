/**
 * Counts calls in windows, with the counts of other hosts. Windows are numbered from 1970 on, so all hosts mean the same ones. If hosts
 * together admit more calls in a window than the limit, because they did not know of each other's calls yet, the excess is a debt of the
 * key, which counts in the following windows.
 */

/** The calls of a key that one host admitted, as of a window. */
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

/** The counts of one key: of this host, and of the others as far as they told. */
export interface Tally extends Share {
  readonly key: string
  window: number
  calls: number
  before: number
  debt: number
  /** That of the window before. */
  debtBefore: number
  heard: number
  heardBefore: number
  /** Calls ever admitted here, and how many of them the others know of. Calls of past windows count as known. */
  admitted: number
  told: number
}

export interface Counts {
  /** What is known of a key, as of the window that is under way; it is remembered from now on. */
  readonly remember: (key: string, now: number) => Tally
  /** The same, if there is anything. */
  readonly find: (key: string, now: number) => Tally | undefined
  /** Brings it to the window that is under way. */
  readonly settle: (tally: Tally, now: number) => void
  /** What counts in the window: admitted here and elsewhere, and owed. */
  readonly total: (tally: Tally) => number
  /** From when on less than the limit counts, or nothing of this window: milliseconds since 1970. */
  readonly freeAt: (tally: Tally) => number
  /** Takes in what other hosts told of the key. */
  readonly hear: (tally: Tally, shares: ReadonlyArray<Share>, now: number) => void
  readonly windowAt: (now: number) => number
  /** When it begins, in milliseconds since 1970. */
  readonly startOf: (window: number) => number
  /** Keys that are remembered. */
  readonly size: () => number
}

export interface Options {
  readonly limit: number
  /** Milliseconds. */
  readonly length: number
}

/**
 * The most keys in memory: clients without an account choose theirs. A key is kept for at least a window after its last call; beyond this
 * number, the keys that were not used for longest are forgotten early.
 */
export const KEYS = 200_000

/** Counts one call that is admitted. */
export const admit = (tally: Tally): void => {
  tally.calls++
  tally.admitted++
}

/** Calls that the others were not told of. */
export const untold = ({ admitted, told }: Tally): number => admitted - told

export const make = ({ limit, length }: Options, since: number, keys = KEYS): Counts => {
  let recent = new Map<string, Tally>()
  let older = new Map<string, Tally>()

  const windowAt = (now: number): number => Math.floor(now / length)
  const startOf = (window: number): number => window * length
  const total = ({ debt, calls, heard }: Tally): number => debt + calls + heard
  /** What is owed so many windows after it. */
  const debtAfter = (tally: Tally, windows: number): number => Math.max(0, total(tally) - windows * limit)

  const settle = (tally: Tally, now: number): void => {
    const window = windowAt(now)
    const passed = window - tally.window
    // A clock that is set back by less than a window shortens none
    if (passed === 0 || passed === -1) return
    const isNext = passed === 1
    const isPast = passed > 0
    Object.assign(tally, {
      window,
      debtBefore: isNext ? tally.debt : isPast ? debtAfter(tally, passed - 1) : 0,
      debt: isPast ? debtAfter(tally, passed) : 0,
      before: isNext ? tally.calls : 0,
      heardBefore: isNext ? tally.heard : 0,
      calls: 0,
      heard: 0,
      told: tally.admitted
    })
  }

  const turn = (now: number): void => {
    const forgotten = now - since < 2 * length ? [older] : [older, recent]
    older = forgotten.length === 1 ? recent : new Map()
    recent = new Map()
    since = now
    for (const tallies of forgotten)
      for (const [key, tally] of tallies) {
        settle(tally, now)
        // A key in debt is kept, though nobody asked for it
        if (tally.debt > 0 && !older.has(key)) older.set(key, tally)
      }
  }

  const find = (key: string, now: number): Tally | undefined => {
    const tally = recent.get(key) ?? older.get(key)
    if (tally !== undefined) settle(tally, now)
    return tally
  }

  const begin = (key: string, now: number): Tally => ({
    key,
    window: windowAt(now),
    calls: 0,
    before: 0,
    debt: 0,
    debtBefore: 0,
    heard: 0,
    heardBefore: 0,
    admitted: 0,
    told: 0
  })

  const remember = (key: string, now: number): Tally => {
    if (now < since || now - since >= length) turn(now)
    const known = recent.get(key)
    if (known !== undefined) {
      settle(known, now)
      return known
    }
    const tally = find(key, now) ?? begin(key, now)
    if (recent.size >= keys / 2) {
      older = recent
      recent = new Map()
    }
    recent.set(key, tally)
    return tally
  }

  const freeAt = (tally: Tally): number => startOf(tally.window + 1 + Math.floor(debtAfter(tally, 1) / limit))

  const hear = (tally: Tally, shares: ReadonlyArray<Share>, now: number): void => {
    settle(tally, now)
    let { debt, debtBefore } = tally
    let heard = 0
    let heardBefore = 0
    for (const share of shares) {
      switch (share.window - tally.window) {
        case 0:
          heard += share.calls
          heardBefore += share.before
          debt = Math.max(debt, share.debt)
          break
        case -1:
          heardBefore += share.calls
          debtBefore = Math.max(debtBefore, share.debt)
          break
        // A clock that is a little ahead
        case 1:
          heard += share.before
          break
      }
    }
    tally.heard = Math.max(tally.heard, heard)
    tally.heardBefore = Math.max(tally.heardBefore, heardBefore)
    tally.debtBefore = debtBefore
    tally.debt = Math.max(debt, debtBefore + tally.before + tally.heardBefore - limit)
  }

  return { remember, find, settle, total, freeAt, hear, windowAt, startOf, size: () => recent.size + older.size }
}
