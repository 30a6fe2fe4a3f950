/** The account's subscription, and the plans that it may take. */
import { useState } from "preact/hooks"
import { type Loaded, useData } from "../Data.ts"
import { useChanges } from "../Live.ts"
import { Badge, Card, Trouble, Waiting } from "../Parts.tsx"
import { ask, type Refused, refusedBy } from "../Requests.ts"
import { credits, dayOfYear, money } from "../Text.ts"
import { type Means, ToPay } from "./ToPay.tsx"

export const SUBSCRIPTIONS = "/api/v1/billing/subscriptions"

interface Subscription {
  readonly subscription_id: string
  readonly plan: string
  readonly status: "pending" | "active" | "past_due" | "canceled" | "ended"
  /** Null before the first period is paid. */
  readonly current_period_end: string | null
  readonly credits_per_period: number
  readonly next_plan?: string
}

interface Payable extends Subscription, Means {
  readonly payment_id?: string
  readonly amount?: number
  readonly currency?: string
}

interface Offered {
  readonly plan: string
  readonly price: number
  readonly currency: string
  readonly credits_per_period: number
  readonly period: string
}

interface Subscribed {
  readonly subscriptions: ReadonlyArray<Subscription>
  readonly plans: ReadonlyArray<Offered>
}

export const Plans = ({ onPaid }: { readonly onPaid: () => void }) => {
  const subscribed = useData<Subscribed>(SUBSCRIPTIONS)
  const { again, data, refused } = subscribed
  // A period is paid by the operator's approval, or by a renewal
  useChanges(({ account, isFirst }) => {
    if (account || isFirst) again()
  })
  // A host without plans has nothing to say of them
  if (data?.plans.length === 0 && data.subscriptions.length === 0) return null
  return (
    <Card title="Plan">
      {data === undefined ? refused === undefined ? <Waiting /> : <Trouble refused={refused} again={again} /> : null}
      {data === undefined ? null : <Choice of={{ ...subscribed, data }} onPaid={onPaid} />}
    </Card>
  )
}

interface ChoiceProps {
  readonly of: Loaded<Subscribed> & { readonly data: Subscribed }
  readonly onPaid: () => void
}

const Choice = ({ of: { again, data }, onPaid }: ChoiceProps) => {
  const [payable, setPayable] = useState<Payable>()
  const [refused, setRefused] = useState<Refused>()
  const [isBusy, setBusy] = useState(false)
  const attempt = <A,>(asked: Promise<A>, done: (answer: A) => void) => {
    setBusy(true)
    setRefused(undefined)
    asked
      .then(done, (error: unknown) => setRefused(refusedBy(error)))
      .finally(() => {
        setBusy(false)
        again()
      })
  }
  const current = data.subscriptions.find(({ status }) => status !== "ended")
  const isPaid = payable !== undefined && current?.plan === payable.plan && current.status === "active"
  const take = (plan: string) =>
    attempt(
      ask<Payable>({ method: "POST", path: SUBSCRIPTIONS, body: { plan }, headers: { "Idempotency-Key": crypto.randomUUID() } }),
      setPayable
    )
  const cancel = (id: string) => attempt(ask({ method: "DELETE", path: `${SUBSCRIPTIONS}/${id}` }), () => setPayable(undefined))
  const capture = (payment: string) =>
    attempt(ask<{ readonly status: string }>({ method: "POST", path: `/api/v1/billing/topups/${payment}/capture`, body: {} }), (paid) => {
      if (paid.status !== "captured") return
      setPayable(undefined)
      onPaid()
    })
  return (
    <>
      {current === undefined ? null : <Current of={current} isBusy={isBusy} onCancel={() => cancel(current.subscription_id)} />}
      <ul class="plans">
        {data.plans.map((offered) => (
          <PlanLine key={offered.plan} of={offered} current={current} isBusy={isBusy} onTake={() => take(offered.plan)} />
        ))}
      </ul>
      {refused === undefined ? null : <Trouble refused={refused} />}
      {payable === undefined || isPaid ? null : <ToPayFor of={payable} isBusy={isBusy} onCapture={capture} />}
    </>
  )
}

const TONES: Readonly<Record<Subscription["status"], "good" | "bad" | "busy" | "calm">> = {
  pending: "busy",
  active: "good",
  past_due: "bad",
  canceled: "calm",
  ended: "calm"
}

/** How it stands, in a sentence. */
const standing = ({ credits_per_period, current_period_end, next_plan, plan, status }: Subscription): string => {
  if (current_period_end === null) return `${plan} begins when its first period is paid.`
  const end = dayOfYear(current_period_end)
  if (status === "canceled") return `${plan} ends on ${end}. Its credits can be used until then.`
  if (status === "past_due") return `The period that began on ${end} is not paid yet.`
  const then = next_plan === undefined ? "" : ` Then ${next_plan} begins.`
  return `${credits(credits_per_period)} each period, the current one until ${end}.${then}`
}

interface CurrentProps {
  readonly of: Subscription
  readonly isBusy: boolean
  readonly onCancel: () => void
}

const Current = ({ isBusy, of, onCancel }: CurrentProps) => (
  <div class="plan-now" role="status">
    <p>
      <strong>{of.plan}</strong> <Badge tone={TONES[of.status]}>{of.status.replace("_", " ")}</Badge>
      <br />
      <span class="hint">{standing(of)}</span>
    </p>
    {of.status === "canceled" ? null : (
      <button type="button" class="small danger" disabled={isBusy} onClick={onCancel}>
        Cancel
      </button>
    )}
  </div>
)

interface PlanProps {
  readonly of: Offered
  readonly current: Subscription | undefined
  readonly isBusy: boolean
  readonly onTake: () => void
}

const PlanLine = ({ current, isBusy, of: { credits_per_period, currency, period, plan, price }, onTake }: PlanProps) => {
  const isCurrent = current?.plan === plan && (current.status === "active" || current.status === "pending")
  const label = current === undefined ? "Subscribe" : current.plan === plan ? (current.status === "canceled" ? "Keep it" : "Pay") : "Change"
  return (
    <li class="plan">
      <p>
        <strong>{plan}</strong>
        <br />
        <span class="hint">
          {credits(credits_per_period)} a {period}
        </span>
      </p>
      <strong class="plan-price">{money(price, currency)}</strong>
      {isCurrent && current.status === "active" ? (
        <Badge tone="good">current</Badge>
      ) : (
        <button type="button" disabled={isBusy} onClick={onTake} aria-label={`${label} ${plan}`}>
          {label}
        </button>
      )}
    </li>
  )
}

interface ToPayProps {
  readonly of: Payable
  readonly isBusy: boolean
  readonly onCapture: (payment: string) => void
}

const ToPayFor = ({ isBusy, of, onCapture }: ToPayProps) => {
  const { amount, currency, payment_id, plan } = of
  if (payment_id === undefined) return null
  return (
    <section class="steps" aria-label="The payment of the plan" aria-live="polite">
      <p>
        {amount === undefined || currency === undefined ? "" : `${money(amount, currency)} for `}
        {plan}
      </p>
      <ToPay means={of} />
      <p class="hint">
        <code>{payment_id}</code>
      </p>
      <div>
        <button type="button" disabled={isBusy} onClick={() => onCapture(payment_id)}>
          I have paid
        </button>
      </div>
    </section>
  )
}
