/** The invariants of streams other than accounts and jobs: they pass correct logs, and name the rule that a wrong log breaks. */
import { Credits, type Invoice, lotIdOfPayment, Payment, Verification } from "@millrace/core"
import { describe, expect, test } from "vitest"
import { type CheckedEvent, invariants, type Recorded } from "../src/Invariants.ts"

const on =
  (stream: string) =>
  (event: CheckedEvent, at = 0): Recorded => ({ stream, event, at })

const broken = (events: ReadonlyArray<Recorded>) => [...new Set(invariants(events).map(({ rule }) => rule))]

type Cases = ReadonlyArray<readonly [what: string, rule: string, events: ReadonlyArray<Recorded>]>

describe("the invariants of inboxes", () => {
  const claimed = (hash: string, inboxId = "inbox_1") => on(`address-${hash}`)({ _tag: "AddressClaimed", inboxId })
  const inbox = on("inbox-inbox_1")
  const created = (addressHash = "a") =>
    inbox({ _tag: "InboxCreated", accountId: "acc_1", addressHash, sealedAddress: "", sealedLabel: null, expiresAt: 1_000 })
  const rotated = (addressHash: string, at = 1) => inbox({ _tag: "InboxRotated", addressHash, sealedAddress: "" }, at)
  const received = (messageId: string, addressHash = "a", at = 1) =>
    inbox({ _tag: "MessageReceived", messageId, addressHash, size: 1, blobId: "", sealedSummary: "" }, at)
  const deleted = inbox({ _tag: "InboxDeleted" }, 2)
  const expired = (at: number) => inbox({ _tag: "InboxExpired" }, at)

  test("pass an inbox that is moved and deleted, and one that expires", () => {
    const moved = [claimed("a"), created(), received("1"), claimed("b"), rotated("b"), received("2", "b"), deleted]
    expect(broken(moved)).toEqual([])
    expect(broken([created(), received("1"), expired(1_000)])).toEqual([])
  })

  const ADDRESS = "an address is claimed once, and belongs to the inbox that claimed it for ever"
  const INBOX = "an inbox is created first, and nothing happens to it after its end or its expiry"
  const MAIL = "a message comes once, to the present address of its inbox"
  const CASES: Cases = [
    ["an address that is claimed twice", ADDRESS, [claimed("a"), claimed("a", "inbox_2"), claimed("a")]],
    ["an address of another inbox", ADDRESS, [claimed("a", "inbox_2"), created()]],
    ["an address that the inbox had before", ADDRESS, [created(), rotated("b"), rotated("a")]],
    ["an inbox that is created twice", INBOX, [created(), created("b")]],
    ["a deletion of nothing", INBOX, [deleted]],
    ["an end after the end", INBOX, [created(), deleted, expired(1_000)]],
    ["an expiry before its time", INBOX, [created(), expired(999)]],
    ["mail after the expiry", INBOX, [created(), received("1", "a", 1_000)]],
    ["mail that comes twice", MAIL, [created(), received("1"), received("1")]],
    ["mail to an address that was moved away", MAIL, [created(), rotated("b"), received("1")]]
  ]
  test.each(CASES)("report %s", (_, rule, events) => expect(broken(events)).toContain(rule))
})

describe("the invariants of waits", () => {
  const RESERVATION = "res_01ARZ3NDEKTSV4RRFFQ69G5FAV"
  const wait = { accountId: "acc_1", reservationId: RESERVATION, number: "+15005550006" }
  const outcome = on(`verification-${Verification.idOf(RESERVATION)}`)
  const found = outcome({ _tag: "CodeFound", ...wait, sms: "sms_1" })
  const text = (number = "+15005550006") => on("sms-sms_1")({ _tag: "SmsReceived", source: "host", number, text: { size: 1, hash: "h" } })
  const account = on("account-acc_1")
  const lots = [{ lotId: "lot_1", amount: Credits.of(5) }]
  const hold = (reservationId: string, lateOf?: string) =>
    account({
      ...{ _tag: "CreditReserved", reservationId, requestId: "q1", operation: "verification.wait", quantity: 1, priceVersion: 1 },
      ...{ amount: Credits.of(5), lots, expiresAt: 9, ...(lateOf === undefined ? {} : { lateOf }) }
    } as CheckedEvent)
  const charged = (reservationId = RESERVATION) =>
    account({ _tag: "OperationSucceeded", reservationId, quantity: 1, charged: Credits.of(5), lots, replyHash: "h" })
  const WAITS = ["wait", "text message"]
  /** Of waits alone: the account of these examples never got the credits that it holds. */
  const brokenWaits = (events: ReadonlyArray<Recorded>) => broken(events).filter((rule) => WAITS.some((word) => rule.includes(`a ${word}`)))

  test("pass a wait that is charged, also late, and one that is abandoned", () => {
    expect(brokenWaits([text(), hold(RESERVATION), found, charged()])).toEqual([])
    expect(brokenWaits([text(), hold(RESERVATION), found, hold("late", RESERVATION), charged("late")])).toEqual([])
    expect(brokenWaits([hold(RESERVATION), outcome({ _tag: "WaitAbandoned", ...wait })])).toEqual([])
  })

  const TEXT = "a text message is received once, and a code is of one that came to the number"
  const ONCE = "a wait has one outcome"
  const CHARGE = "a wait is charged after its outcome, and not if its caller left"
  const CASES: Cases = [
    ["a message that is received twice", TEXT, [text(), text()]],
    ["a code of a message to another number", TEXT, [text("+15005550007"), found]],
    ["two outcomes", ONCE, [text(), found, outcome({ _tag: "WaitTimedOut", ...wait })]],
    ["an outcome of another reservation", ONCE, [outcome({ _tag: "WaitTimedOut", ...wait, reservationId: "res_2" })]],
    ["a charge before the outcome", CHARGE, [hold(RESERVATION), charged(), found, text()]],
    ["a charge of a caller who left", CHARGE, [hold(RESERVATION), outcome({ _tag: "WaitAbandoned", ...wait }), charged()]]
  ]
  test.each(CASES)("report %s", (_, rule, events) => expect(brokenWaits(events)).toContain(rule))
})

