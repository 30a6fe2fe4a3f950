/**
 * What people did with links and sessions and how it ended, and what of that must never be: a link that admits twice, a session after its end.
 * For the tests of a host: record what its people do, in any order and at once, and ask for the mistakes.
 */

/** When an act began and ended, by a count that grows with each of these. Without them acts follow one another. */
interface Timed {
  readonly began?: number
  readonly ended?: number
}

/** Someone signed up: a session of an account whose address is not proved, and a link. */
export interface SignedUp extends Timed {
  readonly _tag: "SignedUp"
  /** The link that was mailed, if it is known. */
  readonly link: string
  readonly account: string
  readonly session: string
}

/** A mailed link was followed. */
export interface Followed extends Timed {
  readonly _tag: "Followed"
  readonly link: string
  readonly address: string
  /** Whether the browser is the one that asked. */
  readonly isRightBrowser: boolean
  /** `unclear` where it expired meanwhile. */
  readonly isInTime: boolean | "unclear"
  /** `unknown`: a fault came in between, and the link may be used up. */
  readonly answer: "admitted" | "refused" | "unknown"
  readonly account?: string
  readonly session?: string
}

/** All sessions of an account were ended, or one of them. `isSure`: the answer said so. */
export interface SignedOut extends Timed {
  readonly _tag: "SignedOut"
  readonly account: string
  /** Absent: all that were open. */
  readonly session?: string
  readonly isSure: boolean
}

/** A session was used. */
export interface Called extends Timed {
  readonly _tag: "Called"
  readonly session: string
  readonly account: string
  /** `unclear` where it may have expired; before its expiry by default. */
  readonly isInTime?: boolean | "unclear"
  readonly answer: "in" | "out" | "unknown"
}

export type Act = SignedUp | Followed | SignedOut | Called

type Span<A> = A extends Act ? Omit<A, "began" | "ended"> & { readonly began: number; readonly ended: number } : never

/** An act that opened a session. */
type Opening = Span<SignedUp> | Span<Followed>

class Histories {
  readonly mistakes: Array<string> = []
  readonly #follows: ReadonlyArray<Span<Followed>>
  readonly #signOuts: ReadonlyArray<Span<SignedOut>>
  readonly #openings = new Map<string, Opening>()
  readonly #accounts = new Map<string, string>()
  readonly #admitted = new Set<string>()

  constructor(acts: ReadonlyArray<Span<Act>>) {
    this.#follows = acts.filter((act): act is Span<Followed> => act._tag === "Followed")
    this.#signOuts = acts.filter((act): act is Span<SignedOut> => act._tag === "SignedOut")
    for (const act of acts)
      if ((act._tag === "SignedUp" || act._tag === "Followed") && act.session !== undefined) this.#openings.set(act.session, act)
  }

  check(act: Span<Act>): void {
    if (act._tag === "Followed") this.#followed(act)
    if (act._tag === "Called") this.#called(act)
  }

  #followed(act: Span<Followed>): void {
    const { account = "", address, answer, isInTime, isRightBrowser, link } = act
    if (answer === "unknown") return
    if (answer === "refused") {
      const isUsed = this.#follows.some(
        (other) => other !== act && other.link === link && other.answer !== "refused" && other.began < act.ended
      )
      if (isRightBrowser && isInTime === true && !isUsed) this.mistakes.push(`${link} was refused, and was good`)
      return
    }
    if (this.#admitted.has(link)) this.mistakes.push(`${link} admitted twice`)
    if (!isRightBrowser) this.mistakes.push(`${link} admitted another browser`)
    if (isInTime === false) this.mistakes.push(`${link} admitted after its time`)
    this.#admitted.add(link)
    const known = this.#accounts.get(address) ?? account
    if (known !== account) this.mistakes.push(`${address} has two accounts`)
    this.#accounts.set(address, account)
  }

  #called({ account, answer, began, ended, isInTime = true, session }: Span<Called>): void {
    const opening = this.#openings.get(session)
    if (opening === undefined || answer === "unknown") return
    const ends = this.#signOuts.filter((out) => out.account === account && (out.session ?? session) === session)
    if (answer === "in") {
      const hasEnded = ends.some((out) => out.isSure && out.began > opening.ended && out.ended < began)
      if (hasEnded) this.mistakes.push(`${session} was used after its end`)
      if (isInTime === false) this.mistakes.push(`${session} was used after its time`)
      if (opening.account !== account) this.mistakes.push(`${session} is of ${opening.account}, and was used for ${account}`)
      return
    }
    const mayHaveEnded = isInTime !== true || ends.some((out) => out.began < ended && out.ended > opening.began)
    if (opening.ended < began && !mayHaveEnded && !this.#isGivenUp(opening, ended))
      this.mistakes.push(`${session} was refused, and had not ended`)
  }

  /** Whether the account of a sign-up may have ended, because its address has another one. */
  #isGivenUp(opening: Opening, until: number): boolean {
    if (opening._tag !== "SignedUp") return false
    return this.#follows.some(
      ({ account, answer, began, link }) =>
        link === opening.link && began < until && (answer === "unknown" || (answer === "admitted" && account !== opening.account))
    )
  }
}

/** Every mistake in acts that followed one another, or went on at once where they say so. */
export const mistakesIn = (acts: ReadonlyArray<Act>): ReadonlyArray<string> => {
  const spans = acts.map((act, i): Span<Act> => ({ ...act, began: act.began ?? i, ended: act.ended ?? i }))
  const histories = new Histories(spans)
  for (const act of spans) histories.check(act)
  return histories.mistakes
}
