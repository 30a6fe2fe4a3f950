/** The invariants of inboxes, waits for codes and proxy sessions: they pass correct logs, and name the rule that a wrong log breaks. */
import { Credits, Verification } from "@millrace/core"
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
