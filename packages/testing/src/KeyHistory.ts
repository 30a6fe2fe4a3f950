/**
 * What owners did with their API keys and how it ended, and what of that must never be: a key that is taken after it was revoked or has expired,
 * or refused before. For the tests of a host: record what happens, in any order and at once, and ask for the mistakes.
 */

/** When an act began and ended. `order`: by a count that grows with each of these; `time`: milliseconds since 1970. */
interface Timed {
  readonly order: readonly [began: number, ended: number]
  readonly time: readonly [began: number, ended: number]
}

/** An owner was told a new key. */
export interface Issued extends Timed {
  readonly _tag: "Issued"
  readonly key: string
  /** Milliseconds since 1970; null if it never ends. */
  readonly expiresAt: number | null
}

/** `isSure`: the answer said so. */
export interface Revoked extends Timed {
  readonly _tag: "Revoked"
  readonly key: string
  readonly isSure: boolean
}

/** Another key took the place of a key, which ends `overlap` milliseconds later. */
export interface Rotated extends Timed {
  readonly _tag: "Rotated"
  readonly key: string
  readonly overlap: number
  readonly isSure: boolean
}

/** A caller came with a key. `account`: as it was told, if it was let in. */
export interface Used extends Timed {
  readonly _tag: "Used"
  readonly key: string
  /** Whether its text is the key's. */
  readonly isRight: boolean
  readonly answer: "in" | "out" | "unknown"
}

export type Act = Issued | Revoked | Rotated | Used

/** Every mistake in these acts. `skew`: by how many milliseconds the clocks of hosts are ahead at most. */
export const mistakesIn = (acts: ReadonlyArray<Act>, skew = 0): ReadonlyArray<string> => {
  const mistakes: Array<string> = []
  const of = Map.groupBy(acts, ({ key }) => key)
  for (const [key, own] of of) {
    const issued = own.find((act) => act._tag === "Issued")
    const rotations = own.filter((act) => act._tag === "Rotated")
    const revocations = own.filter((act) => act._tag === "Revoked")
    if (rotations.filter(({ isSure }) => isSure).length > 1) mistakes.push(`${key} was rotated twice`)
    for (const act of own) {
      if (act._tag !== "Used" || act.answer === "unknown" || issued === undefined) continue
      const [from, until] = act.time
      if (act.answer === "in") {
        if (!act.isRight) mistakes.push(`${key} was taken with another secret`)
        if (revocations.some(({ isSure, order }) => isSure && order[1] < act.order[0]))
          mistakes.push(`${key} was used after it was revoked`)
        if (issued.expiresAt !== null && from >= issued.expiresAt) mistakes.push(`${key} was used after its expiry`)
        if (rotations.some(({ isSure, overlap, time }) => isSure && from > time[1] + overlap + skew))
          mistakes.push(`${key} was used after it was replaced`)
        continue
      }
      const hasEnded =
        !act.isRight ||
        issued.order[1] > act.order[0] ||
        revocations.some(({ order }) => order[0] < act.order[1]) ||
        (issued.expiresAt !== null && until + skew >= issued.expiresAt) ||
        rotations.some(({ order, overlap, time }) => order[0] < act.order[1] && time[0] + overlap <= until + skew)
      if (!hasEnded) mistakes.push(`${key} was refused, and had not ended`)
    }
  }
  return mistakes
}
