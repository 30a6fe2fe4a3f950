/** Logs that break a rule each. No decision wrote them, but their hashes are right. */
import { CouponStore, Inbox, Invoice, lotIdOfPayment, Payment, Product } from "@millrace/core"
import { CREATE_INBOX, OPEN_SESSION, ROTATE_INBOX, WAIT } from "../src/CallIndex.ts"
import type { RuleName } from "../src/index.ts"
import { type Entry, idAt, type Tagged } from "./Logs.ts"

export const T0 = "2026-01-01T00:00:00.000Z"
const HALF_PAST = "2026-01-01T00:30:00.000Z"
export const T1 = "2026-01-01T01:00:00.000Z"
export const T2 = "2026-01-01T02:00:00.000Z"

// Events of an account `a`, as they are often written

export const event = (_tag: string, fields: object = {}): Tagged => ({ _tag, ...fields })
export const opened = event("AccountOpened", { sealedEmail: "", emailHash: "" })
export const granted = (lotId: string, amount: number, fields: object = {}) =>
  event("CreditsGranted", { lotId, amount, source: "promotion", priority: 10, expiresAt: null, paymentRef: null, ...fields })
export const paid = (lotId: string, amount: number, fields: object = {}) =>
  granted(lotId, amount, { source: "topup", priority: 40, paymentRef: `pay_${lotId}`, ...fields })
export const part = (lotId: string, amount: number) => ({ lotId, amount })
export const reserved = (reservationId: string, amount: number, lots: ReadonlyArray<object>, fields: object = {}) =>
  event("CreditReserved", {
    ...{
      reservationId,
      requestId: "req",
      operation: "grammar.check",
      quantity: 1,
      priceVersion: 1,
      amount,
      lots,
      expiresAt: "2026-01-03T00:00:00.000Z"
    },
    ...fields
  })
export const succeeded = (reservationId: string, charged: number, lots: ReadonlyArray<object>, fields: object = {}) =>
  event("OperationSucceeded", { reservationId, charged, quantity: 1, lots, replyHash: "hash", ...fields })
export const released = (reservationId: string, amount: number, lots: ReadonlyArray<object>, fields: object = {}) =>
  event("Refunded", { reservationId, stage: "reserved", amount, reason: "service_error", lots, ...fields })
export const givenBack = (reservationId: string, amount: number, lots: ReadonlyArray<object>, fields: object = {}) =>
  event("Refunded", { reservationId, stage: "settled", amount, reason: "goodwill", lots, ...fields })
export const expired = (lotId: string, amount: number, dueAt: string) => event("LotExpired", { lotId, amount, dueAt })
export const clawedBack = (lotId: string, fields: object) =>
  event("CreditsClawedBack", { lotId, paymentRef: `pay_${lotId}`, amount: 0, fromAvailable: 0, fromHeld: 0, debt: 0, ...fields })
const reversed = (lotId: string, fields: object) =>
  event("ClawbackReversed", { lotId, paymentRef: `pay_${lotId}`, amount: 0, toHeld: 0, toDebt: 0, toAvailable: 0, ...fields })
const threshold = (amount: number | null) => event("BalanceThresholdSet", { threshold: amount })
const fell = (below: number, balance: number) => event("BalanceFellBelow", { threshold: below, balance })
const announced = (lotId: string, amount: number, expiresAt: string) => event("LotExpiryAnnounced", { lotId, amount, expiresAt })
const DAY_1 = "2026-01-02T00:00:00.000Z"
const DAY_2 = "2026-01-03T00:00:00.000Z"
const DAY_3 = "2026-01-04T00:00:00.000Z"
const recurring = (fields: object = {}) =>
  event("RecurringGrantStarted", {
    ...{ grantId: "grant_g", amount: 5, source: "promotion", priority: 10, every: "day", anchor: T0, until: null, expires: "next" },
    ...fields
  })
const periodOf = (period: number, next: string, fields: object = {}) =>
  granted(`lot_g_p${period}`, 5, { expiresAt: next, recurring: { grantId: "grant_g", period, next }, ...fields })
const lasting = (period: number, next: string) => periodOf(period, next, { expiresAt: null })
export const trial = (reservationId: string, expiresAt = "2026-01-03T00:00:00.000Z") =>
  event("TrialReserved", { reservationId, requestId: "req", operation: "grammar.check", expiresAt })

export const published: Entry = [
  "pricePlan-standard",
  T0,
  event("PricePlanPublished", {
    version: 1,
    effectiveAt: T0,
    prices: { "grammar.check": 100, batch: 10, [WAIT]: 100, [CREATE_INBOX]: 100, [ROTATE_INBOX]: 100, [OPEN_SESSION]: 100 }
  })
]

/** All at `T0`, unless a time stands before an event: from then on. */
interface Elsewhere {
  readonly of: Entry[0]
  readonly is: Tagged
}
const isElsewhere = (line: Tagged | Elsewhere): line is Elsewhere => !("_tag" in line)

// Events of the inbox of reservation `r`, and of addresses

const claimed = (address: string, inboxId = "inbox_r"): Elsewhere => ({
  of: `address-${address}` as Entry[0],
  is: event("AddressClaimed", { inboxId })
})
const inbox = (_tag: string, fields: object = {}): Elsewhere => ({ of: "inbox-inbox_r", is: event(_tag, fields) })
const at = (addressHash: string) => ({ addressHash, sealedAddress: "" })
const created = (address: string, fields: object = {}) =>
  inbox("InboxCreated", { accountId: "a", ...at(address), sealedLabel: null, expiresAt: T1, ...fields })
const received = (addressHash: string, messageId = "m", size = 1) =>
  inbox("MessageReceived", { messageId, addressHash, size, blobId: "b", sealedSummary: "" })
const inboxExpired = inbox("InboxExpired")

export type Script = ReadonlyArray<Tagged | string | Elsewhere>
export const logOf = (script: Script): ReadonlyArray<Entry> => {
  let at = T0
  const entries: Array<Entry> = [published]
  for (const line of script) {
    if (typeof line === "string") at = line
    else if (isElsewhere(line)) entries.push([line.of, at, line.is])
    else entries.push(["account-a", at, line])
  }
  return entries
}

export const spent = [opened, paid("p", 100), reserved("r", 100, [part("p", 100)]), succeeded("r", 100, [part("p", 100)])]
export const lots = [part("l", 100)]
export const held = [opened, granted("l", 1_000), reserved("r", 100, lots)]
export const heldPaid = [opened, paid("p", 1_000), reserved("r", 100, [part("p", 100)])]

/** An account that holds the price of an operation for reservation `r`. */
export const heldFor = (operation: string) => [opened, granted("l", 1_000), reserved("r", 100, lots, { operation })]
export const withInbox = [...heldFor(CREATE_INBOX), claimed("x"), created("x")]

/** The move of the inbox to another address, for a request, or as before moves named theirs. */
export const moved = (address = "y", $correlationId: string | null = "req_s") => [
  claimed(address),
  inbox("InboxRotated", { ...at(address), ...($correlationId === null ? {} : { $correlationId }) })
]
/** A hold of the account for a move. */
export const heldForMove = (fields: object = {}) => reserved("s", 100, lots, { operation: ROTATE_INBOX, requestId: "req_s", ...fields })

// A text message `s`, and the wait of reservation `r`

