/** Buying a pack of credits: what the payer has to do, and what became of the payment. */
import { useEffect, useState } from "preact/hooks"
import { useTool } from "../Context.ts"
import { useChanges } from "../Live.ts"
import { Badge, Card, Trouble } from "../Parts.tsx"
import { ask, type Refused, refusedBy } from "../Requests.ts"
import { amount, credits, money } from "../Text.ts"
import { type Means, ToPay } from "./ToPay.tsx"

export const TOP_UPS = "/api/v1/billing/topups"

interface TopUp extends Means {
  readonly payment_id: string
  readonly status: "pending" | "authorized" | "captured" | "failed" | "refunded"
  readonly amount: number
  readonly currency: string
  readonly credits: number
  readonly bonus_credits: number
  readonly reason?: string
}

/** `onPaid`: called when a payment was captured. */
export const Buy = ({ onPaid }: { readonly onPaid: () => void }) => {
  const { contract } = useTool()
  const packs =
    contract
      .find("POST", TOP_UPS)
      ?.parameters.find(({ name }) => name === "pack")
      ?.schema.enum?.map(String) ?? []
  const [pack, setPack] = useState(packs[0] ?? "")
  const [payment, setPayment] = useState<TopUp>()
  const [refused, setRefused] = useState<Refused>()
  const [isBusy, setBusy] = useState(false)
  const attempt = (asked: Promise<TopUp>) => {
    setBusy(true)
    setRefused(undefined)
    asked
      .then(
        // What the payer needs is told once
        (next) => {
          setPayment((before) => (before?.payment_id === next.payment_id ? { ...before, ...next } : next))
          if (next.status === "captured") onPaid()
        },
        (error: unknown) => setRefused(refusedBy(error))
      )
      .finally(() => setBusy(false))
  }
  const buy = (event: SubmitEvent) => {
    event.preventDefault()
    attempt(ask({ method: "POST", path: TOP_UPS, body: { pack }, headers: { "Idempotency-Key": crypto.randomUUID() } }))
  }
  const capture = (payment: string) => attempt(ask({ method: "POST", path: `${TOP_UPS}/${payment}/capture`, body: {} }))
  // The operator may have approved it, also while an earlier question was on its way
  const [hasChanged, setChanged] = useState(false)
  useChanges(({ account, isFirst }) => {
    if (account || isFirst) setChanged(true)
  })
  useEffect(() => {
    if (!hasChanged || isBusy) return
    setChanged(false)
    if (payment?.status === "pending") capture(payment.payment_id)
  }, [hasChanged, isBusy])
  return (
    <Card title="Buy credits">
      <form class="stack" onSubmit={buy}>
        <fieldset class="packs">
          <legend class="unseen">Pack</legend>
          {packs.map((one) => (
            <label key={one} class="pack">
              <input type="radio" name="pack" value={one} checked={one === pack} onChange={() => setPack(one)} />
              <span class="pack-text">
                <strong>${one}</strong>
                <span class="hint">{amount(Number(one) * 1_000)} credits</span>
              </span>
            </label>
          ))}
        </fieldset>
        <div>
          <button type="submit" class="main" disabled={isBusy}>
            Buy
          </button>
        </div>
      </form>
      {refused === undefined ? null : <Trouble refused={refused} />}
      {payment === undefined ? null : <PaymentView payment={payment} isBusy={isBusy} onCapture={() => capture(payment.payment_id)} />}
    </Card>
  )
}

const TONES: Readonly<Record<TopUp["status"], "good" | "bad" | "busy" | "calm">> = {
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

const PaymentView = ({ isBusy, onCapture, payment }: PaymentProps) => {
  const { amount: price, bonus_credits, currency, payment_id, reason, status } = payment
  const isOpen = status === "pending" || status === "authorized"
  return (
    <section class="steps" aria-label="The payment" aria-live="polite">
      <p>
        {money(price, currency)} for {credits(payment.credits)}
        {bonus_credits > 0 ? ` and ${credits(bonus_credits)} on top` : ""} <Badge tone={TONES[status]}>{status}</Badge>
      </p>
      {isOpen ? <ToPay means={payment} /> : null}
      {reason === undefined ? null : <p>{reason}</p>}
      <p class="hint">
        <code>{payment_id}</code>
      </p>
      {isOpen ? (
        <div>
          <button type="button" onClick={onCapture} disabled={isBusy}>
            I have paid
          </button>
        </div>
      ) : null}
    </section>
  )
}