describe("the invariants of proxy sessions", () => {
  const session = on("proxySession-proxy_1")
  const terms = {
    ...({ _tag: "ProxySessionOpened", accountId: "acc_1", protocol: "http", mode: "sticky", country: "DE", region: null } as const),
    ...{ host: "h", port: 1, ip: "192.0.2.1", passwordHash: "h", expiresAt: 1_000, byteLimit: 100, connectionLimit: 1 }
  }
  const opened = session(terms)
  const bounded = session({ ...terms, countGrace: 10 })
  const counted = (sent: number, node = "node_1", at = 1) =>
    session({ _tag: "ProxyTrafficCounted", node, sent, received: 0, connections: 1 }, at)
  const ended = session({ _tag: "ProxySessionEnded", reason: "bytes" }, 1)
  const expired = (at: number) => session({ _tag: "ProxySessionExpired" }, at)

  test("pass a session that uses up its bytes at two nodes, and one that expires and is counted late", () => {
    expect(broken([opened, counted(60), counted(40, "node_2"), ended])).toEqual([])
    expect(broken([opened, counted(60), expired(1_000), counted(70)])).toEqual([])
    expect(broken([bounded, counted(60), expired(1_000), counted(70, "node_1", 1_010)])).toEqual([])
    expect(broken([bounded, counted(100), ended, counted(101, "node_1", 11)])).toEqual([])
    expect(broken([opened, counted(60), session({ _tag: "ProxySessionEnded", reason: "administrator" }, 1)])).toEqual([])
    // Of an earlier build
    expect(broken([opened, counted(60, "node_1", 9_999)])).toEqual([])
  })

  const TRAFFIC = "what a node counts never falls, and is counted within the grace after the end of the session"
  const SESSION = "a proxy session is opened first, and ends once: at its expiry, when its bytes are used up, or by an administrator"
  const CASES: Cases = [
    ["a session that is opened twice", SESSION, [opened, opened]],
    ["traffic of nothing", SESSION, [counted(1)]],
    ["an end before the bytes are used up", SESSION, [opened, counted(99), ended]],
    ["an expiry before its time", SESSION, [opened, expired(999)]],
    ["an end after the end", SESSION, [opened, counted(100), ended, expired(1_000)]],
    ["a count that falls", TRAFFIC, [opened, counted(60), counted(59)]],
    ["a count after the grace", TRAFFIC, [bounded, expired(1_000), counted(1, "node_1", 1_011)]],
    ["a count after the grace of an expiry that was not written", TRAFFIC, [bounded, counted(1, "node_1", 1_011)]],
    ["a count long after the bytes were used up", TRAFFIC, [bounded, counted(100), ended, counted(101, "node_1", 12)]]
  ]
  test.each(CASES)("report %s", (_, rule, events) => expect(broken(events)).toContain(rule))
})

