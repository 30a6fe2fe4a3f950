/** What the log tells receivers of webhooks: an independent statement of the notices, from the events as they are stored. */
import { type EventStore, HashChain, StreamName } from "@millrace/event-sourcing"

/** A notice, as its receivers must get it. */
export interface Told {
  readonly id: string
  /** Its place in the log, from 1. */
  readonly index: number
  readonly name: string
  readonly account: string
  readonly at: string
  /** What it says of the account: amounts in decimal credits. */
  readonly facts: Readonly<Record<string, unknown>>
}

type Data = Readonly<Record<string, unknown>>

/** The fields that are kept as they are, and those that are amounts: thousandths in the log, credits outside. */
const pick = (data: Data, fields: ReadonlyArray<string>, amounts: ReadonlyArray<string>): Data => ({
  ...Object.fromEntries(fields.map((field) => [field, data[field]])),
  ...Object.fromEntries(amounts.map((field) => [field, Number(data[field]) / 1_000]))
})

const ofLot = (data: Data, fields: ReadonlyArray<string>, amounts: ReadonlyArray<string>): Data => ({
  lot: data["lotId"],
  ...pick(data, fields, amounts)
})

/** The name and the facts of an event of an account, by its type. */
const OF_ACCOUNTS: Readonly<Record<string, (data: Data) => readonly [name: string, facts: Data] | undefined>> = {
  AccountOpened: () => ["account.opened", {}],
  AccountSuspended: () => ["account.suspended", {}],
  AccountReinstated: () => ["account.reinstated", {}],
  AccountClosed: () => ["account.closed", {}],
  CreditsGranted: (data) => ["credits.granted", ofLot(data, ["source"], ["amount"])],
  CreditsClawedBack: (data) => ["credits.clawedBack", ofLot(data, [], ["amount", "debt"])],
  Refunded: (data) =>
    data["stage"] === "reserved"
      ? undefined
      : ["charge.refunded", { reservation: data["reservationId"], ...pick(data, ["reason"], ["amount"]) }],
  LotExpired: (data) => ["lot.expired", ofLot(data, [], ["amount"])],
  LotExpiryAnnounced: (data) => ["lot.expiring", ofLot(data, ["expiresAt"], ["amount"])],
  BalanceFellBelow: (data) => ["credits.low", pick(data, [], ["threshold", "balance"])]
}

const ENDS: Readonly<Record<string, string>> = { JobSucceeded: "succeeded", JobFailed: "failed", JobCancelled: "cancelled" }

/** The facts of an event of a payment, by its type, given the payment as it was requested and the amount of each refund and dispute. */
const OF_PAYMENTS: Readonly<
  Record<string, (data: Data, asked: Data, back: (reference: unknown) => number) => readonly [name: string, facts: Data]>
> = {
  PaymentCaptured: (data, asked) => {
    const share = Math.min(1, Number(data["amount"]) / Number(asked["amount"]))
    return ["payment.captured", { ...moneyOf(asked, data["amount"]), credits: Math.floor(Number(asked["credits"]) * share) / 1_000 }]
  },
  PaymentFailed: ({ reason }, { paymentId }) => ["payment.failed", { payment: paymentId, reason }],
  PaymentRefunded: (data, asked) => ["payment.refunded", moneyOf(asked, data["amount"])],
  PaymentRefundFailed: (data, asked, back) => ["payment.refund_failed", moneyOf(asked, back(data["reference"]))],
  PaymentDisputed: (data, asked) => ["payment.disputed", { ...moneyOf(asked, data["amount"]), status: "open" }],
  PaymentDisputeWon: (data, asked, back) => ["payment.disputed", { ...moneyOf(asked, back(data["reference"])), status: "won" }],
  PaymentDisputeLost: (data, asked, back) => ["payment.disputed", { ...moneyOf(asked, back(data["reference"])), status: "lost" }]
}

/** The name and the facts of an event of a subscription, by its type. */
const OF_SUBSCRIPTIONS: typeof OF_ACCOUNTS = {
  SubscriptionPeriodBegan: (data) => [
    data["period"] === 0 ? "subscription.started" : "subscription.renewed",
    { ...ofSubscription(data), ...pick(data, ["until"], []) }
  ],
  SubscriptionPeriodRequested: (data) =>
    data["attempt"] === 1 ? ["subscription.past_due", { ...ofSubscription(data), ...pick(data, ["graceUntil"], []) }] : undefined,
  SubscriptionEnded: ({ reason, subscriptionId }) => ["subscription.ended", { subscription: subscriptionId, reason }]
}

const ofSubscription = ({ paymentId, plan, subscriptionId }: Data): Data => ({
  ...{ subscription: subscriptionId, payment: paymentId },
  plan: (plan as Data)["plan"]
})

const CATEGORIES = ["account", "job", "payment", "subscription"]

/** In dollars. */
const moneyOf = ({ currency, paymentId }: Data, cents: unknown): Data => ({ payment: paymentId, money: Number(cents) / 100, currency })

/** Every notice of a log, in its order. */
export const noticesIn = (log: ReadonlyArray<EventStore.RecordedEvent>): ReadonlyArray<Told> => {
  const accepted = new Map<string, Data>()
  const requested = new Map<string, Data>()
  const backs = new Map<string, number>()
  return log.flatMap((event, i) => {
    const { id: eventId, stream, type } = event
    const category = StreamName.category(stream)
    if (!CATEGORIES.includes(category)) return []
    const data: Data = JSON.parse(event.data)
    const about = StreamName.id(stream)
    const told = (name: string, account: string, facts: Data): ReadonlyArray<Told> => [
      { id: `${name.replaceAll(".", "_")}_${eventId}`, index: i + 1, name, account, at: HashChain.atOf(event), facts }
    ]
    if (category === "account") {
      const [name, facts = {}] = OF_ACCOUNTS[type]?.(data) ?? []
      return name === undefined ? [] : told(name, about, facts)
    }
    if (category === "subscription") {
      const [name, facts = {}] = OF_SUBSCRIPTIONS[type]?.(data) ?? []
      return name === undefined ? [] : told(name, `acc_${about}`, facts)
    }
    if (category === "payment") {
      if (type === "PaymentRequested") requested.set(about, data)
      if (type === "PaymentDisputed" || type === "PaymentRefunded") backs.set(`${about} ${data["reference"]}`, Number(data["amount"]))
      const asked = requested.get(about)
      const facts = asked && OF_PAYMENTS[type]?.(data, asked, (reference) => backs.get(`${about} ${reference}`) ?? 0)
      return asked === undefined || facts === undefined ? [] : told(facts[0], String(asked["accountId"]), facts[1])
    }
    if (type === "JobAccepted") accepted.set(about, data)
    const status = ENDS[type]
    const job = accepted.get(about)
    if (status === undefined || job === undefined) return []
    return told("job.ended", String(job["accountId"]), { job: about, operation: job["operation"], request: job["requestId"], status })
  })
}
