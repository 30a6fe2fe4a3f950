/** Every rule of an audit: what it says, and the tenet that it guards. The names are those of reports, and never change. */

/** The tenets, as `docs/tenets.md` numbers them. */
export const TENETS = {
  1: "The log is the truth",
  2: "No work without a hold, no hold without an end",
  3: "One operation, one definition",
  4: "Pure in the middle, effects at the rim",
  5: "A real answer or an error"
} as const
export type Tenet = keyof typeof TENETS

const CATALOG = {
  // The log
  "position-increases": [1, "Events have one order: each has a greater position than the one before it."],
  "position-follows": [1, "An export has every event: its positions have no gaps."],
  "line-is-an-event": [1, "Every line of an export is one event, exactly as the command events prints it."],
  "event-id-is-unique": [1, "No event occurs twice."],
  "revision-follows": [1, "The events of a stream are numbered without gaps, so none was removed, inserted or moved."],
  "link-holds": [1, "The hash of each event covers the event and the hash before it, so no event was changed."],
  "time-goes-on": [1, "Within a stream, time never goes back."],
  "stream-is-known": [1, "Every stream is of a kind that can be replayed."],
  "event-is-readable": [1, "Every event has the form of its type, and can follow the events before it."],
  "log-extends-head": [1, "The log begins as it was when the earlier head was taken."],
  "stream-extends-head": [1, "Each stream begins as it was when the earlier head was taken."],
  "snapshot-agrees": [1, "A stored snapshot equals the state that the events lead to."],

  // Accounts
  "account-is-opened-first": [1, "The first event of an account opens it, and no later event does."],
  "account-folds": [1, "Every event of an account is possible in the state of the account before it."],
  "barred-account-holds-nothing": [2, "An account that is suspended, closed or in debt gets no new hold."],
  "closed-account-is-granted-nothing": [1, "A closed account is granted no credits, except replacements of its own expired ones."],
  "trial-has-its-slots": [2, "An account that was never verified has ten trials; each is used or released once."],

  // Lots
  "lot-is-granted-once": [1, "A lot is granted once."],
  "paid-lot-names-its-payment": [1, "A lot that was paid for names its payment."],
  "payment-grants-once": [1, "A payment buys credits once, for one account."],
  "sign-up-credits-are-granted-once": [1, "An account gets its sign-up credits once."],
  "what-is-due-comes-first": [1, "What has expired is written off before anything else happens, so nobody spends expired credits."],
  "lot-expires-at-its-time": [1, "All free credits of a lot expire at its expiry, and not before."],

  // Recurring grants, and what is told
  "recurring-grant-starts-once": [1, "A recurring grant begins when it is started, and grants credits that nobody paid for."],
  "recurring-lot-is-of-its-grant": [1, "A recurring grant grants each of its periods once, when the period has begun, and by its terms."],
  "recurring-grant-stops-once": [1, "A recurring grant is stopped once."],
  "low-balance-is-told": [1, "A balance that falls below its threshold is told with the event that took the credits."],
  "low-balance-is-true": [1, "What is told of a low balance is true, and was not told before."],
  "lot-expiry-is-announced-once": [1, "The expiry of a lot is announced once, before it, with the credits that the lot has."],

  // Holds
  "reservation-is-made-once": [2, "A reservation is made once."],
  "hold-is-priced": [3, "A hold is quantity × the unit price of a version that was published and in force."],
  "hold-is-its-lots": [2, "The amount of a hold is the sum of what it takes from lots."],
  "hold-takes-what-is-free": [2, "A hold takes only credits that were granted, are free, and have not expired."],
  "hold-takes-lots-in-order": [2, "Lots are used by expiry, then priority, then age."],
  "hold-has-a-deadline": [2, "Every hold has a deadline: its own, or that of its job."],
  "hold-lapses-at-its-time": [2, "An abandoned hold is released at its deadline, and not before."],
  "key-runs-once": [2, "Under one idempotency key, work is charged once."],
  "late-call-was-abandoned": [5, "A late charge is for a call whose hold was released as abandoned."],
  "hold-ends-once": [2, "Every hold ends at most once: charged or released."],
  "hold-is-not-overdue": [2, "Every hold ends by its deadline."],
  "holds-are-covered": [2, "The held credits of all lots are the sum of the open holds."],

  // Charges and refunds
  "charge-is-priced": [3, "A charge is the units done × the unit price of its hold."],
  "charge-is-part-of-its-hold": [2, "A charge takes at most what was held, lot by lot."],
  "refund-is-its-hold": [2, "A release returns the whole hold to the lots that it came from."],
  "late-refund-is-of-its-charge": [2, "A refund returns at most what was charged and not refunded yet."],

  // Jobs
  "job-is-accepted-under-its-hold": [2, "A job is accepted under an open hold for its operation and quantity."],
  "job-is-charged-for-its-result": [5, "A job is charged only after it succeeded, for its units and its result."],
  "job-is-refunded-for-its-failure": [5, "The hold of a job is released only after the job failed, was cancelled or was refused."],
  "job-is-settled": [2, "After a job ended, its hold is charged or released."],
  "job-ends-by-its-deadline": [2, "A job ends by its deadline."],

  // Waits for codes
  "wait-is-of-its-reservation": [2, "A wait for a code is of a call that its account held or that was free, and is named after it."],
  "wait-is-charged-for-its-outcome": [
    5,
    "A wait is charged only after it found a code or its time was over, and never after its caller left."
  ],
  "code-is-of-a-message": [5, "A code that was found is of a message that the awaited number had received, at most a day before."],

  // Inboxes
  "inbox-is-created-under-its-reservation": [
    2,
    "An inbox is created by a call that its account held or that was free, and is named after it."
  ],
  "inbox-is-charged-when-created": [5, "The creation of an inbox is charged only after the inbox was created."],
  "inbox-moves-for-one-call": [
    2,
    "An inbox moves to another address once for each call, which its account held or that was free. Moves that name no call are not checked."
  ],
  "address-is-of-one-inbox": [1, "An address is claimed once, by the inbox that gets it, and never given again."],
  "inbox-receives-while-it-lives": [1, "An inbox receives mail at its present address only, and none after it was deleted or has expired."],
  "inbox-ends-by-its-expiry": [1, "The end of an inbox is in the log soon after its expiry."],

  // Proxy sessions
  "proxy-session-is-opened-under-its-reservation": [
    2,
    "A proxy session is opened by a call that its account held or that was free, and is named after it."
  ],
  "proxy-session-is-charged-when-opened": [5, "A proxy session is charged only after it was opened."],
  "proxy-session-is-counted-in-time": [
    1,
    "The bytes of a proxy session are counted while it lives and for its grace after that, unless it was opened without one."
  ],
  "proxy-session-ends-by-its-expiry": [1, "The end of a proxy session is in the log soon after its expiry."],

  // Payments made here
  "payment-grants-what-it-bought": [1, "A payment grants what it bought, and its bonus, to its account, after it was captured."],
  "lot-follows-its-payment": [
    1,
    "A lot follows the refunds and disputes of its payment, each once, in order, and in proportion to the money."
  ],
  "payment-is-settled": [1, "Soon after a payment was captured or went back, its account has what is left of it."],
  "manual-payment-is-approved": [1, "A manual payment is captured only after an operator approved it."],
  "invoice-follows-its-payment": [
    1,
    "An invoice or a credit note follows from one event of its payment, says what that event changed, and names the payment's first invoice."
  ],
  "payment-has-its-invoice": [
    1,
    "Soon after a payment was captured, or money went back or came again, there is the document that says so."
  ],
  // Subscriptions
  "subscription-period-follows": [1, "A period of a subscription begins where the one before it ended."],
  "subscription-period-is-paid": [1, "A period of a subscription, and a change to a dearer plan, follows the capture of its payment."],
  "subscription-upgrade-is-prorated": [1, "A change to a dearer plan costs the rest of its price less the rest of the old one."],

  // Sessions of people
  "session-is-of-an-account": [1, "A session is opened for an account that was opened before."],
  "session-follows-its-link": [1, "A session that a mailed link opened follows the one use of that link."],
  "passkey-is-of-an-account": [1, "A passkey is added to an account that was opened before."],
  "session-follows-its-passkey": [1, "A session that a passkey opened follows a signature of that passkey, which is its account's."],
  "session-ends-by-its-end": [1, "The end of a session that was not used, or lasted its time, is in the log soon after."],

  // Price alerts
  "alert-is-of-an-account": [1, "A price alert is registered for an account that was opened before."],
  "alert-mail-goes-to-an-account": [1, "No mail of a price alert is sent long after its account was closed."],
  "alert-mail-has-an-outcome": [1, "Soon after a mail of a price alert is sent, the log has its outcome, or that it is in doubt."],
  // Coupons and prices
  "coupon-is-of-its-shop": [1, "A coupon, and what is said of a shop, is in the stream of that shop; a coupon is named after its code."],
  "shop-is-requested-once": [1, "An account asks for a shop once."],
  "price-is-noted-once-a-day": [1, "The same price of a product is observed, or claimed by one caller, once a day."],

  // Payments that are taken back, and debt
  "clawback-is-of-a-paid-lot": [1, "A payment that is taken back takes its lot with it: free credits, then held ones; the rest is debt."],
  "clawback-takes-what-is-released": [
    2,
    "Held credits that were clawed back go back when the hold ends, or become debt when it is charged."
  ],
  "reversal-is-of-a-clawback": [1, "A reversal returns at most what was clawed back."],
  "debt-is-repaid-by-paid-lots": [1, "Debt is repaid by credits that were paid for, and never by more than is owed."],

  // Double entry
  "postings-sum-to-zero": [1, "The postings of every event sum to zero."],
  "books-agree": [1, "After every event, the balances of the books are those of the account's lots."]
} as const satisfies Readonly<Record<string, readonly [tenet: Tenet, sentence: string]>>

export type RuleName = keyof typeof CATALOG

/** A rule, for a list that people read. */
export interface Statement {
  readonly name: RuleName
  readonly sentence: string
  /** The number of the tenet that the rule guards, and what it says. */
  readonly tenet: Tenet
  readonly guards: (typeof TENETS)[Tenet]
}

/** Every rule that an audit can report. Categories of a host may report others. */
export const statements: ReadonlyArray<Statement> = Object.entries(CATALOG).map(([name, [tenet, sentence]]) => ({
  name: name as RuleName,
  sentence,
  tenet,
  guards: TENETS[tenet]
}))

/** The sentence of a rule; undefined for a rule of a host. */
export const sentenceOf = (name: string): string | undefined => statements.find((statement) => statement.name === name)?.sentence