describe("the invariants of sessions and links", () => {
  const link = on("signIn-link_1")
  const requested = link({
    ...{ _tag: "SignInRequested", secretHash: "h", browserHash: "h" },
    sealedAddress: "",
    provisional: null,
    expiresAt: 100
  })
  const used = (at = 1) => link({ _tag: "SignInUsed" }, at)
  const opened = (id = "ses_1", proofId: string | null = "link_1") =>
    on(`session-${id}`)({
      ...{ _tag: "SessionOpened", accountId: "acc_1", secretHash: "h", proof: "mailLink", proofId, sealedClient: null },
      ...{ idleAt: 1_000, expiresAt: 3_000 }
    })
  const session = on("session-ses_1")
  const prolonged = (idleAt: number, at: number) => session({ _tag: "SessionUsed", idleAt }, at)
  const ended = (reason: "signedOut" | "expired", at: number) => session({ _tag: "SessionEnded", reason }, at)

  test("pass a session by a link that is used and ends, one that expires, and sessions without the events of links", () => {
    expect(broken([requested, used(), opened(), prolonged(1_999, 999), ended("signedOut", 1_500)])).toEqual([])
    expect(broken([requested, used(), opened(), ended("expired", 1_000)])).toEqual([])
    expect(broken([opened()])).toEqual([])
  })

  const SESSION = "a person's session is opened once, is used before its end, and ends once; a link is used once, in time"
  const LINK = "each session by a link follows a use of its own"
  const CASES: Cases = [
    ["a session that is opened twice", SESSION, [opened(), opened()]],
    ["the end of nothing", SESSION, [ended("signedOut", 1)]],
    ["an end after the end", SESSION, [opened(), ended("signedOut", 1), ended("signedOut", 2)]],
    ["a use after the end", SESSION, [opened(), ended("signedOut", 1), prolonged(1_500, 2)]],
    ["a use past its time", SESSION, [opened(), prolonged(2_000, 1_000)]],
    ["a use that moves its last day", SESSION, [opened(), prolonged(3_001, 1)]],
    ["an expiry before its time", SESSION, [opened(), ended("expired", 999)]],
    ["a link that is asked for twice", SESSION, [requested, requested]],
    ["a link that is used twice", SESSION, [requested, used(), used(2)]],
    ["a link that is used late", SESSION, [requested, used(100)]],
    ["a session by an unused link", LINK, [requested, opened()]],
    ["two sessions by one use", LINK, [requested, used(), opened(), opened("ses_2")]],
    ["a session by no link", LINK, [requested, used(), opened("ses_1", null)]]
  ]
  test.each(CASES)("report %s", (_, rule, events) => expect(broken(events)).toContain(rule))
})

describe("the invariants of price alerts", () => {
  const alert = on("priceAlert-a")
  const observed = (price: string, revision = 0) => ({ price, currency: null, revision })
  const registered = (target = "20", fields: { readonly accountId?: string } = {}) =>
    alert({
      ...{ _tag: "PriceAlertRegistered", accountId: "acc_1", product: "p", target, sealed: "", observed: null, reservationId: "res_1" },
      ...fields
    })
  const armed = (price = "20.01") => alert({ _tag: "PriceAlertArmed", observed: observed(price) })
  const reached = (fall = 1, price = "20") => alert({ _tag: "PriceAlertReached", fall, observed: observed(price) })
  const mail = (_tag: "AlertMailSending" | "AlertMailSent" | "AlertMailInDoubt", attempt = 1, at = 0, fall = 1) =>
    alert({ _tag, fall, attempt }, at)
  const sending = (attempt = 1, at = 0, fall = 1) => mail("AlertMailSending", attempt, at, fall)
  const refused = (retryAt: number | null, attempt = 1) =>
    alert({ _tag: "AlertMailRefused", fall: 1, attempt, reason: "EENVELOPE 451", retryAt })
  const ended = alert({ _tag: "PriceAlertEnded", reason: "unsubscribed" })
  const withheld = alert({ _tag: "AlertMailWithheld", fall: 1, reason: "suspended" })

  test("pass falls that are told after a refusal, in doubt, or not at all, and an alert that is registered again", () => {
    const once = [registered(), reached(), sending(), refused(60), sending(2, 60), mail("AlertMailSent", 2)]
    expect(broken([...once, armed(), reached(2, "9"), sending(1, 70, 2), mail("AlertMailInDoubt", 1, 80, 2), ended])).toEqual([])
    expect(broken([registered(), reached(), withheld, registered("15"), armed("18"), reached(2, "14.999999")])).toEqual([])
    expect(broken([registered(), reached(), sending(), ended, refused(null), registered(), reached(2)])).toEqual([])
  })

  const ALERT = "a price alert is told of each fall from above its target once, and only while it is active"
  const MAIL = "a mail is sent when it is due, and again only after a refusal"
  const CASES: Cases = [
    ["a fall of nothing", ALERT, [reached()]],
    ["a fall that does not reach the target", ALERT, [registered(), reached(1, "20.000001")]],
    ["two falls without a rise", ALERT, [registered(), reached(), reached(2)]],
    ["a fall that is counted wrong", ALERT, [registered(), reached(2)]],
    ["a rise that is none", ALERT, [registered(), reached(), armed("20")]],
    ["a fall after the end", ALERT, [registered(), ended, reached()]],
    ["an end after the end", ALERT, [registered(), ended, ended]],
    ["an alert of another account", ALERT, [registered(), registered("20", { accountId: "acc_2" })]],
    ["a mail without a fall", MAIL, [registered(), sending()]],
    ["a mail after it was sent", MAIL, [registered(), reached(), sending(), mail("AlertMailSent"), sending(2)]],
    ["a mail after it was in doubt", MAIL, [registered(), reached(), sending(), mail("AlertMailInDoubt"), sending(2)]],
    ["a mail before its time", MAIL, [registered(), reached(), sending(), refused(60), sending(2, 59)]],
    ["a mail beside another one", MAIL, [registered(), reached(), sending(), armed(), reached(2), sending(1, 0, 2)]],
    ["a mail after the end", MAIL, [registered(), reached(), ended, sending()]],
    ["a mail after it was withheld", MAIL, [registered(), reached(), withheld, sending()]],
    ["an outcome of no mail", MAIL, [registered(), reached(), mail("AlertMailSent")]]
  ]
  test.each(CASES)("report %s", (_, rule, events) => expect(broken(events)).toContain(rule))
})

