/** A payment: how it stands, and what its payer has to do. */
import { Badge } from "../Parts.tsx"
import { ask } from "../Requests.ts"
import { credits, money } from "../Text.ts"
import { type Means, ToPay } from "./ToPay.tsx"

export const TOP_UPS = "/api/v1/billing/topups"

export interface TopUp extends Means {
  readonly payment_id: string
  readonly status: "pending" | "authorized" | "captured" | "failed" | "refunded"
  readonly amount: number
  readonly currency: string
  readonly credits: number
  readonly bonus_credits: number
  readonly reason?: string
}

/** Whether it may still be paid. */
export const isOpen = ({ status }: Pick<TopUp, "status">): boolean => status === "pending" || status === "authorized"

/** Captures a payment, and tells how it stands and what its payer needs. */
export const captured = (payment: string): Promise<TopUp> => ask({ method: "POST", path: `${TOP_UPS}/${payment}/capture`, body: {} })

export const TONES: Readonly<Record<TopUp["status"], "good" | "bad" | "busy" | "calm">> = {
  pending: "busy",
  authorized: "busy",
  captured: "good",
  failed: "bad",
  refunded: "calm"
}

interface PaymentProps {
  readonly payment: TopUp
  readonly isBusy: boolean
  readonly onCapture: () => void
}

/** How it stands, what its payer has to do, and a way to say that it is done. */
export const PaymentView = ({ isBusy, onCapture, payment }: PaymentProps) => {
  const { amount: price, bonus_credits, currency, payment_id, reason, status } = payment
  return (
    <section class="steps" aria-label="The payment" aria-live="polite">
      <p>
        {money(price, currency)} for {credits(payment.credits)}
        {bonus_credits > 0 ? ` and ${credits(bonus_credits)} on top` : ""} <Badge tone={TONES[status]}>{status}</Badge>
      </p>
      {isOpen(payment) ? <ToPay means={payment} /> : null}
      {reason === undefined ? null : <p>{reason}</p>}
      <p class="hint">
        <code>{payment_id}</code>
      </p>
      {isOpen(payment) ? (
        <div>
          <button type="button" onClick={onCapture} disabled={isBusy}>
            I have paid
          </button>
        </div>
      ) : null}
    </section>
  )
}
