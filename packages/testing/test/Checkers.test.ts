/** The simulator's checkers over false evidence: they report it. */
import { hash } from "node:crypto"
import { type AccountEvent, Credits, type Inbox, NotFound, Payment, ProxySession, type Verification, type Webhook } from "@millrace/core"
import { EventStore, HashChain, MemoryEventStore } from "@millrace/event-sourcing"
import { Context, Effect, Exit, Redacted } from "effect"
import { describe, expect, test } from "vitest"
import * as SeededRandom from "../src/SeededRandom.ts"
import { checkCalls, checkKeys } from "../src/simulator/checkers/Calls.ts"
import { checkCodes } from "../src/simulator/checkers/Codes.ts"
import { checkGrants } from "../src/simulator/checkers/Grants.ts"
import { isExpectedWarning } from "../src/simulator/checkers/HostLogs.ts"
import { checkInboxes } from "../src/simulator/checkers/Inboxes.ts"
import { checkPayments, lotsOf } from "../src/simulator/checkers/Payments.ts"
import { checkProxies } from "../src/simulator/checkers/Proxies.ts"
import { checkTrials } from "../src/simulator/checkers/Trials.ts"
import { checkWebhooks } from "../src/simulator/checkers/Webhooks.ts"
import { type Evidence, type Final, indexEvidence, type Records, type Report } from "../src/simulator/Evidence.ts"
import * as Faults from "../src/simulator/Faults.ts"
import { LogRecorder } from "../src/simulator/LogRecorder.ts"
import type { Held } from "../src/simulator/payments/Gateway.ts"
import { People } from "../src/simulator/people/People.ts"
import { nodeOf } from "../src/simulator/proxies/Endpoints.ts"
import { type Answer, type Call, Disconnected, type Grant, type Post } from "../src/simulator/Records.ts"
import { World } from "../src/simulator/World.ts"

const world = new World({ random: SeededRandom.make(1), start: 0, disorder: 0, yieldEvery: 2_048 })
const host = world.process("h0.0", Context.empty())
const store = await Effect.runPromise(MemoryEventStore.make)

const reply = (requestId: string, data: string, charged: number): Answer =>
  Exit.succeed({ requestId, data, billed: { charged: Credits.of(charged), balance: Credits.zero }, replayed: false })

const call = (requestId: string, answer: Answer | undefined, more: Partial<Call> = {}): Call => ({
  ...{ requestId, process: host, startedAt: 0, lengthBefore: 0, hungUp: false },
  intent: { accountId: "acc_1", operation: "sim.one", input: {}, request: "one" },
  ended: { at: 10, lengthAfter: 0 },
  ...(answer === undefined ? {} : { response: { answer, at: 10, lengthAfter: 0 } }),
  ...more
})

const evidenceOf = (
  {
    calls = [],
    grants = [],
    paid = new Map()
  }: { readonly calls?: Array<Call>; readonly grants?: Array<Grant>; readonly paid?: Records["paid"] },
  final: Partial<Final> = {}
) => {
  const records: Records = {
    recorder: new LogRecorder(world, store),
    ...{ calls, grants, recurring: [], openings: [], deliveries: [], attempts: [], observations: [], posts: [] },
    ...{
      secrets: { told: new Map<string, string>(), opened: new Map<string, string>() },
      promised: new Set<string>(),
      ignoring: new Set<string>()
    },
    ...{ mailings: [], addressHashes: new Map<string, string>(), textings: [], textIds: new Map<string, string>() },
    ...{ nodes: new Map(), admissions: [], carried: new Map(), countings: [], paid, people: new People() }
  }
  return indexEvidence(records, {
    ...{ faults: Faults.none, faultsEnded: { at: 0, length: 0 }, longestTimeout: 30_000, end: 0, leading: false },
    sessionTerms: { lifetime: 60_000, byteLimit: 1_000, connectionLimit: 1 },
    ...{ log: [], survivors: new Set([host]), vaultKeys: new Set<string>() },
    ...final
  })
}

const reported = (check: (evidence: Evidence, report: Report) => void, evidence: Evidence): ReadonlyArray<string> => {
  const violations: Array<string> = []
  check(evidence, (violation) => void violations.push(violation))
  return violations
}

