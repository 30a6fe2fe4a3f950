/** Payments as promises. The command line does the same by the same functions. */
import type { Checkout, ManualGateway, Millrace } from "@millrace/core"
import type { EventStore } from "@millrace/event-sourcing"
import * as Acts from "../administration/Payments.ts"
import { metadata, type Recorded } from "./Administration.ts"
import { PAYMENTS, REFUND } from "./ArgumentRules.ts"
import { assertArguments } from "./Mistakes.ts"
import type { Run } from "./Run.ts"

/** Payments of credits that are made at this host. Money in units of its currency. */
export interface Payments {
  readonly payments: {
    /** Payments, the newest first: all, or those of an account or that stand so. */
    readonly list: (filter?: Acts.PaymentFilter) => Promise<ReadonlyArray<Acts.ShownPayment>>
    readonly show: (payment: string) => Promise<Acts.ShownPayment>
    /** Asks the gateway what became of a payment, and does what follows from it. */
    readonly check: (payment: string) => Promise<Acts.ShownPayment>
    /** The money of a manual payment is there: grants its credits at once. Approving again changes nothing. */
    readonly approve: (payment: string, recorded?: Recorded) => Promise<Acts.ShownPayment>
    /** The money of a manual payment will not come. `why` is what the payer is told. */
    readonly reject: (payment: string, options?: { readonly why?: string } & Recorded) => Promise<Acts.ShownPayment>
    /** Gives money back: the whole rest, or `amount`. Its credits are taken back in proportion. Under one `id` it is given back once. */
    readonly refund: (
      payment: string,
      options?: { readonly amount?: number; readonly id?: string } & Recorded
    ) => Promise<Acts.ShownPayment>
  }
}

type Needs = Checkout | ManualGateway.ManualPayments | Millrace.Administration | EventStore.EventStore

export const paymentsOf = (run: Run<Needs>): Payments => ({
  payments: {
    list: async (filter = {}) => {
      assertArguments("payments.list", filter, PAYMENTS)
      return run(Acts.list(filter))
    },
    show: (payment) => run(Acts.show(payment)),
    check: (payment) => run(Acts.check(payment)),
    approve: (payment, recorded) => run(Acts.approve(payment, metadata("payments.approve", recorded))),
    reject: (payment, { why, ...recorded } = {}) => run(Acts.reject(payment, why, metadata("payments.reject", recorded))),
    refund: async (payment, options = {}) => {
      assertArguments("payments.refund", options, REFUND)
      const { amount, id, ...recorded } = options
      return run(Acts.refund(payment, { amount, id }, metadata("payments.refund", recorded)))
    }
  }
})