describe("the invariants of passkeys", () => {
  const passkey = on("passkey-p")
  const added = passkey({ _tag: "PasskeyAdded", accountId: "acc_1", sealedCredential: "", counter: 0 })
  const used = (challengeHash: string, counter = 0, at = 1) =>
    passkey({ _tag: "PasskeyUsed", challengeHash, challengeEndsAt: 100, counter }, at)
  const removed = passkey({ _tag: "PasskeyRemoved" })
  const opened = (id = "ses_1", proofId: string | null = "p", accountId = "acc_1") =>
    on(`session-${id}`)({
      ...{ _tag: "SessionOpened", accountId, secretHash: "h", proof: "passkey", proofId, sealedClient: null },
      ...{ idleAt: 1_000, expiresAt: 3_000 }
    })

  test("pass a passkey that signs in twice and is removed, one that counts, and sessions without the events of passkeys", () => {
    expect(broken([added, used("a"), opened(), used("b"), opened("ses_2"), removed])).toEqual([])
    expect(broken([added, used("a", 1), used("b", 2), opened(), opened("ses_2")])).toEqual([])
    expect(broken([opened()])).toEqual([])
  })

  const PASSKEY = "a passkey is added first and removed last, signs each challenge once and in time, and its count does not fall"
  const SESSION = "each session by a passkey follows a signature of its own, by a passkey of its account"
  const CASES: Cases = [
    ["a passkey that is added twice", PASSKEY, [added, added]],
    ["a signature of nothing", PASSKEY, [used("a")]],
    ["a challenge that is signed twice", PASSKEY, [added, used("a"), used("a")]],
    ["a challenge that is signed late", PASSKEY, [added, used("a", 0, 100)]],
    ["a count that stands", PASSKEY, [added, used("a", 1), used("b", 1)]],
    ["a count that falls to nothing", PASSKEY, [added, used("a", 1), used("b", 0)]],
    ["a signature after the end", PASSKEY, [added, removed, used("a")]],
    ["an end after the end", PASSKEY, [added, removed, removed]],
    ["a session without a signature", SESSION, [added, opened()]],
    ["two sessions by one signature", SESSION, [added, used("a"), opened(), opened("ses_2")]],
    ["a session by no passkey", SESSION, [added, used("a"), opened("ses_1", null)]],
    ["a session of another account", SESSION, [added, used("a"), opened("ses_1", "p", "acc_2")]]
  ]
  test.each(CASES)("report %s", (_, rule, events) => expect(broken(events)).toContain(rule))
})

