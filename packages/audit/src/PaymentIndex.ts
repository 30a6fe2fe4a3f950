/** The payments in the log, as far as it was read, and whether their accounts have what follows from them. */
import { Account, Decisions, lotsOf, ManualGateway, ManualPayment, Payment } from "@millrace/core"
import { StreamName } from "@millrace/event-sourcing"
import { Result } from "effect"
import type { InvoiceIndex } from "./InvoiceIndex.ts"
import { noAmount, type Say, type Stake } from "./Means.ts"
import type { Problems, Replay, ReportProblem } from "./Report.ts"
import type { RuleName } from "./rules/Catalog.ts"

/** The credits of a payment follow its newest event so long after it, at the latest: milliseconds. */
const MARGIN = 5 * 60_000

/** A lot of a payment made here: what it buys, or its bonus. */
export interface PaidLot {
  readonly order: Payment.Order
  readonly part: "paid" | "bonus"
}

interface Known {
  readonly order: Payment.Order
  readonly at: number
  readonly position: string
}

const UNAPPROVED = noAmount("no operator said that the money of this payment had come")

export class PaymentIndex {
  /** By the lot that each buys. */
  readonly #orders = new Map<string, Known>()
  /** The lots of their bonuses, with the lots that they go with. */
  readonly #bonuses = new Map<string, string>()
  /** The lots of payments whose streams cannot be replayed further. */
  readonly #doubtful = new Set<string>()
  /** What operators said of manual payments. */
  readonly #manual = new Map<string, ManualPayment.ManualPayment["status"] | "unknown">()

  readonly #invoices: InvoiceIndex

  constructor(invoices: InvoiceIndex) {
    this.#invoices = invoices
  }

  begin(stream: StreamName.StreamName, report: ReportProblem): Replay {
    const { codec, evolve, initial } = Payment.Payment
    const lotId = lotOf(stream)
    let payment: Payment.Payment = initial
    return (type, data, at, position, _, id) => {
      const event = codec.decode(type, data)
      const before = payment.order
      payment = evolve(payment, event, at)
      const { order } = payment
      if (order === undefined) return
      this.#invoices.learn(before, order, { event, id, at }, position)
      this.#orders.set(lotId, { order, at, position })
      if (event._tag === "PaymentRequested") this.#bonuses.set(Payment.bonusLotIdOf(order.paymentId), lotId)
      if (event._tag === "PaymentCaptured") this.#captured(order, report)
    }
  }

  #captured({ accountId: account, gateway, paymentId }: Payment.Order, report: ReportProblem): void {
    if (gateway !== ManualGateway.NAME) return
    const said = this.#manual.get(paymentId) ?? "absent"
    if (said !== "captured" && said !== "unknown")
      report("manual-payment-is-approved" satisfies RuleName, `the manual payment ${paymentId} was not approved before`, () => ({
        account,
        ...UNAPPROVED
      }))
  }

  /** Begins a manual payment: what operators said of it. */
  beginManual(stream: StreamName.StreamName): Replay {
    const { codec, evolve, initial } = ManualPayment.ManualPayment
    let manual: ManualPayment.ManualPayment = initial
    return (type, data, at) => {
      manual = evolve(manual, codec.decode(type, data), at)
      this.#manual.set(StreamName.id(stream), manual.status)
    }
  }

  /** Forgets a payment whose stream cannot be replayed further. */
  lost(stream: StreamName.StreamName): void {
    this.#doubtful.add(lotOf(stream))
    this.#invoices.lostPayment(StreamName.id(stream))
  }

  lostManual(stream: StreamName.StreamName): void {
    this.#manual.set(StreamName.id(stream), "unknown")
  }

  /** The payment made here that a lot is of; undefined for any other lot, `unknown` where that is in doubt. */
  ofLot(lotId: string): PaidLot | "unknown" | undefined {
    const paid = this.#bonuses.get(lotId) ?? lotId
    if (this.#doubtful.has(paid)) return "unknown"
    const order = this.#orders.get(paid)?.order
    return order === undefined ? undefined : { order, part: paid === lotId ? "paid" : "bonus" }
  }

  /**
   * Reports payments whose accounts at `now` still lack what follows from them. `accountOf`: the account as far as it was replayed;
   * `unknown` where it could not be.
   */
  reportUnsettled(now: number, accountOf: (accountId: string) => Account.Account | "unknown" | undefined, problems: Problems): void {
    for (const [lotId, { at, order, position }] of this.#orders) {
      if (order.status !== "captured" || at + MARGIN > now || this.#doubtful.has(lotId)) continue
      const account = accountOf(order.accountId)
      const lacking = account === "unknown" ? undefined : lackOf(lotId, order, account ?? Account.initial, now)
      const place = { position, stream: StreamName.make(Payment.Payment.category, Payment.paymentIdOf(order.paymentId)) }
      if (lacking !== undefined) problems.add(place, "payment-is-settled", lacking, (say) => unsettled(lotId, order, say))
    }
  }
}

const lotOf = (stream: StreamName.StreamName): string => `lot_${StreamName.id(stream)}`

/** What an account lacks that follows from a payment. */
const lackOf = (lotId: string, order: Payment.Order, account: Account.Account, now: number): string | undefined => {
  if (Account.get(account.purse.paidLots, lotId) === undefined)
    return order.notGranted === undefined ? `the payment ${order.paymentId} was captured, and its lot was not granted` : undefined
  const changes = Result.getOrElse(Decisions.followPayment(lotId, order.changes)(account, now), () => [])
  return changes.length === 0 ? undefined : `the lot of the payment ${order.paymentId} lacks what followed from refunds and disputes`
}

const unsettled = (lotId: string, order: Payment.Order, say: Say): Stake => {
  const [{ amount }] = lotsOf(order)
  const sentence = `${say(amount)} were paid for, and the account does not have what is left of them.`
  return { account: order.accountId, lot: lotId, amount, sentence }
}