describe("the checker of calls", () => {
  test("reports an unanswered call unless its caller hung up or its host died", () => {
    expect(reported(checkCalls, evidenceOf({ calls: [call("q0", undefined)] }))).toEqual(["q0: was never answered"])
    expect(reported(checkCalls, evidenceOf({ calls: [call("q0", undefined, { hungUp: true })] }))).toEqual([])
    expect(reported(checkCalls, evidenceOf({ calls: [call("q0", undefined)] }, { survivors: new Set() }))).toEqual([])
  })

  test("reports a success without a delivery and without a charge", () => {
    const violations = reported(checkCalls, evidenceOf({ calls: [call("q0", reply("q0", "{}", 1_500))] }))
    expect(violations).toContain("q0: was answered data that no upstream delivered for it")
    expect(violations).toContain("q0: was answered a success that is not in the ledger")
  })

  test("reports a call that took longer than any timeout, unless its host was disturbed", () => {
    const after = (at: number) => call("q0", Exit.fail(new Disconnected()), { ended: { at, lengthAfter: 0 } })
    const slow = after(41_000)
    expect(reported(checkCalls, evidenceOf({ calls: [slow] }))).toEqual([
      "q0: took 41000 ms, but no operation may take longer than 30000 ms"
    ])
    expect(reported(checkCalls, evidenceOf({ calls: [slow] }, { faults: { ...Faults.none, upstreams: 0.1 } }))).toEqual([])
    expect(reported(checkCalls, evidenceOf({ calls: [slow] }, { faults: { ...Faults.none, hosts: 0.1 } }))).toEqual([])
    const evidence = evidenceOf({ calls: [after(200_000)] }, { faults: { ...Faults.none, upstreams: 0.1 } })
    expect(reported(checkCalls, evidence)).toContain("q0: took 200000 ms, but no operation may take longer than 30000 ms")
    evidence.records.ignoring.add("q0")
    expect(reported(checkCalls, evidence).join()).not.toContain("took")
  })
})

test("the checker of keys reports two successes under one key within a day", () => {
  const intent = { accountId: "acc_1", operation: "sim.one", input: {}, request: "one", key: "k0" }
  const calls = [call("q0", reply("q0", "1", 5), { intent }), call("q1", reply("q1", "2", 5), { intent })]
  expect(reported(checkKeys, evidenceOf({ calls }))).toEqual(["q1: the key k0 succeeded again, as q1 after q0"])
  const later = [calls[0], call("q1", undefined, { intent, response: { answer: reply("q1", "2", 5), at: 86_400_000, lengthAfter: 0 } })]
  expect(reported(checkKeys, evidenceOf({ calls: later.filter((call) => call !== undefined) }))).toEqual([])
})

