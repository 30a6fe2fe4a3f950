/** The payments that were begun and not paid, each with a way to go on. */
import { useEffect, useId, useState } from "preact/hooks"
import { useData } from "../Data.ts"
import { useChanges } from "../Live.ts"
import { Badge, Card, Trouble } from "../Parts.tsx"
import { type Refused, refusedBy } from "../Requests.ts"
import { credits, minute, money } from "../Text.ts"
import { captured, isOpen, TONES, TOP_UPS, type TopUp } from "./Payment.tsx"
import { ToPay } from "./ToPay.tsx"

interface Listed extends TopUp {
  /** Of a period of a subscription. */
  readonly plan?: string
  readonly expires_at: string
}

/** An account has fewer than that. */
const MOST = 100

interface OpenProps {
  /** The payment that is shown elsewhere on the page. */
  readonly except: string | undefined
  /** Called when a payment was captured. */
  readonly onPaid: () => void
}

export const OpenPayments = ({ except, onPaid }: OpenProps) => {
  const { again, data, refused } = useData<{ readonly topups: ReadonlyArray<Listed> }>(`${TOP_UPS}?open=true&per_page=${MOST}`)
  // It may be paid by now, or another was begun elsewhere
  useChanges(({ account, isFirst }) => {
    if (account || isFirst) again()
  })
  // The one that was shown elsewhere until now is shown here
  useEffect(() => {
    if (except !== undefined) again()
  }, [except])
  const open = data?.topups.filter(({ payment_id }) => payment_id !== except) ?? []
  // A host that takes no payments says so where one buys
  const isTrouble = refused !== undefined && refused.code !== "upstream_not_configured"
  if (open.length === 0 && !isTrouble) return null
  const paid = () => {
    again()
    onPaid()
  }
  return (
    <Card title="Waiting for payment">
      {isTrouble ? <Trouble refused={refused} again={again} /> : null}
      <ul class="lines">
        {open.map((payment) => (
          <OpenLine key={payment.payment_id} of={payment} onPaid={paid} />
        ))}
      </ul>
    </Card>
  )
}

const OpenLine = ({ of: listed, onPaid }: { readonly of: Listed; readonly onPaid: () => void }) => {
  const { amount, currency, expires_at, payment_id, plan, status } = listed
  const [shown, setShown] = useState<TopUp>()
  const [refused, setRefused] = useState<Refused>()
  const [isBusy, setBusy] = useState(false)
  const what = useId()
  const goOn = () => {
    setBusy(true)
    setRefused(undefined)
    captured(payment_id)
      .then(
        (payment) => {
          setShown((before) => ({ ...before, ...payment }))
          if (!isOpen(payment)) onPaid()
        },
        (error: unknown) => setRefused(refusedBy(error))
      )
      .finally(() => setBusy(false))
  }
  // The button stays where it is, so that the focus does
  return (
    <li class="open-payment">
      <div class="plan-now">
        <p id={what}>
          <strong>{money(amount, currency)}</strong> for {plan === undefined ? credits(listed.credits) : `the plan ${plan}`}{" "}
          <Badge tone={TONES[shown?.status ?? status]}>{shown?.status ?? status}</Badge>
          <br />
          <span class="hint">
            <code>{payment_id}</code>, until <time dateTime={expires_at}>{minute(expires_at)}</time>
          </span>
        </p>
        <button type="button" class="small" disabled={isBusy} onClick={goOn} aria-describedby={what}>
          {shown === undefined ? "Go on" : "I have paid"}
        </button>
      </div>
      <div aria-live="polite">{shown === undefined ? null : <Todo of={shown} />}</div>
      {refused === undefined ? null : <Trouble refused={refused} />}
    </li>
  )
}

const Todo = ({ of }: { readonly of: TopUp }) => (
  <div class="steps">
    {isOpen(of) ? <ToPay means={of} /> : null}
    {of.reason === undefined ? null : <p>{of.reason}</p>}
  </div>
)