describe("the invariants of a trial", () => {
  const account = on("account-acc_1")
  const opened = account({ _tag: "AccountOpened", sealedEmail: "sealed", emailHash: "h" })
  const reserved = (id: string, at = 0, expiresAt = 100) =>
    account({ _tag: "TrialReserved", reservationId: id, requestId: `q_${id}`, operation: "bin.lookup", expiresAt }, at)
  const used = (id: string, at = 1) => account({ _tag: "TrialUsed", reservationId: id, replyHash: "h" }, at)
  const released = (id: string, at = 1) => account({ _tag: "TrialReleased", reservationId: id, reason: "service_error" }, at)
  const expired = (id: string, at: number, dueAt: number) => account({ _tag: "TrialReleased", reservationId: id, dueAt }, at)
  const verified = account({ _tag: "AccountVerified" })
  const ids = Array.from({ length: 10 }, (_, i) => `res_${i}`)
  const ten = ids.flatMap((id) => [reserved(id), used(id, 0)])

  test("pass ten used slots, slots that are released or expire, and the end of a slot after the account was verified", () => {
    expect(broken([opened, ...ten])).toEqual([])
    expect(broken([opened, ...ids.map((id) => reserved(id)), released("res_0"), reserved("again", 1)])).toEqual([])
    expect(broken([opened, reserved("res_0"), expired("res_0", 150, 100), reserved("res_1", 150, 250)])).toEqual([])
    expect(broken([opened, reserved("res_0"), verified, used("res_0")])).toEqual([])
  })

  const SLOT = "a slot of the trial is for one call of an account that was not verified, which uses it in time, or it is released"
  const TIME = "time never goes back, and due expiries come first"
  const CASES: Cases = [
    ["an eleventh slot after ten calls", "an account has ten trials", [opened, ...ten, reserved("res_10")]],
    ["an eleventh slot beside ten calls", "an account has ten trials", [opened, ...[...ids, "res_10"].map((id) => reserved(id))]],
    ["a slot that is used twice", "a hold is made once and ends once", [opened, reserved("res_0"), used("res_0"), used("res_0")]],
    [
      "a slot that is released after its use",
      "a hold is made once and ends once",
      [opened, reserved("res_0"), used("res_0"), released("res_0")]
    ],
    ["a use of no slot", "a hold is made once and ends once", [opened, used("res_0")]],
    ["a slot of a call that had one", SLOT, [opened, reserved("res_0"), released("res_0"), reserved("res_0", 1)]],
    ["a slot of a verified account", SLOT, [opened, verified, reserved("res_0")]],
    ["a slot that is used late", SLOT, [opened, reserved("res_0"), used("res_0", 100)]],
    ["another expiry than that of the slot", SLOT, [opened, reserved("res_0"), expired("res_0", 100, 99)]],
    ["an expiry that is left due", TIME, [opened, reserved("res_0"), reserved("res_1", 100, 200)]],
    [
      "a slot of a suspended account",
      "a suspended or closed account holds nothing",
      [opened, account({ _tag: "AccountSuspended" }), reserved("res_0")]
    ]
  ]
  test.each(CASES)("report %s", (_, rule, events) => expect(broken(events)).toContain(rule))
})

describe("the invariants of payments", () => {
  const PAYMENT = "pay_01ARZ3NDEKTSV4RRFFQ69G5FAV"
  const lotId = lotIdOfPayment(PAYMENT)
  const payment = on(`payment-${Payment.paymentIdOf(PAYMENT)}`)
  const account = on("account-acc_1")
  const requested = (accountId = "acc_1") =>
    payment({
      ...({ _tag: "PaymentRequested", paymentId: PAYMENT, accountId, gateway: "manual", amount: 1_000, currency: "USD" } as const),
      ...{ purchase: { _tag: "Pack", pack: "10" }, credits: Credits.of(10_000), bonus: Credits.zero, expiresAt: 9 }
    })
  const authorized = payment({ _tag: "PaymentAuthorized" })
  const captured = payment({ _tag: "PaymentCaptured", amount: 1_000 })
  const failed = payment({ _tag: "PaymentFailed", reason: "declined" })
  const refunded = (reference: string, amount: number) => payment({ _tag: "PaymentRefunded", reference, amount })
  const refundFailed = (reference: string) => payment({ _tag: "PaymentRefundFailed", reference })
  const disputed = payment({ _tag: "PaymentDisputed", reference: "dp", amount: 400 })
  const won = payment({ _tag: "PaymentDisputeWon", reference: "dp" })
  const lost = payment({ _tag: "PaymentDisputeLost", reference: "dp" })
  const opened = account({ _tag: "AccountOpened", sealedEmail: "" })
  const lot = { lotId, source: "topup", priority: 40, expiresAt: null, paymentRef: PAYMENT } as const
  const granted = (amount = 10_000) => account({ _tag: "CreditsGranted", ...lot, amount: Credits.of(amount) })
  const none = Credits.zero
  const taken = (change: number, amount: number) => {
    const all = Credits.of(amount)
    const of = { lotId, paymentRef: PAYMENT, amount: all, fromAvailable: all, fromHeld: none, debt: none, change }
    return account({ _tag: "CreditsClawedBack", ...of })
  }
  const given = (change: number, amount: number) => {
    const all = Credits.of(amount)
    return account({
      _tag: "ClawbackReversed",
      lotId,
      paymentRef: PAYMENT,
      amount: all,
      toHeld: none,
      toDebt: none,
      toAvailable: all,
      change
    })
  }
  const sound = [opened, requested(), authorized, captured, granted()]

  test("pass a payment whose money goes back in part, and a dispute that is won", () => {
    expect(broken([...sound, refunded("re", 250), taken(1, 2_500), disputed, taken(2, 4_000), won, given(3, 4_000)])).toEqual([])
    expect(broken([...sound, refunded("re", 250), taken(1, 2_500), refundFailed("re"), given(2, 2_500)])).toEqual([])
    expect(broken([...sound, disputed, taken(1, 4_000), lost, won, given(2, 4_000)])).toEqual([])
    expect(broken([requested(), failed, captured])).toEqual([])
  })

  const FORWARD = "a payment is requested once and moves forward only, and money goes back once, after it was captured"
  const CREDITS = "a payment grants what it bought after it was captured, and its lot changes as its money goes back"
  const CASES: Cases = [
    ["a payment that is requested twice", FORWARD, [requested(), requested()]],
    ["a payment that was never requested", FORWARD, [captured]],
    ["a payment that is captured twice", FORWARD, [requested(), captured, captured]],
    ["a payment that fails after its capture", FORWARD, [requested(), captured, failed]],
    ["money that goes back before it came", FORWARD, [requested(), refunded("re", 1)]],
    ["a refund that is made twice", FORWARD, [requested(), captured, refunded("re", 1), refunded("re", 1)]],
    ["a refund that fails and was never made", FORWARD, [requested(), captured, refundFailed("re")]],
    ["a refund that fails twice", FORWARD, [requested(), captured, refunded("re", 1), refundFailed("re"), refundFailed("re")]],
    ["a dispute that ends before it is opened", FORWARD, [requested(), captured, won]],
    ["a dispute that is lost after it was won", FORWARD, [requested(), captured, disputed, won, lost]],
    ["credits before the capture", CREDITS, [opened, requested(), authorized, granted()]],
    ["credits of another account's payment", CREDITS, [opened, requested("acc_2"), captured, granted()]],
    ["more credits than were bought", CREDITS, [opened, requested(), captured, granted(10_001)]],
    ["a change before its refund", CREDITS, [...sound, taken(1, 2_500)]],
    ["a change of more than went back", CREDITS, [...sound, refunded("re", 250), taken(1, 2_501)]],
    ["credits that return while the refund stands", CREDITS, [...sound, refunded("re", 250), taken(1, 2_500), given(2, 2_500)]],
    ["credits that return while the dispute is open", CREDITS, [...sound, disputed, taken(1, 4_000), given(2, 4_000)]]
  ]
  test.each(CASES)("report %s", (_, rule, events) => expect(broken(events)).toContain(rule))
})