const NUMBER = "+15005550006"
export const smsReceived: Elsewhere = {
  of: "sms-s",
  is: event("SmsReceived", { source: "host", number: NUMBER, text: { size: 1, hash: "hash" } })
}
export const wait = (_tag: string, fields: object = {}): Elsewhere => ({
  of: "verification-ver_r",
  is: event(_tag, { accountId: "a", reservationId: "r", number: NUMBER, ...fields })
})
export const found = (fields: object = {}) => wait("CodeFound", { sms: "s", ...fields })

// The proxy session of reservation `r`

const session = (_tag: string, fields: object = {}) => ({ of: "proxySession-proxy_r", is: event(_tag, fields) }) as const
export const sessionOpened = session("ProxySessionOpened", {
  ...{ accountId: "a", protocol: "http", mode: "sticky", country: "DE", region: null, host: "proxy.example.com", port: 8080 },
  ...{ ip: "192.0.2.7", passwordHash: "hash", expiresAt: T1, byteLimit: 100, connectionLimit: 1 }
})
export const sessionWithGrace = session("ProxySessionOpened", { ...sessionOpened.is, countGrace: 600_000 })
export const counted = (sent: number) => session("ProxyTrafficCounted", { node: "node_1", sent, received: 0, connections: 1 })
export const sessionExpired = session("ProxySessionExpired")
export const sessionEnded = session("ProxySessionEnded", { reason: "bytes" })
export const withSession = [...heldFor(OPEN_SESSION), sessionOpened]

// A payment of a thousand cents, which buys 1,000 thousandths and a bonus of 50

const PAYMENT = "pay_01M7YKD46JCP6VGMKADN3JSPJP"
const BOUGHT = lotIdOfPayment(PAYMENT)

const payment = (_tag: string, fields: object = {}): Elsewhere => ({
  of: `payment-${Payment.paymentIdOf(PAYMENT)}`,
  is: event(_tag, fields)
})
const requested = (gateway = "stripe", bonus = 50) =>
  payment("PaymentRequested", {
    ...{ paymentId: PAYMENT, accountId: "a", gateway, amount: 1_000, currency: "USD", credits: 1_000, bonus, expiresAt: T1 },
    purchase: { _tag: "Pack", pack: "10" }
  })
export const paymentCaptured = payment("PaymentCaptured", { amount: 1_000 })
const manual = (_tag: string, fields: object = {}): Elsewhere => ({ of: `manualPayment-${PAYMENT}`, is: event(_tag, fields) })
const manualBegun = manual("ManualPaymentBegun", { amount: 1_000, currency: "USD" })
const bought = (amount = 1_000, fields: object = {}) => paid(BOUGHT, amount, { paymentRef: PAYMENT, ...fields })
const bonus = (amount = 50) => granted(Payment.bonusLotIdOf(PAYMENT), amount)
const followed = (change: number, amount: number) => clawedBack(BOUGHT, { paymentRef: PAYMENT, amount, fromAvailable: amount, change })
const unfollowed = (change: number, amount: number) => reversed(BOUGHT, { paymentRef: PAYMENT, amount, toAvailable: amount, change })
const disputed = payment("PaymentDisputed", { reference: "dp", amount: 500 })
const disputeWon = payment("PaymentDisputeWon", { reference: "dp" })
/** A payment that was captured, with what it bought. */
export const withPayment = [opened, requested(), paymentCaptured, bought(), bonus()]
/** What follows from a dispute that is won. */
export const withDispute = [...withPayment, disputed, followed(1, 500), disputeWon, unfollowed(2, 500)]
const refunded = payment("PaymentRefunded", { reference: "re", amount: 500 })
const refundFailed = payment("PaymentRefundFailed", { reference: "re" })
/** What follows from a refund that the payer's bank did not take. */
export const withRefundFailed = [...withPayment, refunded, followed(1, 500), refundFailed, unfollowed(2, 500)]

const lineOf = (description: string, total: number) => ({ description, net: total, tax: 0, total, lotId: BOUGHT })
/** The document that follows from the event at a place of the log, which begins with the prices, of so many cents. */
const document = (
  _tag: "InvoiceIssued" | "CreditNoteIssued",
  place: number,
  cause: number,
  total: number,
  fields: object = {}
): Elsewhere => {
  const stream = `${Invoice.SERIES[_tag]}-2026-01`
  const number = Invoice.numberOf(stream, place)
  const lines = [lineOf(_tag === "InvoiceIssued" ? "1 credit" : "Refund", total)]
  const terms = { accountId: "a", paymentId: PAYMENT, gateway: "stripe", issuedAt: T0, currency: "USD", seller: "" }
  return {
    of: `invoices-${stream}`,
    is: event(_tag, { number, ...terms, cause: idAt(cause), lines, net: total, tax: 0, total, ...fields })
  }
}
const invoiced = (fields: object = {}, place = 1) => document("InvoiceIssued", place, 3, 1_000, fields)
const FIRST = { invoice: "INV-2026-01-000001" }
const creditNote = (cause: number, total: number, fields: object = {}) =>
  document("CreditNoteIssued", 1, cause, total, { ...FIRST, ...fields })
export const withInvoice = [...withPayment, invoiced()]
/** The documents of {@link withDispute} and of {@link withRefundFailed}: of half that went back, and came again. */
const documentsOf = (gone: string, again: string) => [
  ...[invoiced(), creditNote(6, 500, { lines: [lineOf(gone, 500)] })],
  document("InvoiceIssued", 2, 8, 500, { ...FIRST, lines: [lineOf(again, 500)] })
]
export const documentsOfDispute = documentsOf("Chargeback", "Chargeback that was taken back")
export const documentsOfRefund = documentsOf("Refund", "Refund that was not taken")
/** The invoice of {@link withApproval}. */
export const invoiceOfApproval = document("InvoiceIssued", 1, 5, 1_000, { gateway: "manual" })
/** A payment that an operator approved, without a bonus. */
export const withApproval = [opened, requested("manual", 0), manualBegun, manual("ManualPaymentApproved"), paymentCaptured, bought()]
const LATER = [T1, { of: "account-b", is: opened }] as const
/** A payment of a closed account, whose money went back. */
export const givenBackUngranted = [
  ...[opened, requested(), event("AccountClosed"), paymentCaptured],
  ...[payment("PaymentNotGranted", { reason: "The account is closed" }), payment("PaymentRefunded", { reference: "re", amount: 1_000 })],
  ...[document("InvoiceIssued", 1, 4, 1_000), creditNote(6, 1_000)],
  ...LATER
]

// A subscription `sub_1` whose first period was paid

const PLAN = { plan: "standard", amount: 1_000, currency: "USD", credits: 1_000, every: "month" }
const DEARER = { ...PLAN, plan: "pro", amount: 3_000, credits: 5_000 }
const MONTHS = { from: T0, until: "2026-02-01T00:00:00.000Z", next: "2026-03-01T00:00:00.000Z" }
const ofSubscription = (_tag: string, fields: object = {}) =>
  ({ of: "subscription-a", is: event(_tag, { subscriptionId: "sub_1", ...fields }) }) as const
const firstPeriod = { period: 0, from: MONTHS.from, until: MONTHS.until }
export const subscriptionStarted = ofSubscription("SubscriptionStarted", { accountId: "a", paymentId: PAYMENT, plan: PLAN })
export const periodBegan = (fields: object = {}) =>
  ofSubscription("SubscriptionPeriodBegan", { paymentId: PAYMENT, plan: PLAN, ...firstPeriod, ...fields })