describe("the checker of trials", () => {
  const reserved = (requestId = "q0", reservationId = "res_0"): AccountEvent => ({
    ...{ _tag: "TrialReserved", reservationId, requestId, operation: "sim.one", expiresAt: 30_000 }
  })
  const used = (reservationId = "res_0", data = "1"): AccountEvent => ({
    ...{ _tag: "TrialUsed", reservationId, replyHash: hash("sha256", data, "base64url") }
  })
  const released = (reservationId = "res_0"): AccountEvent => ({ _tag: "TrialReleased", reservationId, reason: "service_error" })
  const replay: Answer = Exit.succeed({
    requestId: "q0",
    data: "1",
    billed: { charged: Credits.zero, balance: Credits.zero },
    replayed: true
  })

  /** What is reported of the call `q0` with this answer, which was given when the log had `lengthAfter` events. */
  const judge = (events: ReadonlyArray<AccountEvent>, answer: Answer | undefined, lengthAfter = events.length) => {
    const response = answer === undefined ? {} : { response: { answer, at: 10, lengthAfter } }
    const evidence = evidenceOf({ calls: [call("q0", undefined, response)] })
    const recorded = events.map((event, index) => ({
      stream: "account-acc_1",
      event,
      at: 0,
      index,
      revision: index,
      arrivedAt: 0,
      metadata: {}
    }))
    evidence.records.recorder.accountEvents.push(...recorded)
    return reported(checkTrials, evidence)
  }
  const free = reply("q0", "1", 0)
  const failed: Answer = Exit.fail(new NotFound({ resource: "page" }))

  test("reports nothing of what is right", () => {
    expect(judge([reserved(), used()], free)).toEqual([])
    expect(judge([reserved(), released()], failed)).toEqual([])
    expect(judge([reserved(), released()], replay)).toEqual([])
    expect(judge([], reply("q0", "1", 500))).toEqual([])
    // Its caller was not told: it may have used its slot
    expect(judge([reserved(), used()], Exit.fail(new Disconnected()))).toEqual([])
    expect(judge([reserved(), used()], undefined)).toEqual([])
  })

  test.each<[string, ReadonlyArray<AccountEvent>, Answer | undefined, number | undefined, string]>([
    ["a slot without an end", [reserved()], undefined, undefined, "the slot res_0 has no end"],
    [
      "a call that used two slots",
      [reserved(), used(), reserved("q0", "res_1"), used("res_1")],
      undefined,
      undefined,
      "q0 used 2 slots of its trial"
    ],
    ["a failure that used a slot", [reserved(), used()], failed, undefined, "q0 failed with NotFound, but used a slot of its trial"],
    ["a success that used none", [reserved(), released()], free, undefined, "q0 was answered a success, but used no slot of its trial"],
    [
      "a success that cost credits",
      [reserved(), used()],
      reply("q0", "1", 500),
      undefined,
      "q0 holds a slot of its trial, and was answered a cost"
    ],
    ["a replay that used a slot", [reserved(), used()], replay, undefined, "q0 was answered a replay, and used a slot of its trial"],
    ["an answer before the slot was used", [reserved(), used()], free, 0, "q0 was answered a success before its slot was used"],
    ["another reply", [reserved(), used("res_0", "2")], free, undefined, "q0 was answered another reply than the trial has"]
  ])("reports %s", (_, events, answer, lengthAfter, violation) => {
    expect(judge(events, answer, lengthAfter)).toContain(violation)
  })
})

test("the checker of grants reports a confirmed grant that is not in the log", () => {
  const grant = { accountId: "acc_1", lotId: "lot_1", amount: 1_000 }
  expect(reported(checkGrants, evidenceOf({ grants: [{ ...grant, answer: "ok" }] }))).toEqual([
    "acc_1 lot_1 was granted, but is not in the log"
  ])
  expect(reported(checkGrants, evidenceOf({ grants: [{ ...grant, answer: "StoreUnavailable" }] }))).toEqual([])
})

describe("the checker of webhooks", () => {
  const at = "2030-01-01T00:00:00.000Z"
  const stream = "account-acc_1"
  const opened: EventStore.RecordedEvent = {
    ...HashChain.seal(HashChain.start(stream), stream, 0, { id: "e1", type: "AccountOpened", data: "{}" }, at, "{}"),
    ...{ stream, revision: 0 },
    position: EventStore.position("0000000000000002")
  }
  const added: Webhook.WebhookEvent = {
    ...{ _tag: "WebhookAdded", sealedUrl: "", sealedSecret: "sealed", names: null, accountId: null, sealedLabel: null }
  }
  const body = JSON.stringify({ type: "account.opened", timestamp: at, data: { account: "acc_1" } })
  const right = { url: "https://r0.example/", secrets: [Redacted.make("whsec_1")], id: "account_opened_e1", at: 60_000, body }

  /** What is reported of a post, of a webhook with these events in the first seconds. */
  const judge = (post: Partial<Post>, events: ReadonlyArray<Webhook.WebhookEvent> = [added]) => {
    const evidence = evidenceOf({}, { log: [{ ...opened, stream: "webhook-wh_1" }, opened] })
    const recorded = { stream: "webhook-wh_1", at: 0, metadata: { reason: "adds r0" } }
    const history = events.map((event, i) => ({ ...recorded, event, index: i === 0 ? 1 : i + 2, revision: i, arrivedAt: i * 1_000 }))
    evidence.records.recorder.webhooks.set("wh_1", history)
    evidence.records.secrets.told.set("adds r0", "whsec_1")
    evidence.records.posts.push({ ...right, process: host, sentAt: 60_000, accepted: true, ...post })
    return reported(checkWebhooks, evidence)
  }

  test("reports nothing of what is right", () => expect(judge({})).toEqual([]))

  test.each([
    ["is not in the log", { id: "account_opened_e2" }, [added], "of which the log does not tell"],
    ["has another body", { body: body.replace("acc_1", "acc_2") }, [added], "a false account_opened_e1"],
    ["goes elsewhere", { url: "https://r1.example/" }, [added], "no webhook had this address"],
    ["has another secret", { secrets: [Redacted.make("whsec_2")] }, [added], "with other secrets"],
    ["has a secret too many", { secrets: [...right.secrets, Redacted.make("whsec_2")] }, [added], "with other secrets"],
    ["is of another account", {}, [{ ...added, accountId: "acc_2" }], "which it did not want"],
    ["is of another name", {}, [{ ...added, names: ["job.ended"] }], "which it did not want"],
    ["was skipped", {}, [added, { _tag: "WebhookEnabled", skipped: true }], "which it did not want"],
    ["comes while it is disabled", {}, [added, { _tag: "WebhookDisabled", reason: "host" }], "while it was disabled"],
    ["comes after its removal", {}, [added, { _tag: "WebhookRemoved" }], "after it was removed"]
  ] as const)("reports what %s", (_, post, events, violation) => {
    expect(judge(post, events).join()).toContain(violation)
  })
})

