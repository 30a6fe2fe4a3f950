/** The simulator's checkers over false evidence: they report it. */
import { Credits, type Webhook } from "@millrace/core"
import { EventStore, HashChain, MemoryEventStore } from "@millrace/event-sourcing"
import { Context, Effect, Exit, Redacted } from "effect"
import { describe, expect, test } from "vitest"
import * as SeededRandom from "../src/SeededRandom.ts"
import { checkCalls, checkKeys } from "../src/simulator/checkers/Calls.ts"
import { checkGrants } from "../src/simulator/checkers/Grants.ts"
import { isExpectedWarning } from "../src/simulator/checkers/HostLogs.ts"
import { checkWebhooks } from "../src/simulator/checkers/Webhooks.ts"
import { type Evidence, type Final, indexEvidence, type Records, type Report } from "../src/simulator/Evidence.ts"
import * as Faults from "../src/simulator/Faults.ts"
import { LogRecorder } from "../src/simulator/LogRecorder.ts"
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
  { calls = [], grants = [] }: { readonly calls?: Array<Call>; readonly grants?: Array<Grant> },
  final: Partial<Final> = {}
) => {
  const records: Records = {
    recorder: new LogRecorder(world, store),
    ...{ calls, grants, recurring: [], openings: [], deliveries: [], attempts: [], observations: [], posts: [] },
    ...{ secrets: { told: new Map<string, string>(), opened: new Map<string, string>() }, promised: new Set<string>() }
  }
  return indexEvidence(records, {
    ...{ faults: Faults.none, faultsEnded: { at: 0, length: 0 }, longestTimeout: 30_000, end: 0 },
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
    const slow = call("q0", Exit.fail(new Disconnected()), { ended: { at: 41_000, lengthAfter: 0 } })
    expect(reported(checkCalls, evidenceOf({ calls: [slow] }))).toEqual([
      "q0: took 41000 ms, but no operation may take longer than 30000 ms"
    ])
    expect(reported(checkCalls, evidenceOf({ calls: [slow] }, { faults: { ...Faults.none, upstreams: 0.1 } }))).toEqual([])
    expect(reported(checkCalls, evidenceOf({ calls: [slow] }, { faults: { ...Faults.none, hosts: 0.1 } }))).toEqual([])
  })
})

test("the checker of keys reports two successes under one key within a day", () => {
  const intent = { accountId: "acc_1", operation: "sim.one", input: {}, request: "one", key: "k0" }
  const calls = [call("q0", reply("q0", "1", 5), { intent }), call("q1", reply("q1", "2", 5), { intent })]
  expect(reported(checkKeys, evidenceOf({ calls }))).toEqual(["q1: the key k0 succeeded again, as q1 after q0"])
  const later = [calls[0], call("q1", undefined, { intent, response: { answer: reply("q1", "2", 5), at: 86_400_000, lengthAfter: 0 } })]
  expect(reported(checkKeys, evidenceOf({ calls: later.filter((call) => call !== undefined) }))).toEqual([])
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

test("a warning of a lost lease is expected under faults and shortly after them", () => {
  const isExpected = (faults: Faults.Faults, now: number, message = "A job's lease was lost") =>
    isExpectedWarning(message, { faults, faultsEnded: { at: 0, length: 0 }, attempts: [], now })
  expect(isExpected(Faults.none, 1)).toBe(false)
  expect(isExpected({ ...Faults.none, states: 0.1 }, 1)).toBe(true)
  expect(isExpected({ ...Faults.none, states: 0.1 }, 3_600_000)).toBe(false)
  expect(isExpected({ ...Faults.none, states: 0.1 }, 1, "something else")).toBe(false)
})