const periodRequested = payment("PaymentRequested", {
  ...{ paymentId: PAYMENT, accountId: "a", gateway: "stripe", amount: 1_000, currency: "USD", credits: 1_000, bonus: 0, expiresAt: T1 },
  purchase: { _tag: "Period", subscriptionId: "sub_1", plan: "standard", ...firstPeriod, every: "month" }
})
const boughtPeriod = bought(1_000, { source: "subscription", expiresAt: MONTHS.until })
/** 17 of 31 days are left on 15 January. */
export const upgradeRequested = (fields: object = {}) =>
  ofSubscription("SubscriptionUpgradeRequested", {
    ...{ paymentId: "pay_2", period: 0, began: MONTHS.from, from: "2026-01-15T00:00:00.000Z", until: MONTHS.until },
    ...{ before: PLAN, plan: DEARER, charged: 1_645, credited: 548, amount: 1_097, credits: 2_193, ...fields }
  })
const secondPeriod = { period: 1, from: MONTHS.until, until: MONTHS.next }
const planChanged = ofSubscription("SubscriptionPlanChanged", { paymentId: "pay_2", plan: DEARER })
export const withSubscription = [opened, subscriptionStarted, periodRequested, paymentCaptured, boughtPeriod, periodBegan()]

// A person's session `ses_1`, opened by the link `link_1`

const DAY_31 = "2026-02-01T00:00:00.000Z"
const ofLink = (_tag: string, fields: object = {}) => ({ of: "signIn-link_1", is: event(_tag, fields) }) as const
export const linkRequested = ofLink("SignInRequested", {
  ...{ secretHash: "hash", browserHash: "hash", sealedAddress: "", provisional: null, expiresAt: "2026-01-01T00:15:00.000Z" }
})
export const linkUsed = ofLink("SignInUsed")
const ofSession = (_tag: string, fields: object = {}, id = "ses_1") => ({ of: `session-${id}` as const, is: event(_tag, fields) }) as const
export const signedIn = (fields: object = {}, id = "ses_1") =>
  ofSession(
    "SessionOpened",
    {
      ...{ accountId: "a", secretHash: "hash", proof: "mailLink", proofId: "link_1", sealedClient: null },
      ...{ idleAt: "2026-01-31T00:00:00.000Z", expiresAt: "2026-04-01T00:00:00.000Z" },
      ...fields
    },
    id
  )
export const sessionUsed = (idleAt: string) => ofSession("SessionUsed", { idleAt })
export const signedOut = (reason = "signedOut") => ofSession("SessionEnded", { reason })
export const withSignIn = [opened, linkRequested, linkUsed, signedIn()]

// A shop with a coupon, and the prices of a product

const SHOP = "shop.example.com"
const ofStore = (_tag: string, fields: object = {}) => ({ of: `couponStore-${SHOP}`, is: event(_tag, fields) }) as const
const COUPON = CouponStore.couponIdOf(SHOP, "SAVE20", null)
const couponSubmitted = (fields: object = {}) =>
  ofStore("CouponSubmitted", {
    ...{ couponId: COUPON, domain: SHOP, code: "SAVE20", description: "", discountText: "", expiresAt: null },
    ...{ shopUsername: null, minimumOrder: null, by: "ada", ...fields }
  })
const couponAccepted = ofStore("CouponAccepted", { couponId: COUPON })
const couponReported = ofStore("CouponOutcomeReported", { couponId: COUPON, by: "bob", worked: true, discount: null })
const shopRequested = (by: string, domain = SHOP) => ofStore("CouponStoreRequested", { domain, by })
const PRICE_STREAM = Product.idOf("mug")
const priceObserved = (price: string, fields: object = {}) =>
  ({ of: `product-${PRICE_STREAM}`, is: event("PriceObserved", { price, currency: null, ...fields }) }) as const
const priceClaimed = (price: string) => ({ of: `priceClaims-${PRICE_STREAM}`, is: event("PriceClaimed", { price }) }) as const
const offer = { title: "Mug", url: "https://shop.example.com/products/mug" }
export const withShop = [
  ...[shopRequested("ada"), shopRequested("bob"), couponSubmitted(), couponReported, couponAccepted],
  ...[priceObserved("1", { offer }), priceObserved("2"), priceObserved("1"), priceClaimed("1"), priceClaimed("2")]
]

// A passkey `p` of the account, which signs for a session

const ofPasskey = (_tag: string, fields: object = {}) => ({ of: "passkey-p", is: event(_tag, fields) }) as const
const passkeyAdded = ofPasskey("PasskeyAdded", { accountId: "a", sealedCredential: "", counter: 0 })
const signatureOf = (challengeHash: string, counter = 0) =>
  ofPasskey("PasskeyUsed", { challengeHash, challengeEndsAt: "2026-01-01T00:05:00.000Z", counter })
const passkeyRemoved = ofPasskey("PasskeyRemoved")
const byPasskey = (fields: object = {}, id = "ses_1") => signedIn({ proof: "passkey", proofId: "p", ...fields }, id)
export const withPasskey = [
  opened,
  passkeyAdded,
  signatureOf("one"),
  byPasskey(),
  signatureOf("two"),
  byPasskey({}, "ses_2"),
  passkeyRemoved
]

// A price alert `a` of the account, whose price falls once

const ofAlert = (_tag: string, fields: object = {}) => ({ of: "priceAlert-a", is: event(_tag, fields) }) as const
const observed = (price: string, revision: number) => ({ price, currency: null, revision })
const alertRegistered = ofAlert("PriceAlertRegistered", {
  ...{ accountId: "a", product: "p", target: "20", sealed: "", observed: null, reservationId: "r" }
})
const alertReached = (fall: number, price = "20") => ofAlert("PriceAlertReached", { fall, observed: observed(price, 2 * fall) })
const alertArmed = ofAlert("PriceAlertArmed", { observed: observed("21", 3) })
const alertMail = (_tag: string, attempt = 1, fall = 1) => ofAlert(_tag, { fall, attempt })
const alertRefused = (retryAt: string | null) => ofAlert("AlertMailRefused", { fall: 1, attempt: 1, reason: "EENVELOPE 451", retryAt })
const alertFell = [opened, alertRegistered, alertReached(1)]
export const withAlert = [
  ...[...alertFell, alertMail("AlertMailSending"), alertRefused(T1), T1, alertMail("AlertMailSending", 2), alertMail("AlertMailSent", 2)],
  ...[alertArmed, alertReached(2), alertMail("AlertMailSending", 1, 2), alertMail("AlertMailInDoubt", 1, 2)],
  ofAlert("PriceAlertEnded", { reason: "unsubscribed" })
]

// A job `j` of reservation `r`

const job = (_tag: string, fields: object = {}) => ({ of: "job-j", is: event(_tag, fields) }) as const
export const accepted = (fields: object = {}) =>
  job("JobAccepted", {
    ...{ accountId: "a", operation: "grammar.check", family: "grammar", requestId: "req", reservationId: "r", quantity: 1 },
    ...{ input: { size: 1, hash: "input" }, attempts: 5, deadline: T1, retention: 86_400_000 },
    ...fields
  })
export const started = job("JobStarted", { runner: "runner", attempt: 1, leaseUntil: T1 })
export const recorded = job("JobSucceeded", { attempt: 1, quantity: 1, result: { size: 1, hash: "hash" }, artifacts: [], retainUntil: T2 })
export const failed = (failure: string) => job("JobFailed", { attempt: 0, failure, mayPass: true, retainUntil: T2 })
const cancelled = job("JobCancelled", { retainUntil: T0 })
export const refused = job("JobRefused", { accountId: "a", reservationId: "r" })
export const heldForJob = [opened, granted("l", 1_000), reserved("r", 100, lots, { expiresAt: undefined, jobId: "j", acceptBy: T1 })]