describe("the checker of inboxes", () => {
  const address = "anna@inbox.example"
  const messageIdOf = (queueId: string) => `msg_${hash("sha256", JSON.stringify([queueId, "hash"]), "hex").slice(0, 26)}`
  const created: Inbox.InboxEvent = {
    ...{ _tag: "InboxCreated", accountId: "acc_1", addressHash: "hash", sealedAddress: "", sealedLabel: null, expiresAt: 3_600_000 }
  }
  const received: Inbox.InboxEvent = {
    ...{ _tag: "MessageReceived", messageId: messageIdOf("queue 1"), addressHash: "hash", size: 1, blobId: "blob", sealedSummary: "" }
  }
  const rotated: Inbox.InboxEvent = { _tag: "InboxRotated", addressHash: "other", sealedAddress: "" }
  const lines = [{ message_id: messageIdOf("queue 1"), subject: "subject 1" }]

  interface Case {
    /** The events after the inbox was created, one a second. */
    readonly events?: ReadonlyArray<Inbox.InboxEvent>
    /** What a sender was told of a message that was sent first of all, or after the events. */
    readonly told?: string
    readonly isLast?: boolean
    readonly asked?: Partial<Call["intent"]> & { readonly answer: Answer }
  }

  /** What is reported of an answer that came after the events. */
  const judge = ({ asked, events = [received], isLast = false, told = "taken" }: Case) => {
    const calls = asked === undefined ? [] : [call("q1", asked.answer, { startedAt: 20_000, lengthBefore: 9 })]
    const evidence = evidenceOf({
      calls: calls.map((made) => ({
        ...made,
        intent: { ...made.intent, operation: "inbox.listMessages", input: { inbox: "inbox_1" }, ...asked },
        response: { answer: asked?.answer ?? Exit.fail(new Disconnected()), at: 20_000, lengthAfter: 9 }
      }))
    })
    const all = [created, ...events]
    for (const [i, event] of all.entries()) {
      const recorded = { index: i + 1, stream: "inbox-inbox_1", revision: i, at: i * 1_000, metadata: {} }
      evidence.recorder.inboxes.record("inbox_1", { ...recorded, event })
    }
    evidence.records.addressHashes.set(address, "hash")
    const message = { queueId: "queue 1", address, subject: "subject 1", text: "text 1" }
    const sent = isLast ? { startedAt: 10_000, lengthBefore: all.length } : { startedAt: 500, lengthBefore: 1 }
    evidence.records.mailings.push({ message, ...sent, answer: { told, at: 10_000, lengthAfter: all.length } })
    return reported(checkInboxes, evidence)
  }

  const listed = (messages: ReadonlyArray<object>) => reply("q1", JSON.stringify({ messages }), 0)

  test("reports nothing of what is right", () => {
    expect(judge({ asked: { answer: listed(lines) } })).toEqual([])
    expect(judge({ events: [rotated], told: "UnknownAddress" })).toEqual([])
  })

  const WRONG: Readonly<Record<string, readonly [Case, string]>> = {
    "mail that was taken and is not there": [{ events: [] }, "is not in the log"],
    "mail that was taken after the inbox was moved": [{ events: [rotated], isLast: true }, "was taken, but is not in the log"],
    "mail that was refused although the inbox has the address": [{ events: [], told: "UnknownAddress" }, "but its inbox has the address"],
    "mail that nobody sent": [{ events: [received, { ...received, messageId: "msg_2" }] }, "which nobody sent"],
    "a list without a message": [{ asked: { answer: listed([]) } }, "which was never so"],
    "a list with another subject": [{ asked: { answer: listed([{ ...lines[0], subject: "other" }]) } }, "another subject"],
    "a list for another account": [{ asked: { answer: listed(lines), accountId: "acc_2" } }, "another account's"],
    "a list of what is gone": [{ events: [received, { _tag: "InboxDeleted" }], asked: { answer: listed(lines) } }, "which is gone"],
    "an inbox that is not found, and lives": [
      { asked: { answer: Exit.fail(new NotFound({ resource: "inbox" })) } },
      "there is no inbox_1, which lives"
    ],
    "a deletion that did not happen": [{ asked: { answer: reply("q1", "{}", 0), operation: "inbox.delete" } }, "is deleted, but it was not"]
  }
  test.each(Object.entries(WRONG))("reports %s", (_, [wrong, violation]) => {
    expect(judge(wrong).join()).toContain(violation)
  })
})

