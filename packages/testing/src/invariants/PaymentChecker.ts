/** Checks the events of payments made here, and the credits that follow from them, with bookkeeping of its own. */
import type { AccountEvent, Payment } from "@millrace/core"
import type { Report } from "./Rules.ts"

/** The terms of a payment, and what became of its money. */
interface Entry {
  readonly accountId: string
  readonly gateway: string
  readonly currency: string
  /** Hundredths of a percent that the amount includes as tax, and where it is owed. */
  readonly tax: { readonly rate: number; readonly region: string } | undefined
  readonly amount: number
  readonly credits: number
  /** Where it stands: a later word is never followed by an earlier one. */
  reached: "requested" | "authorized" | "failed" | "captured"
  captured: number
  readonly refunds: Map<string, { readonly amount: number; readonly failed: boolean }>
  readonly disputes: Map<string, { readonly amount: number; status: "open" | "lost" | "won" }>
  /** What the account is to have given back, in thousandths: after the capture, and after each time that this changed. */
  readonly back: Array<number>
  /** The money that the host has of it: nothing at first, then after each time that this changed. */
  readonly kept: Array<number>
}

const ORDER = ["requested", "authorized", "failed", "captured"]

type Of<Tag extends Payment.PaymentEvent["_tag"]> = Extract<Payment.PaymentEvent, { readonly _tag: Tag }>

/** Money that goes back, or comes again. */
type Returning = Of<"PaymentRefunded" | "PaymentRefundFailed" | "PaymentDisputed" | "PaymentDisputeWon" | "PaymentDisputeLost">

export class PaymentChecker {
  /** By the lot that each buys. */
  readonly #entries = new Map<string, Entry>()
  readonly #hasPayments: boolean
  readonly #report: Report

  constructor(hasPayments: boolean, report: Report) {
    this.#hasPayments = hasPayments
    this.#report = report
  }

  enter(id: string, event: Payment.PaymentEvent): void {
    // A payment made elsewhere has nothing but its claim
    if (event._tag === "PaymentClaimed") return
    const lotId = `lot_${id}`
    const entry = this.#entries.get(lotId)
    if (event._tag === "PaymentRequested") return this.#requested(lotId, entry, event)
    if (entry === undefined) return this.#report("payment", "it was never requested")
    if (event._tag === "PaymentBegun") return
    if (event._tag === "PaymentAuthorized") return this.#reach(entry, "authorized")
    if (event._tag === "PaymentFailed") return this.#reach(entry, "failed")
    if (event._tag === "PaymentCaptured") {
      this.#reach(entry, "captured")
      entry.captured = event.amount
      return keep(entry)
    }
    if (entry.reached !== "captured") return this.#report("payment", "it was not captured")
    if (event._tag !== "PaymentNotGranted") this.#returned(entry, event)
  }

  #requested(lotId: string, entry: Entry | undefined, event: Of<"PaymentRequested">): void {
    const { accountId, amount, credits, currency, gateway, tax } = event
    if (entry !== undefined) this.#report("payment", "it was requested before")
    const nothing = { captured: 0, refunds: new Map<string, never>(), disputes: new Map<string, never>(), back: [0], kept: [0] }
    this.#entries.set(lotId, { ...nothing, reached: "requested", accountId, amount, credits, currency, gateway, tax })
  }

  #reach(entry: Entry, where: Entry["reached"]): void {
    if (ORDER.indexOf(where) <= ORDER.indexOf(entry.reached)) this.#report("payment", `it was ${entry.reached}`)
    entry.reached = where
  }

  #returned(entry: Entry, event: Returning): void {
    const { disputes, refunds } = entry
    const { reference } = event
    const dispute = disputes.get(reference)
    if (event._tag === "PaymentRefunded") {
      if (refunds.has(reference)) this.#report("payment", `${reference} went back before`)
      refunds.set(reference, { amount: event.amount, failed: false })
    } else if (event._tag === "PaymentRefundFailed") {
      const refund = refunds.get(reference)
      if (refund === undefined || refund.failed)
        return this.#report("payment", `${reference} ${refund === undefined ? "never went back" : "has failed before"}`)
      refunds.set(reference, { ...refund, failed: true })
    } else if (event._tag === "PaymentDisputed") {
      if (dispute !== undefined) this.#report("payment", `${reference} was opened before`)
      disputes.set(reference, { amount: event.amount, status: "open" })
    } else {
      const status = event._tag === "PaymentDisputeWon" ? "won" : "lost"
      if (dispute === undefined || dispute.status === "won" || dispute.status === status)
        return this.#report("payment", `${reference} is ${dispute?.status ?? "not open"}`)
      dispute.status = status
    }
    const now = backOf(entry)
    if (now !== entry.back.at(-1)) entry.back.push(now)
    keep(entry)
  }

  /** A payment by the id of its stream; undefined if it was not requested here. */
  of(id: string): Entry | undefined {
    return this.#entries.get(`lot_${id}`)
  }

  /** Checks an account event against the payment that it follows. */
  follow(accountId: string, event: AccountEvent): void {
    if (!this.#hasPayments || !("lotId" in event)) return
    const entry = this.#entries.get(event.lotId)
    if (entry === undefined) return
    if (event._tag === "CreditsGranted") {
      if (entry.accountId !== accountId) this.#report("paymentCredits", `it is of ${entry.accountId}`)
      if (entry.reached !== "captured") this.#report("paymentCredits", `it is ${entry.reached}`)
      else if (event.amount !== boughtBy(entry)) this.#report("paymentCredits", `it bought ${boughtBy(entry)}`)
      return
    }
    if ((event._tag !== "CreditsClawedBack" && event._tag !== "ClawbackReversed") || event.change === undefined) return
    const [before, after] = [entry.back[event.change - 1], entry.back[event.change]]
    if (before === undefined || after === undefined)
      return this.#report("paymentCredits", `its money changed ${entry.back.length - 1} times`)
    const due = event._tag === "CreditsClawedBack" ? after - before : before - after
    // A lot that an administrator took back by hand has less to give
    if (event.amount > due) this.#report("paymentCredits", `change ${event.change} is of ${due}`)
  }
}

/** In proportion, where less was captured than asked for. */
const boughtBy = ({ amount, captured, credits }: Entry): number => Math.floor(credits * Math.min(1, captured / amount))

/** Money that went back: at most what was captured. */
const goneOf = ({ captured, disputes, refunds }: Entry): number => {
  let gone = 0
  for (const { amount, failed } of refunds.values()) if (!failed) gone += amount
  for (const { amount, status } of disputes.values()) if (status !== "won") gone += amount
  return Math.min(gone, captured)
}

const backOf = (entry: Entry): number => (entry.captured === 0 ? 0 : Math.floor((boughtBy(entry) * goneOf(entry)) / entry.captured))

const keep = (entry: Entry): void => {
  const now = entry.captured - goneOf(entry)
  if (now !== entry.kept.at(-1)) entry.kept.push(now)
}
