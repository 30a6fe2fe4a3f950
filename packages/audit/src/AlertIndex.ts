/** The price alerts in the log, as far as it was read. */
import { PriceAlert } from "@millrace/core"
import type { StreamName } from "@millrace/event-sourcing"
import { noAmount } from "./Means.ts"
import { iso, type Problems, type Replay, type ReportProblem } from "./Report.ts"
import type { RuleName } from "./rules/Catalog.ts"

/** The outcome of a mail is written so long after it was due, and an account's last mail sent after its end, at the latest: milliseconds. */
const MARGIN = 60 * 60_000

const NOBODY = noAmount("nobody asked for the mails of this alert")
const UNASKED = noAmount("somebody whose account was closed may have got a mail")
const UNTOLD = noAmount("whether a mail of the alert arrived is not in the log")

/** What is known of an account. */
export interface Holder {
  /** Or its stream cannot be replayed. */
  readonly isOpened: boolean
  /** Milliseconds since 1970, if it was. */
  readonly closedAt: number | undefined
}

export class AlertIndex {
  readonly #sending = new Map<string, { readonly account: string; readonly at: number; readonly position: string }>()
  readonly #holderOf: (accountId: string) => Holder

  constructor(holderOf: (accountId: string) => Holder) {
    this.#holderOf = holderOf
  }

  begin(stream: StreamName.StreamName, report: ReportProblem): Replay {
    const { codec, evolve, initial } = PriceAlert.PriceAlert
    let alert: PriceAlert.PriceAlert = initial
    return (type, data, at, position) => {
      const event = codec.decode(type, data)
      alert = evolve(alert, event, at)
      const account = alert.terms?.accountId ?? ""
      if (event._tag === "PriceAlertRegistered" && !this.#holderOf(account).isOpened)
        report("alert-is-of-an-account" satisfies RuleName, "the account was not opened", () => ({ account, ...NOBODY }))
      if (event._tag === "AlertMailSending") this.#sent(account, at, report)
      if (alert.sending === undefined) this.#sending.delete(stream)
      else this.#sending.set(stream, { account, at: alert.sending.at, position })
    }
  }

  #sent(account: string, at: number, report: ReportProblem): void {
    const { closedAt } = this.#holderOf(account)
    if (closedAt !== undefined && closedAt + MARGIN <= at)
      report("alert-mail-goes-to-an-account" satisfies RuleName, `the account was closed at ${iso(closedAt)}`, () => ({
        account,
        ...UNASKED
      }))
  }

  /** Forgets an alert whose stream cannot be replayed further. */
  lost(stream: StreamName.StreamName): void {
    this.#sending.delete(stream)
  }

  /** Reports mails that at `now` were sent long before, and have no outcome. */
  reportOverdue(now: number, problems: Problems): void {
    for (const [stream, { account, at, position }] of this.#sending)
      if (at + PriceAlert.DOUBT_AFTER + MARGIN <= now)
        problems.add({ position, stream }, "alert-mail-has-an-outcome", `it was sent at ${iso(at)}`, () => ({ account, ...UNTOLD }))
  }
}