describe("the checker of codes", () => {
  const wait = { accountId: "acc_1", reservationId: "res_1", number: "+15005550006" }
  const input = { source: "sms", identifier: "acme", phone_number: "+15005550006", timeout: 15 }
  const found: Verification.VerificationEvent = { _tag: "CodeFound", ...wait, sms: "sms 1" }
  const text = { id: "text 1", from: "Acme", to: "+15005550006", text: "Your Acme code is 100001.", code: "100001" }

  /** What is reported of an answer to a wait that took 10 seconds, and of its outcome. */
  const judge = (data: object, outcome: Verification.VerificationEvent | undefined, message = text) => {
    const asked = call("q1", reply("q1", JSON.stringify(data), 5_000), {
      intent: { accountId: "acc_1", operation: "verification.wait", input, request: "wait" },
      response: { answer: reply("q1", JSON.stringify(data), 5_000), at: 10_000, lengthAfter: 9 },
      lengthBefore: 1
    })
    const hold = { operation: "verification.wait", requestId: "q1", reservationId: "res_1" }
    const evidence = evidenceOf({ calls: [asked] })
    const recorded = { stream: "", revision: 0, at: 10_000, metadata: {} }
    Object.assign(evidence.reservations, {
      byId: new Map([["res_1", { stream: "account-acc_1", hold, at: 0, index: 2, net: 5_000, end: { index: 5 }, success: {} }]]),
      of: () => [{ hold }]
    })
    evidence.recorder.texts.record("sms 1", {
      ...recorded,
      ...{ index: 3, event: { _tag: "SmsReceived", source: "host", number: message.to, text: { size: 1, hash: "" } } }
    })
    if (outcome !== undefined) evidence.recorder.waits.record("ver_1", { ...recorded, index: 4, event: outcome })
    evidence.records.textIds.set("text 1", "sms 1")
    evidence.records.textings.push({ message, startedAt: 0, lengthBefore: 2, answer: { told: "taken", at: 1, lengthAfter: 3 } })
    return reported(checkCodes, evidence)
  }

  const told = { code: "100001", message: text.text }

  test("reports nothing of what is right", () => expect(judge(told, found)).toEqual([]))

  test.each([
    ["a charge without an outcome", told, undefined, text, "was charged without an outcome"],
    ["a charge although the caller had left", told, { ...found, _tag: "WaitAbandoned" }, text, "though its caller had left"],
    ["a code that nobody sent", { ...told, code: "999999" }, found, text, "which nobody sent"],
    ["a code at another number", told, found, { ...text, to: "+15005550007" }, "for which it did not wait"],
    ["a code of another service", told, found, { ...text, from: "Brewery" }, "for which it did not wait"],
    ["no code although one was found", { code: null }, found, text, "but its outcome is CodeFound"],
    ["no code before the time", { code: null }, { _tag: "WaitTimedOut", ...wait }, text, "after 10000 ms of 15 s"]
  ] as const)("reports %s", (_, data, outcome, message, violation) => {
    expect(judge(data, outcome as Verification.VerificationEvent | undefined, message).join()).toContain(violation)
  })
})