/** Scripts whose last event breaks the rule, or the event at `position`. */
export const broken: ReadonlyArray<readonly [rule: RuleName, what: string, script: Script, position?: number]> = [
  ["account-is-opened-first", "an event before the account is opened", [granted("l", 1)], 1],
  ["account-is-opened-first", "an account that is opened twice", [opened, opened]],
  [
    "barred-account-holds-nothing",
    "a hold while the account is suspended",
    [opened, granted("l", 1_000), event("AccountSuspended"), reserved("r", 100, lots)]
  ],
  [
    "barred-account-holds-nothing",
    "a hold after the account was closed",
    [opened, granted("l", 1_000), event("AccountClosed"), reserved("r", 100, lots)]
  ],
  [
    "barred-account-holds-nothing",
    "a hold while the account is in debt",
    [...spent, clawedBack("p", { amount: 100, debt: 100 }), granted("l", 1_000), reserved("s", 100, lots)]
  ],
  ["closed-account-is-granted-nothing", "a grant after the account was closed", [opened, event("AccountClosed"), granted("l", 1)]],
  [
    "trial-has-its-slots",
    "a trial that is used twice",
    [opened, trial("t"), event("TrialUsed", { reservationId: "t" }), event("TrialUsed", { reservationId: "t" })]
  ],
  ["trial-has-its-slots", "an eleventh trial", [opened, ...Array.from({ length: 11 }, (_, i) => trial(`t${i}`))]],
  ["trial-has-its-slots", "a trial of a verified account", [opened, event("AccountVerified"), trial("t")]],
  [
    "what-is-due-comes-first",
    "a hold after a lot's expiry that was not written",
    [opened, granted("e", 5, { expiresAt: T1 }), granted("l", 1_000), T1, reserved("r", 100, lots)]
  ],
  [
    "what-is-due-comes-first",
    "a charge after a hold's deadline",
    [opened, granted("l", 100), reserved("r", 100, lots, { expiresAt: T1 }), T1, succeeded("r", 100, lots)]
  ],
  ["lot-is-granted-once", "a lot that is granted again while it has credits", [opened, granted("l", 1), granted("l", 1)]],
  ["lot-is-granted-once", "a paid lot that is granted again after it was spent", [...spent, granted("p", 100)]],
  ["paid-lot-names-its-payment", "a paid lot without a payment", [opened, paid("p", 1, { paymentRef: null })]],
  ["lot-expires-at-its-time", "a lot that expires early", [opened, granted("l", 1, { expiresAt: T1 }), expired("l", 1, T1)]],
  [
    "lot-expires-at-its-time",
    "a lot that expires at another time than its own",
    [opened, granted("l", 1, { expiresAt: T1 }), T2, expired("l", 1, T2)]
  ],
  ["lot-expires-at-its-time", "a lot that expires in part", [opened, granted("l", 2, { expiresAt: T1 }), T1, expired("l", 1, T1)]],
  ["lot-expires-at-its-time", "a lot that expires without having been granted", [opened, expired("l", 1, T0)]],
  [
    "hold-lapses-at-its-time",
    "a hold that is released before its deadline",
    [opened, granted("l", 100), reserved("r", 100, lots, { expiresAt: T1 }), released("r", 100, lots, { dueAt: T1 })]
  ],
  [
    "hold-lapses-at-its-time",
    "a hold that is released at another time than its deadline",
    [opened, granted("l", 100), reserved("r", 100, lots, { expiresAt: T2 }), T1, released("r", 100, lots, { dueAt: T1 })]
  ],
  [
    "hold-lapses-at-its-time",
    "a trial that is released before its deadline",
    [opened, trial("t", T1), event("TrialReleased", { reservationId: "t", dueAt: T1 })]
  ],
  ["hold-is-priced", "a hold of less than the price", [opened, granted("l", 1_000), reserved("r", 99, [part("l", 99)])]],
  ["hold-is-priced", "a hold of the price of one unit for two", [opened, granted("l", 1_000), reserved("r", 100, lots, { quantity: 2 })]],
  [
    "hold-is-priced",
    "a hold at the price of another operation",
    [opened, granted("l", 1_000), reserved("r", 100, lots, { operation: "batch" })]
  ],
  [
    "hold-is-priced",
    "a hold for an operation without a price",
    [opened, granted("l", 1_000), reserved("r", 100, lots, { operation: "unheard.of" })]
  ],
  ["hold-is-priced", "a hold at an unknown price version", [opened, granted("l", 1_000), reserved("r", 100, lots, { priceVersion: 2 })]],
  [
    "charge-is-priced",
    "a charge of two units for one",
    [opened, granted("l", 1_000), reserved("r", 200, [part("l", 200)], { quantity: 2 }), succeeded("r", 200, [part("l", 200)])]
  ],
  ["hold-is-its-lots", "a hold of more than its lots sum to", [opened, granted("l", 1_000), reserved("r", 100, [part("l", 99)])]],
  ["hold-takes-what-is-free", "a hold of more than the lot has", [opened, granted("l", 99), reserved("r", 100, lots)]],
  [
    "hold-takes-what-is-free",
    "a hold of a lot that is granted later",
    [opened, granted("k", 99), reserved("r", 100, lots), granted("l", 100)],
    3
  ],
  [
    "hold-takes-lots-in-order",
    "a hold that skips a lot that expires earlier",
    [opened, granted("l", 1_000), granted("k", 1_000, { expiresAt: T2 }), reserved("r", 100, lots)]
  ],
  [
    "hold-takes-lots-in-order",
    "a hold that skips a lot of higher priority",
    [opened, granted("l", 1_000), paid("p", 1_000), reserved("r", 100, [part("p", 100)])]
  ],
  ["hold-has-a-deadline", "a hold without a deadline", [opened, granted("l", 1_000), reserved("r", 100, lots, { expiresAt: undefined })]],
  [
    "key-runs-once",
    "two open holds under one key",
    [...held, reserved("s", 100, lots, { keyHash: "k" }), reserved("t", 100, lots, { keyHash: "k" })]
  ],
  [
    "key-runs-once",
    "a hold under the key of a success",
    [
      opened,
      granted("l", 1_000),
      reserved("r", 100, lots, { keyHash: "k" }),
      succeeded("r", 100, lots),
      reserved("s", 100, lots, { keyHash: "k" })
    ]
  ],
  [
    "late-call-was-abandoned",
    "a late charge of a call whose service failed",
    [...held, released("r", 100, lots), reserved("s", 100, lots, { lateOf: "r" })]
  ],
  ["hold-ends-once", "a hold that is charged twice", [...held, succeeded("r", 100, lots), succeeded("r", 100, lots)]],
  ["hold-ends-once", "a hold that is released after it was charged", [...held, succeeded("r", 100, lots), released("r", 100, lots)]],
  [
    "charge-is-part-of-its-hold",
    "a charge of more of a lot than was held of it",
    [opened, granted("k", 50), granted("l", 50), reserved("r", 100, [part("k", 50), part("l", 50)]), succeeded("r", 100, [part("k", 100)])]
  ],
  ["charge-is-part-of-its-hold", "a charge whose lots do not sum to it", [...held, succeeded("r", 100, [part("l", 99)])]],
  [
    "refund-is-its-hold",
    "a release to another lot",
    [opened, granted("l", 1_000), paid("p", 1_000), reserved("r", 100, lots), released("r", 100, [part("p", 100)])]
  ],
  [
    "refund-is-its-hold",
    "a refund whose lots do not sum to it",
    [...held, succeeded("r", 100, lots), givenBack("r", 100, [part("l", 99)])]
  ],
  [
    "clawback-takes-what-is-released",
    "a release that leaves the clawback nothing",
    [...heldPaid, clawedBack("p", { amount: 1_000, fromAvailable: 900, fromHeld: 100 }), released("r", 100, [part("p", 100)])]
  ],
  [
    "clawback-takes-what-is-released",
    "a charge that leaves no debt for the clawback",
    [...heldPaid, clawedBack("p", { amount: 1_000, fromAvailable: 900, fromHeld: 100 }), succeeded("r", 100, [part("p", 100)])]
  ],
  [
    "clawback-takes-what-is-released",
    "a refund that repays no debt",
    [...spent, clawedBack("p", { amount: 100, debt: 100 }), givenBack("r", 100, [part("p", 100)])]
  ],
  [
    "clawback-is-of-a-paid-lot",
    "a clawback of a lot that was not paid for",
    [opened, granted("l", 100), clawedBack("l", { amount: 100, fromAvailable: 100 })]
  ],
  [
    "clawback-is-of-a-paid-lot",
    "a clawback of another payment",
    [opened, paid("p", 100), clawedBack("p", { amount: 100, fromAvailable: 100, paymentRef: "pay_q" })]
  ],
  [
    "clawback-is-of-a-paid-lot",
    "a clawback that leaves available credits and makes debt",
    [opened, paid("p", 100), clawedBack("p", { amount: 100, debt: 100 })]
  ],
  [
    "clawback-is-of-a-paid-lot",
    "a clawback of more than was granted",
    [...spent, clawedBack("p", { amount: 100, debt: 100 }), clawedBack("p", { amount: 1, debt: 1 })]
  ],
  ["reversal-is-of-a-clawback", "a reversal without a clawback", [opened, paid("p", 100), reversed("p", { amount: 1, toAvailable: 1 })]],
  [
    "reversal-is-of-a-clawback",
    "a reversal to credits while debt is owed",
    [...spent, clawedBack("p", { amount: 100, debt: 100 }), reversed("p", { amount: 1, toAvailable: 1 })]
  ],
  [
    "debt-is-repaid-by-paid-lots",
    "a repayment from a promotion",
    [...spent, clawedBack("p", { amount: 100, debt: 100 }), granted("l", 100), event("DebtRepaid", { lotId: "l", amount: 100 })]
  ],
  [
    "debt-is-repaid-by-paid-lots",
    "a repayment of more than is owed",
    [...spent, clawedBack("p", { amount: 100, debt: 100 }), paid("q", 500), event("DebtRepaid", { lotId: "q", amount: 101 })]
  ],
  [
    "late-refund-is-of-its-charge",
    "a refund of more than the charge",
    [...held, succeeded("r", 100, lots), givenBack("r", 101, [part("l", 101)])]
  ],
  [
    "late-refund-is-of-its-charge",
    "refunds of more than the charge together",
    [...held, succeeded("r", 100, lots), givenBack("r", 60, [part("l", 60)]), givenBack("r", 60, [part("l", 60)])]
  ],
  ["low-balance-is-told", "a low balance that is not told before the next event", [...spent, threshold(5), T1, paid("q", 1)]],
  ["low-balance-is-told", "a low balance that is not told at the end of the log", [opened, paid("p", 100), threshold(500)]],
  ["low-balance-is-true", "a low balance without a threshold", [opened, fell(5, 0)]],
  ["low-balance-is-true", "another balance than the account's", [opened, paid("p", 3), threshold(5), fell(5, 2)]],
  ["low-balance-is-true", "a balance that is not low", [opened, paid("p", 5), threshold(5), fell(5, 5)]],
  ["low-balance-is-true", "a low balance that was told already", [opened, threshold(5), fell(5, 0), fell(5, 0)]],
  ["lot-expiry-is-announced-once", "an expiry of an unknown lot", [opened, announced("l", 1, T1)]],
  [
    "lot-expiry-is-announced-once",
    "an expiry of less than the lot has",
    [opened, granted("l", 2, { expiresAt: T1 }), announced("l", 1, T1)]
  ],
  ["lot-expiry-is-announced-once", "an expiry at another time", [opened, granted("l", 1, { expiresAt: T1 }), announced("l", 1, T2)]],
  [
    "lot-expiry-is-announced-once",
    "an expiry that was announced already",
    [opened, granted("l", 1, { expiresAt: T1 }), announced("l", 1, T1), announced("l", 1, T1)]
  ],
  ["recurring-grant-starts-once", "a recurring grant that is started twice", [opened, recurring(), periodOf(0, DAY_1), recurring()]],
  ["recurring-grant-starts-once", "a recurring grant of a paid source", [opened, recurring({ source: "topup" })]],
  ["recurring-grant-starts-once", "a recurring grant that begins at another time", [opened, recurring({ anchor: T1 })]],
  [
    "recurring-grant-stops-once",
    "a recurring grant that was not started",
    [opened, event("RecurringGrantStopped", { grantId: "grant_g" })]
  ],
  ["recurring-lot-is-of-its-grant", "a lot of a recurring grant that was not started", [opened, periodOf(0, DAY_1)]],
  ["recurring-lot-is-of-its-grant", "a lot of more than its grant", [opened, recurring(), periodOf(0, DAY_1, { amount: 6 })]],
  ["recurring-lot-is-of-its-grant", "a lot of another source", [opened, recurring(), periodOf(0, DAY_1, { source: "adjustment" })]],
  ["recurring-lot-is-of-its-grant", "a lot that never expires", [opened, recurring(), lasting(0, DAY_1)]],
  ["recurring-lot-is-of-its-grant", "a lot before its period", [opened, recurring(), periodOf(0, DAY_1), periodOf(1, DAY_2)]],
  [
    "recurring-lot-is-of-its-grant",
    "a period that is granted twice",
    [opened, recurring({ expires: "never" }), lasting(0, DAY_1), periodOf(0, DAY_1, { lotId: "lot_g_q0", expiresAt: null })]
  ],
  [
    "recurring-lot-is-of-its-grant",
    "a period that is left out, though its lot would not have expired",
    [opened, recurring({ expires: "never" }), lasting(0, DAY_1), DAY_2, lasting(2, DAY_3)]
  ],
  [
    "what-is-due-comes-first",
    "a period that is not granted before the next event",
    [opened, recurring({ expires: "never" }), lasting(0, DAY_1), DAY_1, granted("l", 1)]
  ],
  ["late-refund-is-of-its-charge", "a refund without a charge", [...held, givenBack("r", 1, [part("l", 1)])]],
  [
    "late-refund-is-of-its-charge",
    "a refund that revives a lot on other terms",
    [
      ...[opened, granted("l", 100), reserved("r", 100, lots), succeeded("r", 100, lots)],
      givenBack("r", 100, lots, { revived: [{ lotId: "l", grantedAt: T0, source: "promotion", priority: 10, expiresAt: T2 }] })
    ]
  ],
  [
    "account-folds",
    "a refund to a lot that the account does not know",
    [opened, granted("l", 100), reserved("r", 100, lots), succeeded("r", 100, lots), givenBack("r", 100, lots)]
  ],
  [
    "postings-sum-to-zero",
    "a clawback whose parts do not sum to it",
    [opened, paid("p", 100), clawedBack("p", { amount: 90, fromAvailable: 100 })]
  ],
  [
    "books-agree",
    "a repayment of more than is owed",
    [...spent, clawedBack("p", { amount: 100, debt: 100 }), paid("q", 500), event("DebtRepaid", { lotId: "q", amount: 101 })]
  ],
  ["time-goes-on", "a time before that of the event before", [T1, opened, T0, granted("l", 1)]],
  ["time-goes-on", "a time in another format", [opened, "2026-01-01 01:00:00.000+0", granted("l", 1)]],
  ["job-is-charged-for-its-result", "a charge while the job runs", [...heldForJob, accepted(), started, succeeded("r", 100, lots)]],
  [
    "job-is-charged-for-its-result",
    "a charge after the job failed",
    [...heldForJob, accepted(), failed("Defect"), succeeded("r", 100, lots)]
  ],
  [
    "job-is-charged-for-its-result",
    "a charge for another result",
    [...heldForJob, accepted(), started, recorded, succeeded("r", 100, lots, { replyHash: "x" })]
  ],
  ["job-is-charged-for-its-result", "a charge before the job begins", [...heldForJob, succeeded("r", 100, lots)]],
  ["job-is-refunded-for-its-failure", "a release while the job runs", [...heldForJob, accepted(), started, released("r", 100, lots)]],
  [
    "job-is-refunded-for-its-failure",
    "a release after the job succeeded",
    [...heldForJob, accepted(), started, recorded, released("r", 100, lots)]
  ],
  [
    "job-is-refunded-for-its-failure",
    "a release for another reason than the job's end",
    [...heldForJob, accepted(), cancelled, released("r", 100, lots)]
  ],
  ["job-is-accepted-under-its-hold", "a job without an open hold", [opened, accepted()]],
  ["job-is-accepted-under-its-hold", "a job under the hold of a call", [...held, accepted()]],
  ["job-is-accepted-under-its-hold", "a job of more units than were held", [...heldForJob, accepted({ quantity: 2 })]],
  [
    "job-is-settled",
    "a job that succeeded and was not charged",
    [...heldForJob, accepted(), started, recorded, T1, { of: "account-b", is: opened }],
    6
  ],
  ["address-is-of-one-inbox", "an address that nobody claimed", [...heldFor(CREATE_INBOX), created("x")]],
  ["address-is-of-one-inbox", "an address of another inbox", [...heldFor(CREATE_INBOX), claimed("x", "inbox_j"), created("x")]],
  ["address-is-of-one-inbox", "an address that is claimed again", [...withInbox, claimed("x", "inbox_j")]],
  [
    "address-is-of-one-inbox",
    "a rotation back to an address of before",
    [...withInbox, claimed("y"), inbox("InboxRotated", at("y")), inbox("InboxRotated", at("x"))]
  ],
  ["inbox-receives-while-it-lives", "mail after its end", [...withInbox, inbox("InboxDeleted"), received("x")]],
  ["inbox-receives-while-it-lives", "mail from the instant of its expiry on", [...withInbox, T1, received("x")]],
  [
    "inbox-receives-while-it-lives",
    "mail to its address of before",
    [...withInbox, claimed("y"), inbox("InboxRotated", at("y")), received("x")]
  ],
  ["job-is-settled", "a job that was refused and not released", [...heldForJob, refused, T1, { of: "account-b", is: opened }], 4],
  [
    "job-ends-by-its-deadline",
    "a job that runs after its deadline",
    [...heldForJob, accepted(), started, T2, { of: "account-b", is: opened }],
    5
  ],
  [
    "event-is-readable",
    "a result of an attempt that was taken over",
    [...heldForJob, accepted(), started, job("JobStarted", { runner: "other", attempt: 2, leaseUntil: T1 }), recorded]
  ],
  [
    "proxy-session-ends-by-its-expiry",
    "a proxy session whose expiry was not written",
    [...withSession, counted(1), T2, { of: "account-b", is: opened }],
    5
  ],
  [
    "proxy-session-is-counted-in-time",
    "bytes that are counted long after the expiry",
    [...heldFor(OPEN_SESSION), sessionWithGrace, T1, counted(1), sessionExpired, counted(2), T2, counted(3)]
  ],
  [
    "proxy-session-is-counted-in-time",
    "bytes that are counted long after the session had none left",
    [...heldFor(OPEN_SESSION), sessionWithGrace, counted(100), sessionEnded, counted(101), T1, counted(102)]
  ],
  ["event-is-readable", "a proxy session that expires too early", [...withSession, sessionExpired]],
  ["event-is-readable", "a proxy session that expires twice", [...withSession, T1, sessionExpired, sessionExpired]],
  ["event-is-readable", "a proxy node that counts less than before", [...withSession, counted(2), counted(1)]],
  ["event-is-readable", "a proxy session that ends before its bytes are used up", [...withSession, counted(99), sessionEnded]],
  ["event-is-readable", "a proxy session that ends twice", [...withSession, counted(100), sessionEnded, sessionEnded]],
  ["event-is-readable", "a proxy session that is opened twice", [...withSession, sessionOpened]],
  ["session-is-of-an-account", "a session without an account", [linkRequested, linkUsed, signedIn()]],
  ["session-follows-its-link", "a session by a link that was not used", [opened, linkRequested, signedIn()]],
  ["session-follows-its-link", "a second session by a link", [...withSignIn, signedIn({}, "ses_2")]],
  ["session-follows-its-link", "a session by no link", [opened, linkRequested, linkUsed, signedIn({ proofId: null })]],
  ["passkey-is-of-an-account", "a passkey without an account", [passkeyAdded]],
  ["session-follows-its-passkey", "a session by a passkey that did not sign", [opened, passkeyAdded, byPasskey()]],
  [
    "session-follows-its-passkey",
    "a second session by a signature",
    [opened, passkeyAdded, signatureOf("one"), byPasskey(), byPasskey({}, "ses_2")]
  ],
  [
    "session-follows-its-passkey",
    "a session by another account's passkey",
    [opened, { of: "account-b", is: opened }, passkeyAdded, signatureOf("one"), byPasskey({ accountId: "b" })]
  ],
  ["session-follows-its-passkey", "a session by no passkey", [opened, passkeyAdded, signatureOf("one"), byPasskey({ proofId: null })]],
  ["event-is-readable", "a passkey that signs a challenge twice", [opened, passkeyAdded, signatureOf("one"), signatureOf("one")]],
  ["event-is-readable", "a passkey whose count falls", [opened, passkeyAdded, signatureOf("one", 2), signatureOf("two", 1)]],
  ["event-is-readable", "a passkey that signs too late", [opened, passkeyAdded, T1, signatureOf("one")]],
  ["event-is-readable", "a passkey that signs after its end", [...withPasskey, signatureOf("three")]],
  ["event-is-readable", "a passkey that is added twice", [opened, passkeyAdded, passkeyAdded]],
  ["alert-is-of-an-account", "a price alert without an account", [alertRegistered]],
  [
    "alert-mail-goes-to-an-account",
    "a mail long after the account was closed",
    [...alertFell, event("AccountClosed"), T1, alertMail("AlertMailSending")]
  ],
  [
    "alert-mail-has-an-outcome",
    "a mail without an outcome",
    [...alertFell, alertMail("AlertMailSending"), T2, { of: "account-b", is: opened }],
    4
  ],
  ["event-is-readable", "a price alert that is told twice of one fall", [...alertFell, alertReached(2)]],
  ["event-is-readable", "a fall that does not reach the target", [opened, alertRegistered, alertReached(1, "20.01")]],
  [
    "event-is-readable",
    "a mail that is sent again after it was sent",
    [...alertFell, alertMail("AlertMailSending"), alertMail("AlertMailSent"), alertMail("AlertMailSending", 2)]
  ],
  [
    "event-is-readable",
    "a mail that is sent again after it was in doubt",
    [...alertFell, alertMail("AlertMailSending"), alertMail("AlertMailInDoubt"), alertMail("AlertMailSending", 2)]
  ],
  [
    "event-is-readable",
    "a mail that is sent again too early",
    [...alertFell, alertMail("AlertMailSending"), alertRefused(T1), alertMail("AlertMailSending", 2)]
  ],
  ["event-is-readable", "a mail after the end of its alert", [...withAlert, alertMail("AlertMailSending", 1, 2)]],
  ["session-ends-by-its-end", "a session whose end was not written", [...withSignIn, DAY_31, { of: "account-b", is: opened }], 4],
  ["coupon-is-of-its-shop", "a coupon of another shop", [couponSubmitted({ domain: "other.example.com" })]],
  ["coupon-is-of-its-shop", "a coupon that is named after another code", [couponSubmitted({ code: "SAVE30" })]],
  ["coupon-is-of-its-shop", "a code that is not in its canonical form", [couponSubmitted({ code: "save20" })]],
  ["coupon-is-of-its-shop", "a request of another shop", [shopRequested("ada", "other.example.com")]],
  ["shop-is-requested-once", "a shop that an account asks for twice", [shopRequested("ada"), shopRequested("bob"), shopRequested("ada")]],
  ["event-is-readable", "a coupon that is submitted twice", [couponSubmitted(), couponSubmitted()]],
  ["event-is-readable", "a coupon that is accepted twice", [...withShop, couponAccepted]],
  ["event-is-readable", "a report of no coupon", [couponReported]],
  ["price-is-noted-once-a-day", "a price that is observed twice", [priceObserved("1"), priceObserved("1.0")]],
  ["price-is-noted-once-a-day", "a price that is claimed twice", [...withShop, priceClaimed("2")]],
  ["event-is-readable", "a price that is no decimal", [priceObserved("1e3")]],
  ["event-is-readable", "an offer without an address", [priceObserved("1", { offer: { title: "Mug" } })]],
  ["event-is-readable", "a session that is opened twice", [...withSignIn, signedIn()]],
  ["event-is-readable", "a session that expires too early", [...withSignIn, signedOut("expired")]],
  ["event-is-readable", "a session that ends twice", [...withSignIn, signedOut(), signedOut()]],
  ["event-is-readable", "a session that is used after its end", [...withSignIn, signedOut(), sessionUsed(DAY_31)]],
  ["event-is-readable", "a session that a use moves past its last day", [...withSignIn, sessionUsed("2026-05-01T00:00:00.000Z")]],
  ["event-is-readable", "a link that is used twice", [...withSignIn, linkUsed]],
  ["event-is-readable", "a link that is used after its end", [opened, linkRequested, T1, linkUsed]],
  ["proxy-session-is-opened-under-its-reservation", "a proxy session without a hold", [opened, sessionOpened]],
  ["proxy-session-is-opened-under-its-reservation", "a proxy session under the hold of another call", [...held, sessionOpened]],
  ["proxy-session-is-opened-under-its-reservation", "a proxy session before its hold", [opened, granted("l", 1_000), sessionOpened]],
  [
    "proxy-session-is-opened-under-its-reservation",
    "a proxy session of another account than its hold",
    [...heldFor(OPEN_SESSION), session("ProxySessionOpened", { ...sessionOpened.is, accountId: "b" })]
  ],
  ["proxy-session-is-charged-when-opened", "a charge without a proxy session", [...heldFor(OPEN_SESSION), succeeded("r", 100, lots)]],
  ["payment-grants-what-it-bought", "a lot of a payment that was not captured", [opened, requested(), bought()]],
  ["payment-grants-what-it-bought", "a lot of more than a payment bought", [opened, requested(), paymentCaptured, bought(1_001)]],
  [
    "payment-grants-what-it-bought",
    "a lot that expires, of a payment that bought one that does not",
    [opened, requested(), paymentCaptured, bought(1_000, { expiresAt: T1 })]
  ],
  ["payment-grants-what-it-bought", "a bonus of more than a payment has", [opened, requested(), paymentCaptured, bought(), bonus(51)]],
  ["payment-grants-what-it-bought", "a bonus before its payment was captured", [opened, requested(), bonus()]],
  [
    "payment-grants-what-it-bought",
    "a lot of another account's payment",
    [opened, payment("PaymentRequested", { ...requested().is, accountId: "b" }), paymentCaptured, bought()]
  ],
  ["lot-follows-its-payment", "a clawback before its dispute", [...withPayment, followed(1, 500)]],
  ["lot-follows-its-payment", "a clawback out of proportion", [...withPayment, disputed, followed(1, 499)]],
  ["lot-follows-its-payment", "a change that is made twice", [...withPayment, disputed, followed(1, 500), followed(1, 500)]],
  ["lot-follows-its-payment", "a reversal of a dispute that is open", [...withPayment, disputed, followed(1, 500), unfollowed(2, 500)]],
  [
    "lot-follows-its-payment",
    "a change of a payment that was made elsewhere",
    [opened, paid("p", 1_000), clawedBack("p", { amount: 500, fromAvailable: 500, change: 1 })]
  ],
  ["payment-is-settled", "a captured payment without its lot", [opened, requested(), paymentCaptured, invoiced(), ...LATER], 3],
  ["payment-is-settled", "a dispute whose credits stayed", [...withPayment, disputed, ...documentsOfDispute.slice(0, 2), ...LATER], 6],
  [
    "payment-is-settled",
    "a dispute that was won, whose credits stayed away",
    [...withDispute.slice(0, -1), ...documentsOfDispute, ...LATER],
    8
  ],
  ["lot-follows-its-payment", "a reversal of a refund that stands", [...withPayment, refunded, followed(1, 500), unfollowed(2, 500)]],
  [
    "payment-is-settled",
    "a refund that failed, whose credits stayed away",
    [...withRefundFailed.slice(0, -1), ...documentsOfRefund, ...LATER],
    8
  ],
  ["manual-payment-is-approved", "a manual payment that nobody approved", [opened, requested("manual"), manualBegun, paymentCaptured]],
  [
    "manual-payment-is-approved",
    "a manual payment that was rejected",
    [opened, requested("manual"), manualBegun, manual("ManualPaymentRejected", { reason: "None came" }), paymentCaptured]
  ],
  ["invoice-follows-its-payment", "an invoice of less than was paid", [...withPayment, invoiced({ total: 999 })]],
  [
    "invoice-follows-its-payment",
    "an invoice with a line of something else",
    [...withPayment, invoiced({ lines: [lineOf("Tea", 1_000)] })]
  ],
  ["invoice-follows-its-payment", "an invoice of a payment that was not captured", [opened, requested(), invoiced()]],
  ["invoice-follows-its-payment", "an invoice of another day", [...withPayment, invoiced({ issuedAt: T1 })]],
  ["invoice-follows-its-payment", "a credit note of more than went back", [...withInvoice, refunded, followed(1, 500), creditNote(7, 501)]],
  [
    "invoice-follows-its-payment",
    "a credit note for another invoice",
    [...withInvoice, refunded, followed(1, 500), creditNote(7, 500, { invoice: "INV-2026-01-000002" })]
  ],
  ["payment-has-its-invoice", "a captured payment without an invoice", [...withPayment, ...LATER], 3],
  ["payment-has-its-invoice", "a refund without a credit note", [...withInvoice, refunded, followed(1, 500), ...LATER], 7],
  ["event-is-readable", "an invoice number that is left out", [...withPayment, invoiced({}, 2)]],
  ["event-is-readable", "a second invoice for one capture", [...withInvoice, invoiced({}, 2)]],
  [
    "subscription-period-is-paid",
    "a period before its payment was captured",
    [opened, subscriptionStarted, periodRequested, periodBegan()]
  ],
  [
    "subscription-period-is-paid",
    "a period that is longer than what was paid for",
    [...withSubscription.slice(0, -1), periodBegan({ until: MONTHS.next })]
  ],
  ["subscription-period-is-paid", "a plan that was not paid for", [...withSubscription, upgradeRequested(), planChanged]],
  [
    "subscription-period-follows",
    "a period after a gap",
    [...withSubscription, periodBegan({ ...secondPeriod, from: "2026-02-02T00:00:00.000Z" })]
  ],
  ["subscription-period-follows", "a period over the one before it", [...withSubscription, periodBegan({ ...secondPeriod, from: T1 })]],
  [
    "subscription-upgrade-is-prorated",
    "an upgrade at the whole price",
    [...withSubscription, upgradeRequested({ charged: 3_000, amount: 2_452 })]
  ],
  [
    "subscription-upgrade-is-prorated",
    "an upgrade that takes off too little",
    [...withSubscription, upgradeRequested({ credited: 500, amount: 1_145 })]
  ],
  ["subscription-upgrade-is-prorated", "an upgrade with too few credits", [...withSubscription, upgradeRequested({ credits: 2_000 })]],
  ["subscription-upgrade-is-prorated", "an upgrade of another period", [...withSubscription, upgradeRequested({ began: T1 })]],
  ["event-is-readable", "a subscription that starts twice", [...withSubscription, subscriptionStarted]],
  ["event-is-readable", "a payment that is captured twice", [...withPayment, paymentCaptured]],
  ["event-is-readable", "a refund that fails twice", [...withRefundFailed, refundFailed]],
  ["event-is-readable", "a refund that fails and was never made", [...withPayment, refundFailed]],
  ["event-is-readable", "a payment that is requested twice", [...withPayment, requested()]],
  ["event-is-readable", "a dispute that ends before it is opened", [...withPayment, disputeWon]],
  ["event-is-readable", "an inbox that is created twice", [...withInbox, claimed("y"), created("y")]],
  ["event-is-readable", "an inbox that expires too early", [...withInbox, inboxExpired]],
  ["event-is-readable", "an inbox that ends twice", [...withInbox, T1, inboxExpired, inboxExpired]],
  ["event-is-readable", "a message that is received twice", [...withInbox, received("x"), received("x")]],
  [
    "event-is-readable",
    "a message more than an inbox may have",
    [...withInbox, ...Array.from({ length: Inbox.MAX_MESSAGES + 1 }, (_, i) => received("x", `m${i}`))]
  ],
  ["event-is-readable", "a byte more than an inbox may have", [...withInbox, received("x", "m", Inbox.MAX_BYTES), received("x", "n")]],
  ["inbox-moves-for-one-call", "a move whose call held nothing", [...withInbox, ...moved()]],
  ["inbox-moves-for-one-call", "a move before its hold", [...withInbox, ...moved(), heldForMove()], 7],
  ["inbox-moves-for-one-call", "a move under the hold of another call", [...withInbox, heldForMove(), ...moved("y", "req_t")]],
  [
    "inbox-moves-for-one-call",
    "a move under the hold of another operation",
    [...withInbox, heldForMove({ operation: "grammar.check" }), ...moved()]
  ],
  ["inbox-moves-for-one-call", "two moves for one call", [...withInbox, heldForMove(), ...moved(), ...moved("z")]],
  [
    "inbox-moves-for-one-call",
    "a second move for the hold of a late charge",
    [
      ...[...withInbox, heldForMove({ expiresAt: HALF_PAST }), ...moved(), HALF_PAST],
      released("s", 100, lots, { reason: "abandoned", dueAt: HALF_PAST }),
      ...[reserved("t", 100, lots, { operation: ROTATE_INBOX, requestId: "req_s", lateOf: "s" }), ...moved("z")]
    ]
  ],
  ["inbox-is-created-under-its-reservation", "an inbox without a hold", [opened, claimed("x"), created("x")]],
  ["inbox-is-created-under-its-reservation", "an inbox under the hold of another call", [...held, claimed("x"), created("x")]],
  [
    "inbox-is-created-under-its-reservation",
    "an inbox of another account than its hold",
    [...heldFor(CREATE_INBOX), claimed("x"), created("x", { accountId: "b" })]
  ],
  ["inbox-is-charged-when-created", "a charge without an inbox", [...heldFor(CREATE_INBOX), claimed("x"), succeeded("r", 100, lots)]],
  [
    "inbox-ends-by-its-expiry",
    "an inbox whose expiry was not written",
    [...withInbox, received("x"), T2, { of: "account-b", is: opened }],
    6
  ],
  ["event-is-readable", "a text message that is received twice", [opened, smsReceived, smsReceived]],
  ["event-is-readable", "a wait with two outcomes", [...heldFor(WAIT), wait("WaitAbandoned"), wait("WaitTimedOut")]],
  ["wait-is-of-its-reservation", "a wait without a hold", [opened, wait("WaitTimedOut")]],
  ["wait-is-of-its-reservation", "a wait under the hold of another call", [...held, wait("WaitTimedOut")]],
  ["wait-is-of-its-reservation", "a wait of another account than its hold", [...heldFor(WAIT), wait("WaitTimedOut", { accountId: "b" })]],
  ["wait-is-of-its-reservation", "a wait that names another reservation", [...heldFor(WAIT), wait("WaitTimedOut", { reservationId: "s" })]],
  ["wait-is-charged-for-its-outcome", "a charge without an outcome", [...heldFor(WAIT), succeeded("r", 100, lots)]],
  [
    "wait-is-charged-for-its-outcome",
    "a charge after the caller left",
    [...heldFor(WAIT), wait("WaitAbandoned"), succeeded("r", 100, lots)]
  ],
  [
    "wait-is-charged-for-its-outcome",
    "a late charge after the caller left",
    [
      ...[opened, granted("l", 1_000), reserved("r", 100, lots, { operation: WAIT, expiresAt: T1 }), wait("WaitAbandoned")],
      ...[T1, released("r", 100, lots, { reason: "abandoned", dueAt: T1 })],
      ...[reserved("s", 100, lots, { operation: WAIT, lateOf: "r" }), succeeded("s", 100, lots)]
    ]
  ],
  ["code-is-of-a-message", "a code of a message that was not received", [...heldFor(WAIT), found()]],
  ["code-is-of-a-message", "a code of a message that came later", [...heldFor(WAIT), found(), smsReceived], 4],
  ["code-is-of-a-message", "a code of a message to another number", [...heldFor(WAIT), smsReceived, found({ number: "+15005550007" })]],
  ["code-is-of-a-message", "a code of a message that was received at a later time", [T1, ...[smsReceived, T0], ...heldFor(WAIT), found()]],
  ["code-is-of-a-message", "a code of a message of the day before", [smsReceived, "2026-01-02T00:06:00.000Z", ...heldFor(WAIT), found()]]
]