describe("the invariants of invoices", () => {
  const PAYMENT = "pay_01ARZ3NDEKTSV4RRFFQ69G5FAV"
  const payment = on(`payment-${Payment.paymentIdOf(PAYMENT)}`)
  const requested = payment({
    ...({ _tag: "PaymentRequested", paymentId: PAYMENT, accountId: "acc_1", gateway: "manual", amount: 1_000, currency: "USD" } as const),
    ...{ purchase: { _tag: "Pack", pack: "10" }, credits: Credits.of(10_000), bonus: Credits.zero, expiresAt: 9 },
    tax: { name: "VAT", rate: 1_900, region: "DE" }
  })
  const captured = payment({ _tag: "PaymentCaptured", amount: 1_000 })
  const refunded = payment({ _tag: "PaymentRefunded", reference: "re", amount: 400 })
  const disputed = payment({ _tag: "PaymentDisputed", reference: "dp", amount: 600 })
  const won = payment({ _tag: "PaymentDisputeWon", reference: "dp" })

  type Changes = { readonly place?: number; readonly cause?: string; readonly of?: string } & Partial<Invoice.InvoiceEvent>
  const document = (_tag: Invoice.InvoiceEvent["_tag"], total: number, tax: number, { of, place = 1, ...changes }: Changes): Recorded => {
    const series = _tag === "InvoiceIssued" ? "INV" : "CN"
    const sums = { net: total - tax, tax, total }
    const event = {
      ...{ _tag, number: `${series}-1970-01-00000${place}`, accountId: "acc_1", paymentId: PAYMENT, gateway: "manual" },
      ...{ cause: `${_tag} ${place}`, issuedAt: 0, currency: "USD", seller: "", ...sums },
      ...{ lines: [{ description: "", lotId: "lot", ...sums }], taxed: { name: "VAT", rate: 1_900, region: "DE" }, ...changes }
    } as Invoice.InvoiceEvent
    return on(`invoices-${of ?? `${series}-1970-01`}`)(event)
  }
  const FIRST = { invoice: "INV-1970-01-000001" }
  const invoice = (changes: Changes = {}, total = 1_000, tax = 160) => document("InvoiceIssued", total, tax, changes)
  const note = (changes: Changes = {}, total = 400, tax = 64) => document("CreditNoteIssued", total, tax, { ...FIRST, ...changes })
  const paid = [requested, captured]

  test("pass an invoice, credit notes of all of it, and an invoice of what came again", () => {
    const second = note({ place: 2 }, 600, 96)
    const again = invoice({ place: 2, ...FIRST }, 600, 96)
    expect(broken([...paid, invoice(), refunded, note(), disputed, second, won, again])).toEqual([])
    // All at once, and without the events of the payment
    expect(broken([...paid, refunded, disputed, won, invoice(), note(), second, again])).toEqual([])
    expect(broken([invoice(), note(), second])).toEqual([])
  })

  const NUMBER = "the numbers of a month follow each other, and each event of a payment has one document"
  const SAYS = "each document says what was paid or went back, in its order, and its parts sum up"
  const CASES: Cases = [
    ["a number that is left out", NUMBER, [...paid, invoice({ place: 2 })]],
    ["a number that is given twice", NUMBER, [...paid, invoice(), invoice({ cause: "again" })]],
    ["a second document of one event", NUMBER, [...paid, invoice(), invoice({ place: 2, cause: "InvoiceIssued 1", ...FIRST })]],
    ["a document in another month", NUMBER, [...paid, invoice({ of: "INV-1970-02", number: "INV-1970-02-000001" })]],
    ["lines of more than the total", SAYS, [...paid, invoice({ net: 839, total: 999 })]],
    ["a total that is not net and tax", SAYS, [...paid, invoice({ net: 841 })]],
    ["an invoice before the capture", SAYS, [requested, invoice()]],
    ["an invoice of no payment", SAYS, [on("payment-other")(requested.event), invoice()]],
    ["an invoice of less than was paid", SAYS, [...paid, invoice({}, 999, 160)]],
    ["an invoice with too much tax", SAYS, [...paid, invoice({}, 1_000, 161)]],
    ["an invoice with the tax of another region", SAYS, [...paid, invoice({ taxed: { name: "VAT", rate: 1_900, region: "FR" } })]],
    ["an invoice of another account", SAYS, [...paid, invoice({ accountId: "acc_2" })]],
    ["an invoice of another currency", SAYS, [...paid, invoice({ currency: "EUR" })]],
    ["a credit note of more than went back", SAYS, [...paid, invoice(), refunded, note({}, 401, 64)]],
    ["a credit note of nothing that went back", SAYS, [...paid, invoice(), note()]],
    ["a credit note before the invoice", SAYS, [...paid, refunded, note()]],
    ["a credit note of another invoice", SAYS, [...paid, invoice(), refunded, note({ invoice: "INV-1970-01-000002" })]]
  ]
  test.each(CASES)("report %s", (_, rule, events) => expect(broken(events)).toContain(rule))
})

