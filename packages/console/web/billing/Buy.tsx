/** Buying a pack of credits: what the payer has to do, and what became of the payment. */
import { useEffect, useState } from "preact/hooks"
import { useTool } from "../Context.ts"
import { useChanges } from "../Live.ts"
import { Card, Trouble } from "../Parts.tsx"
import { ask, type Refused, refusedBy } from "../Requests.ts"
import { amount } from "../Text.ts"
import { captured, isOpen, PaymentView, TOP_UPS, type TopUp } from "./Payment.tsx"

interface BuyProps {
  /** Called with the id of the payment that this form shows from now on. */
  readonly onBought: (payment: string) => void
  /** Called when a payment was captured. */
  readonly onPaid: () => void
}

export const Buy = ({ onBought, onPaid }: BuyProps) => {
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
        (next) => {
          // Not every gateway tells again what the payer needs
          setPayment((before) => (before?.payment_id === next.payment_id ? { ...before, ...next } : next))
          onBought(next.payment_id)
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
  const capture = (payment: string) => attempt(captured(payment))
  // The operator may have approved it, also while an earlier question was on its way
  const [hasChanged, setChanged] = useState(false)
  useChanges(({ account, isFirst }) => {
    if (account || isFirst) setChanged(true)
  })
  useEffect(() => {
    if (!hasChanged || isBusy) return
    setChanged(false)
    if (payment !== undefined && isOpen(payment)) capture(payment.payment_id)
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