describe("the checker of proxy sessions", () => {
  const sessionId = "proxy_01M7YKD46JCP6VGMKADN3JSPJP"
  const reservationId = "res_01M7YKD46JCP6VGMKADN3JSPJP"
  const password = "the password"
  const node = nodeOf(host)
  const [endpoint] = node.endpoints
  const terms = {
    accountId: "acc_1",
    mode: "rotating",
    country: node.country,
    region: node.region,
    host: node.host,
    ip: node.exits[0]
  } as const
  const bounds = { expiresAt: 60_000, byteLimit: 1_000, connectionLimit: 1 }
  const opened: ProxySession.ProxySessionEvent = {
    ...{ _tag: "ProxySessionOpened", ...terms, ...endpoint, ...bounds, passwordHash: ProxySession.hashOf(password) }
  }
  const counted = (sent: number): ProxySession.ProxySessionEvent => ({
    ...{ _tag: "ProxyTrafficCounted", node: host.name, sent, received: 0, connections: 1 }
  })
  const ended: ProxySession.ProxySessionEvent = { _tag: "ProxySessionEnded", reason: "bytes" }
  const told = { session_id: sessionId, username: sessionId, password, expires_at: new Date(60_000).toISOString(), ip: terms.ip }
  const { country, host: there } = terms

  interface Case {
    readonly open?: Partial<typeof opened>
    readonly events?: ReadonlyArray<ProxySession.ProxySessionEvent>
    readonly data?: object
    readonly input?: object
    /** A client that comes after all events, by the clock of its node. */
    readonly client?: { readonly password?: string; readonly clock?: number; readonly told: string; readonly id?: string }
    readonly count?: { readonly sent: number; readonly told: string }
    readonly net?: number
    /** Its hold lapsed. */
    readonly abandoned?: boolean
  }

  const judge = ({ abandoned = false, client, count, data, events = [], input = {}, net = 2_000, open = {} }: Case) => {
    const answer = reply("q1", JSON.stringify({ ...told, ...endpoint, country, host: there, ...data }), 2_000)
    const asked = call("q1", answer, {
      intent: { accountId: "acc_1", operation: "proxy.createSession", input, request: "open" },
      response: { answer, at: 10, lengthAfter: 9 }
    })
    const evidence = evidenceOf({ calls: [asked] })
    const hold = { operation: "proxy.createSession", requestId: "q1", reservationId }
    const end = {
      index: 5,
      event: abandoned ? { _tag: "Refunded", stage: "reserved", reason: "abandoned" } : { _tag: "OperationSucceeded" }
    }
    const reservation = { stream: "account-acc_1", hold, at: 0, index: 1, net, end, ...(abandoned ? {} : { success: {} }) }
    Object.assign(evidence.reservations, { byId: new Map([[reservationId, reservation]]), of: () => [reservation] })
    const all = [{ ...opened, ...open } as ProxySession.ProxySessionEvent, ...events]
    for (const [i, event] of all.entries())
      evidence.recorder.sessions.record(sessionId, { index: i + 2, stream: "", revision: i, at: 0, metadata: {}, event })
    evidence.records.nodes.set(node.host, { node, process: host })
    evidence.records.carried.set(`${sessionId} ${host.name}`, [{ length: 0, traffic: { sent: 1_000, received: 0, connections: 1 } }])
    const asking = { process: host, startedAt: 0, lengthBefore: all.length + 1 }
    if (client !== undefined) {
      const { clock = 59_999, id = sessionId, told } = client
      const answer = { told, clock: [clock, clock] as const, at: 0, lengthAfter: all.length + 1 }
      evidence.records.admissions.push({ ...asking, sessionId: id, password: client.password ?? password, answer })
    }
    if (count !== undefined) {
      const traffic = { sent: count.sent, received: 0, connections: 1 }
      const answer = { told: count.told, at: 0, lengthAfter: all.length + 1 }
      evidence.records.countings.push({ sessionId, node: host.name, traffic, startedAt: 0, lengthBefore: 1, answer })
    }
    return reported(checkProxies, evidence)
  }

  test("reports nothing of what is right", () => {
    expect(judge({ client: { told: "admitted" }, events: [counted(999)], count: { sent: 999, told: "open" } })).toEqual([])
    expect(judge({ client: { told: "refused", clock: 60_000 } })).toEqual([])
    expect(judge({ client: { told: "refused", password: "another" } })).toEqual([])
    expect(judge({ client: { told: "refused" }, events: [counted(1_000), ended] })).toEqual([])
  })

  const WRONG: Readonly<Record<string, readonly [Case, string]>> = {
    "a client that is refused before the expiry": [{ client: { told: "refused" } }, "was refused, but may use it"],
    "a client that is admitted from the expiry on": [{ client: { told: "admitted", clock: 60_000 } }, "0 ms after its expiry"],
    "a client with a wrong password": [{ client: { told: "admitted", password: "another" } }, "admitted without its credentials"],
    "a client of no session": [{ client: { told: "admitted", id: `${sessionId}0` } }, "admitted without its credentials"],
    "a client of a session that is used up": [
      { client: { told: "admitted" }, events: [counted(1_000), ended] },
      "was admitted after its end"
    ],
    "bytes that do not end the session": [{ events: [counted(1_000)] }, "stays open although its bytes are used up"],
    "a count of what was not carried": [{ events: [counted(1_001), ended] }, "than it carried"],
    "a count that is not in the log": [{ count: { sent: 1, told: "open" } }, "but that is not in the log"],
    "a status that was never so": [{ events: [counted(1)], count: { sent: 1, told: "expired" } }, "which was never so"],
    "other credentials": [{ data: { password: "another" } }, "other credentials"],
    "another port": [{ data: { port: 1 } }, "was answered the port 1"],
    "another expiry": [{ data: { expires_at: new Date(1).toISOString() } }, "another expiry"],
    "a session that is not in the log": [{ data: { session_id: `${sessionId}0` } }, "is not in the log"],
    "a lifetime of its own": [{ open: { expiresAt: 60_001 } as typeof opened }, "lives for 60001 ms of 60000"],
    "a node in another country": [{ input: { country: "FR" } }, "but FR was asked for"],
    "an address that is not its node's": [
      { input: { mode: "sticky" }, open: { mode: "sticky", ip: "other" } as typeof opened },
      "leaves from other"
    ],
    "a session that was given away": [{ abandoned: true }, "was there, but its hold was released as abandoned"],
    "the session of another account": [{ open: { accountId: "acc_2" } as typeof opened }, "the proxy session of another account"]
  }
  test.each(Object.entries(WRONG))("reports %s", (_, [wrong, violation]) => {
    expect(judge(wrong).join()).toContain(violation)
  })
})

