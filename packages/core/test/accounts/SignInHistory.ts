/** What people did with links and sessions and how it ended, and what of that must never be: a link that admits twice, a session after its end. */

/** A mailed link was followed. */
export interface Followed {
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

/** All sessions of an account were ended. `isSure`: the answer said so. */
export interface SignedOut {
  readonly _tag: "SignedOut"
  readonly account: string
  readonly isSure: boolean
}

/** A session was used. */
export interface Called {
  readonly _tag: "Called"
  readonly session: string
  readonly account: string
  readonly answer: "in" | "out" | "unknown"
}

export type Act = Followed | SignedOut | Called

/** Every mistake in acts that followed one another. */
export const mistakesIn = (acts: ReadonlyArray<Act>): ReadonlyArray<string> => {
  const mistakes: Array<string> = []
  /** Whether a link was used: surely, or perhaps. */
  const used = new Map<string, "used" | "perhaps">()
  const accounts = new Map<string, string>()
  /** Sessions that surely ended, and the account of each that did not. */
  const ended = new Set<string>()
  const open = new Map<string, string>()

  const followed = ({ account = "", address, answer, isInTime, isRightBrowser, link, session = "" }: Followed) => {
    const before = used.get(link)
    if (answer === "unknown") return void used.set(link, before ?? "perhaps")
    if (answer === "refused") {
      if (isRightBrowser && isInTime === true && before === undefined) mistakes.push(`${link} was refused, and was good`)
      return
    }
    if (before === "used") mistakes.push(`${link} admitted twice`)
    if (!isRightBrowser) mistakes.push(`${link} admitted another browser`)
    if (isInTime === false) mistakes.push(`${link} admitted after its time`)
    used.set(link, "used")
    const known = accounts.get(address) ?? account
    if (known !== account) mistakes.push(`${address} has two accounts`)
    accounts.set(address, account)
    open.set(session, account)
  }

  const signedOut = ({ account, isSure }: SignedOut) => {
    for (const [session, owner] of open) {
      if (owner !== account) continue
      open.delete(session)
      if (isSure) ended.add(session)
    }
  }

  const called = ({ account, answer, session }: Called) => {
    if (answer === "in" && ended.has(session)) mistakes.push(`${session} was used after its end`)
    if (answer === "out" && open.get(session) === account) mistakes.push(`${session} was refused, and had not ended`)
  }

  for (const act of acts) {
    if (act._tag === "Followed") followed(act)
    else if (act._tag === "SignedOut") signedOut(act)
    else called(act)
  }
  return mistakes
}
