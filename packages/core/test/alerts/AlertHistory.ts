/** What happened to one price alert in the order of its happening, and what of that must never be: a fall that is told twice, or never. */

/** The alert was registered, or its target replaced. `isSure`: the answer said so. */
export interface Registered {
  readonly _tag: "Registered"
  readonly target: number
  readonly isSure: boolean
}

/** A host read a price. `isSure`: it surely noted it. */
export interface Read {
  readonly _tag: "Read"
  readonly price: number
  readonly isSure: boolean
}

export interface Ended {
  readonly _tag: "Ended"
  readonly isSure: boolean
}

/** A mail was handed to the relay. `refused`: it did not arrive. */
export interface Mailed {
  readonly _tag: "Mailed"
  readonly id: string
  readonly price: number
  readonly target: number
  readonly fate: "sent" | "refused" | "lost"
}

/** Everything was quiet for long enough that what was due has happened. */
export interface Quiet {
  readonly _tag: "Quiet"
}

export type Act = Registered | Read | Ended | Mailed | Quiet

/** What is surely known; undefined where a fault came in between. */
interface Known {
  status: "active" | "ended" | undefined
  target: number | undefined
  price: number | "none" | undefined
  /** Whether a mail was handed to the relay since the price was above the target; undefined where nobody knows whether it was. */
  isTold: boolean | undefined
}

/** Every mistake in acts that followed one another. */
export const mistakesIn = (acts: ReadonlyArray<Act>): ReadonlyArray<string> => {
  const mistakes: Array<string> = []
  /** By message: whether it may have arrived. */
  const mails = new Map<string, boolean>()
  /** Falls that may have been and were not told yet: mails follow prices after a while. */
  let falls = 0
  /** Whether the alert may be armed. */
  let isArmed = true
  const known: Known = { status: "ended", target: undefined, price: "none", isTold: false }

  const mailed = ({ fate, id, price, target }: Mailed) => {
    if (mails.get(id) === true) mistakes.push(`${id} was sent again, and may have arrived`)
    if (!mails.has(id) && --falls < 0) mistakes.push(`${id} tells of a fall that was told`)
    if (price > target) mistakes.push(`${id} tells of ${price}, which is above ${target}`)
    if (known.status === "ended") mistakes.push(`${id} was sent after the alert had ended`)
    mails.set(id, fate !== "refused")
    known.isTold = true
  }

  /** What the alert makes of the price; of one that is not known, anything. */
  const compared = () => {
    const { price, status, target } = known
    if (status === "ended" || price === "none") return
    const isLow = price !== undefined && target !== undefined && status === "active" ? price <= target : undefined
    if (isLow !== false && isArmed) falls++
    if (isLow !== true) {
      isArmed = true
      known.isTold = isLow
    } else isArmed = false
  }

  const registered = ({ isSure, target }: Registered) => {
    const isAnew = known.status !== "active"
    const wasEnded = known.status === "ended"
    known.target = isSure ? target : undefined
    known.status = isSure ? "active" : isAnew ? undefined : "active"
    if (isAnew || !isSure) isArmed = true
    if (isAnew) known.isTold = known.status === "active" && wasEnded ? false : undefined
    compared()
  }

  const read = ({ isSure, price }: Read) => {
    known.price = isSure ? price : undefined
    compared()
  }

  const quiet = () => {
    const { isTold, price, status, target } = known
    if (status === "active" && target !== undefined && typeof price === "number" && price <= target && isTold === false)
      mistakes.push(`${price} was never told, and is at ${target}`)
  }

  for (const act of acts) {
    if (act._tag === "Mailed") mailed(act)
    else if (act._tag === "Registered") registered(act)
    else if (act._tag === "Read") read(act)
    else if (act._tag === "Ended") known.status = act.isSure ? "ended" : undefined
    else quiet()
  }
  return mistakes
}