describe("the checker of payments", () => {
  const PAYMENT = "pay_01ARZ3NDEKTSV4RRFFQ69G5FAV"
  const stream = Payment.paymentIdOf(PAYMENT)
  const [lotId, bonusId] = lotsOf(PAYMENT)
  const standing = { status: "captured", reason: null, captured: 2_500, refunds: [], disputes: [] } as const
  const half = [{ reference: "dp", minor: 1_250, status: "open" }] as const
  const grant = (lot: string, amount: number) => ({ _tag: "CreditsGranted", lotId: lot, amount }) as unknown as AccountEvent
  const taken = (amount: number, change?: number) =>
    ({ _tag: "CreditsClawedBack", lotId, amount, ...(change === undefined ? {} : { change }) }) as unknown as AccountEvent
  const both = [grant(lotId, 25_000_000), grant(bonusId, 1_000_000)]

  const keptOf = ({ disputes, status }: Held["standing"]): number =>
    status === "captured" ? disputes.reduce((kept, { minor }) => kept - minor, 2_500) : 0

  /** An invoice of so many cents. */
  const invoice = (total: number) => {
    const line = { description: "25000 credits", net: total, tax: 0, total, lotId }
    const terms = { accountId: "acc_1", paymentId: PAYMENT, gateway: "simulated", cause: "event", issuedAt: 0, currency: "USD", seller: "" }
    return { _tag: "InvoiceIssued", number: "INV-1970-01-000001", ...terms, lines: [line], net: total, tax: 0, total } as const
  }

  /**
   * What is reported of a payment of 25 dollars, of the events of an account that has its lots, of an answer to a caller, and of an invoice
   * of what is left of the money.
   */
  const judge = (
    now: Held["standing"],
    events: ReadonlyArray<AccountEvent>,
    { account = "acc_1", status = "captured", invoiced = keptOf(now) } = {}
  ) => {
    const data = JSON.stringify({ payment_id: PAYMENT, status })
    const intent = { accountId: account, operation: "billing.captureTopUp", input: {}, request: "capture" }
    const asked = call("q1", reply("q1", data, 0), { intent, response: { answer: reply("q1", data, 0), at: 10, lengthAfter: 5 } })
    const evidence = evidenceOf({ calls: [asked], paid: new Map([[PAYMENT, { paymentId: PAYMENT, amount: 2_500, standing: now }]]) })
    const recorded = { revision: 0, at: 1, metadata: {} }
    const terms = { paymentId: PAYMENT, accountId: "acc_1", gateway: "simulated", amount: 2_500, currency: "USD", expiresAt: 9 }
    const bought = { purchase: { _tag: "Pack", pack: "25" }, credits: Credits.of(25_000_000), bonus: Credits.of(1_000_000) } as const
    const event = { _tag: "PaymentRequested", ...terms, ...bought } as const
    evidence.recorder.payments.record(stream, { ...recorded, stream: `payment-${stream}`, index: 1, event })
    evidence.recorder.invoices.record("INV-1970-01", { ...recorded, stream: "invoices-INV-1970-01", index: 1, event: invoice(invoiced) })
    events.forEach((event, i) => evidence.recorder.accountEvents.push({ ...recorded, stream: "account-acc_1", index: i + 2, event }))
    return reported(checkPayments, evidence)
  }

  test("reports nothing of what is right, nor of a lot that an administrator took back", () => {
    expect(judge(standing, both)).toEqual([])
    expect(judge({ ...standing, disputes: half }, [...both, taken(12_500_000, 1)])).toEqual([])
    expect(judge(standing, [...both, taken(7)])).toEqual([])
  })

  test.each([
    ["credits without a capture", { ...standing, status: "authorized" }, both, {}, "granted 25000000 and 1000000 in 2 lots, not 0 and 0"],
    ["a capture without credits", standing, [], { status: "pending" }, "granted 0 and 0 in 0 lots"],
    ["a bonus that is granted twice", standing, [...both, grant(bonusId, 1_000_000)], {}, "in 3 lots"],
    ["a dispute whose credits stay", { ...standing, disputes: half }, both, {}, "keeps 25000000, not 12500000"],
    [
      "a dispute that is taken twice",
      { ...standing, disputes: half },
      [...both, taken(12_500_000, 1), taken(12_500_000, 1)],
      {},
      "keeps 0"
    ],
    ["an answer before the credits", standing, [...Array(4).fill(grant(bonusId, 1)), ...both], {}, "before its credits"],
    ["an answer to another account", standing, both, { account: "acc_2" }, "of acc_1"],
    ["an invoice of more than is left", { ...standing, disputes: half }, both, { invoiced: 2_500 }, "add up to 2500, not 1250"],
    ["a capture without an invoice", standing, both, { invoiced: 0 }, "add up to 0, not 2500"]
  ] as const)("reports %s", (_, now, events, told, violation) => {
    expect(judge(now as Held["standing"], events, told).join()).toContain(violation)
  })
})

test("a warning is expected under faults and shortly after them", () => {
  const isExpected = (faults: Faults.Faults, now: number, message = "A job's lease was lost", skippedTo = 0) =>
    isExpectedWarning(message, { faults, faultsEnded: { at: 0, length: 0 }, attempts: [], now, skippedTo })
  expect(isExpected(Faults.none, 1)).toBe(false)
  expect(isExpected({ ...Faults.none, states: 0.1 }, 1)).toBe(true)
  expect(isExpected({ ...Faults.none, states: 0.1 }, 3_600_000)).toBe(false)
  expect(isExpected({ ...Faults.none, states: 0.1 }, 1, "something else")).toBe(false)
  // A webhook is being sent as time skips
  expect(isExpected(Faults.none, 3_600_000, "A webhook failed {}")).toBe(false)
  expect(isExpected(Faults.none, 3_600_000, "A webhook failed {}", 3_600_000)).toBe(true)
  expect(isExpected(Faults.none, 3_620_000, "A webhook failed {}", 3_600_000)).toBe(false)
})
