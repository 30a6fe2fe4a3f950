/** Checks the events of price alerts, with bookkeeping of its own. */
import type { PriceAlert } from "@millrace/core"
import type { Report } from "./Rules.ts"

interface Entry {
  readonly account: string
  readonly product: string
  target: string
  isActive: boolean
  /** Whether the last price that was noted is at the target; undefined before the first. */
  isLow: boolean
  falls: number
  /** Attempts by fall whose outcome allows another one; from when on. */
  readonly retries: Map<number, { readonly attempt: number; readonly from: number }>
  /** Falls whose mail may have arrived, or is given up. */
  readonly over: Set<number>
  sending: { readonly fall: number; readonly attempt: number } | undefined
}

/** Millionths, so that decimals are compared exactly. */
const exact = (price: string): bigint => {
  const [whole = "", fraction = ""] = price.split(".")
  return BigInt(whole + fraction.padEnd(6, "0"))
}

type Event = PriceAlert.PriceAlertEvent
type EventOf<Tag extends Event["_tag"]> = Extract<Event, { readonly _tag: Tag }>

export class AlertChecker {
  readonly #alerts = new Map<string, Entry>()
  readonly #report: Report

  constructor(report: Report) {
    this.#report = report
  }

  enter(alertId: string, event: Event, at: number): void {
    if (event._tag === "PriceAlertRegistered") return this.#registered(alertId, event)
    const alert = this.#alerts.get(alertId)
    if (alert === undefined) return this.#report("alert", "it was never registered")
    if (event._tag === "PriceAlertArmed") return this.#armed(alert, event)
    if (event._tag === "PriceAlertReached") return this.#reached(alert, event, at)
    if (event._tag === "PriceAlertEnded") {
      if (!alert.isActive) this.#report("alert", "it had ended")
      alert.isActive = false
      alert.retries.clear()
      return
    }
    if (event._tag === "AlertMailWithheld") {
      if (!alert.retries.delete(event.fall)) this.#report("alertMail", `no mail of fall ${event.fall} was due`)
      alert.over.add(event.fall)
      return
    }
    this.#mailed(alert, event, at)
  }

  #registered(alertId: string, { accountId, product, target }: EventOf<"PriceAlertRegistered">): void {
    const before = this.#alerts.get(alertId)
    if (before === undefined) {
      const fresh = { falls: 0, retries: new Map(), over: new Set<number>(), sending: undefined }
      this.#alerts.set(alertId, { account: accountId, product, target, isActive: true, isLow: false, ...fresh })
      return
    }
    if (before.account !== accountId || before.product !== product) this.#report("alert", "it is of another account or product")
    if (!before.isActive) before.isLow = false
    before.isActive = true
    before.target = target
  }

  #armed(alert: Entry, { observed }: EventOf<"PriceAlertArmed">): void {
    if (!alert.isActive) this.#report("alert", "it had ended")
    if (!alert.isLow || exact(observed.price) <= exact(alert.target))
      this.#report("alert", `${observed.price} is not above ${alert.target} anew`)
    alert.isLow = false
    alert.retries.clear()
  }

  #reached(alert: Entry, { fall, observed }: EventOf<"PriceAlertReached">, at: number): void {
    if (!alert.isActive) this.#report("alert", "it had ended")
    if (alert.isLow || exact(observed.price) > exact(alert.target)) this.#report("alert", `${observed.price} is no fall to ${alert.target}`)
    alert.falls += 1
    if (fall !== alert.falls) this.#report("alert", `it is fall ${alert.falls}, not ${fall}`)
    alert.isLow = true
    alert.retries.set(fall, { attempt: 1, from: at })
  }

  #mailed(alert: Entry, event: EventOf<"AlertMailSending" | "AlertMailSent" | "AlertMailRefused" | "AlertMailInDoubt">, at: number): void {
    const { attempt, fall } = event
    if (event._tag === "AlertMailSending") {
      const due = alert.retries.get(fall)
      if (alert.over.has(fall)) this.#report("alertMail", `the mail of fall ${fall} may have arrived`)
      else if (due?.attempt !== attempt || at < due.from || alert.sending !== undefined || !alert.isActive)
        this.#report("alertMail", `attempt ${attempt} of fall ${fall} was not due`)
      alert.retries.delete(fall)
      alert.sending = { fall, attempt }
      return
    }
    if (alert.sending?.fall !== fall || alert.sending.attempt !== attempt)
      this.#report("alertMail", `attempt ${attempt} of fall ${fall} was not being sent`)
    alert.sending = undefined
    if (event._tag === "AlertMailRefused" && event.retryAt !== null) alert.retries.set(fall, { attempt: attempt + 1, from: event.retryAt })
    else alert.over.add(fall)
  }
}