describe("the invariants of subscriptions", () => {
  const paymentOf = (n: number) => `pay_01ARZ3NDEKTSV4RRFFQ69G5FA${n}`
  const STANDARD = { plan: "standard", amount: 2_000, currency: "USD", credits: Credits.of(25_000), every: "day" } as const
  const PRO = { ...STANDARD, plan: "pro", amount: 5_001, credits: Credits.of(75_001) } as const
  const subscription = on("subscription-1")
  const of = { subscriptionId: "sub_1" } as const
  const started = subscription({ _tag: "SubscriptionStarted", ...of, accountId: "acc_1", paymentId: paymentOf(0), plan: STANDARD })
  const ended = subscription({ _tag: "SubscriptionEnded", ...of, reason: "canceled" })
  const spanOf = (period: number) => ({ period, from: period * 1_000, until: (period + 1) * 1_000 })
  const began = (period: number, change: object = {}) =>
    subscription({
      ...{ _tag: "SubscriptionPeriodBegan", ...of, paymentId: paymentOf(period), plan: STANDARD, ...spanOf(period) },
      ...change
    } as CheckedEvent)
  const requested = (period: number) =>
    subscription({
      ...{ _tag: "SubscriptionPeriodRequested", ...of, paymentId: paymentOf(period), plan: STANDARD, ...spanOf(period) },
      ...{ attempt: 1, graceUntil: 9_000 }
    })
  // At 333 of 1,000: floor(5001 × 0.667) and floor(2000 × 0.667), floor(75001 × 0.667) and floor(25000 × 0.667)
  const RIGHT = { charged: 3_335, credited: 1_334, amount: 2_001, credits: Credits.of(50_025 - 16_675) }
  const upgrading = (change: object = {}) =>
    subscription({
      ...{ _tag: "SubscriptionUpgradeRequested", ...of, paymentId: paymentOf(8), before: STANDARD, plan: PRO },
      ...{ period: 0, began: 0, from: 333, until: 1_000, ...RIGHT, ...change }
    } as CheckedEvent)
  const changed = subscription({ _tag: "SubscriptionPlanChanged", ...of, paymentId: paymentOf(8), plan: PRO })

  /** The payment of a period and its lot. */
  const paid = (n: number, credits: number, expiresAt: number) => {
    const payment = on(`payment-${Payment.paymentIdOf(paymentOf(n))}`)
    const amount = 2_000
    const purchase = { _tag: "Period", subscriptionId: "sub_1", plan: "standard", ...spanOf(n) } as const
    const terms = { paymentId: paymentOf(n), accountId: "acc_1", gateway: "manual", amount, currency: "USD", purchase }
    return {
      captured: [
        payment({ _tag: "PaymentRequested", ...terms, credits: Credits.of(credits), bonus: Credits.zero, expiresAt: 9_000 }),
        payment({ _tag: "PaymentCaptured", amount })
      ],
      granted: on("account-acc_1")({
        ...{ _tag: "CreditsGranted", lotId: lotIdOfPayment(paymentOf(n)), source: "subscription", priority: 30, expiresAt },
        ...{ amount: Credits.of(credits), paymentRef: paymentOf(n), repaid: [] }
      } as unknown as CheckedEvent)
    }
  }
  const [first, upgrade] = [paid(0, 25_000, 1_000), paid(8, 33_350, 1_000)]
  const MINE = ["subscription", "period"]
  /** Of subscriptions alone: the account of these examples was never opened. */
  const brokenHere = (events: ReadonlyArray<Recorded>) => broken(events).filter((rule) => MINE.some((word) => rule.includes(word)))

  test("pass periods that follow each other and a dearer plan, whether the lot or the period is written first", () => {
    const log = [started, ...first.captured, first.granted, began(0), upgrading(), ...upgrade.captured, changed, upgrade.granted]
    expect(brokenHere(log)).toEqual([])
    expect(brokenHere([started, began(0), requested(1), began(1), ended, started])).toEqual([])
  })

  const ONE = "an account has one subscription at a time, which begins once and ends once"
  const PERIOD = "the periods of a subscription follow each other, and each payment counts once"
  const LOT = "a period follows the capture of its payment, and brings a lot that expires with it"
  const PRORATION = "a dearer plan costs and brings the rest of the period, less what was paid for it"
  const paidOnce = [started, ...first.captured]
  const CASES: Cases = [
    ["a subscription beside another", ONE, [started, started]],
    ["an end after the end", ONE, [started, ended, ended]],
    ["a period after the end", ONE, [started, ended, began(0)]],
    ["a period that begins twice", PERIOD, [started, began(0), began(0)]],
    ["a period that was left out", PERIOD, [started, began(0), requested(2), began(2)]],
    ["a period that begins after a gap", PERIOD, [started, began(0), requested(1), began(1, { from: 1_001 })]],
    ["a period that ends before it begins", PERIOD, [started, began(0, { until: 0 })]],
    ["a period that nobody asked to be paid", PERIOD, [started, began(0), began(1)]],
    ["a payment that counts twice", PERIOD, [started, began(0), requested(1), began(1, { paymentId: paymentOf(0) })]],
    ["a payment that is asked for twice", PERIOD, [started, began(0), requested(1), requested(1)]],
    ["a period whose payment was not captured", LOT, [started, ...first.captured.slice(0, 1), began(0)]],
    ["a period that was paid and never granted", LOT, [...paidOnce, began(0), upgrading(), ...upgrade.captured, upgrade.granted]],
    ["a lot that outlives its period", LOT, [...paidOnce, paid(0, 25_000, 1_001).granted, began(0)]],
    ["a lot that expires before its period ends", LOT, [...paidOnce, began(0), paid(0, 25_000, 999).granted]],
    ["a dearer plan whose lot outlives the period", LOT, [started, began(0), upgrading(), changed, paid(8, 33_350, 1_001).granted]],
    ["a rest that is rounded up", PRORATION, [started, began(0), upgrading({ charged: 3_336, amount: 2_002 })]],
    ["a rest whose old price is not taken off", PRORATION, [started, began(0), upgrading({ amount: 3_335 })]],
    ["a rest that brings too much", PRORATION, [started, began(0), upgrading({ credits: Credits.of(50_025) })]],
    ["a change from a plan that is not in force", PRORATION, [started, began(0), upgrading({ before: { ...STANDARD, plan: "other" } })]],
    ["a change outside the period", PRORATION, [started, began(0), upgrading({ from: 1_000 })]]
  ]
  test.each(CASES)("report %s", (_, rule, events) => expect(broken(events)).toContain(rule))

  test("report a period that is granted twice", () =>
    expect(broken([...paidOnce, first.granted, began(0), first.granted])).toContain("a payment grants once"))
})
