/** The invariants of jobs: they pass correct jobs, and name the rule that a wrong job breaks. */
import { Credits, Job } from "@millrace/core"
import { describe, expect, test } from "vitest"
import { invariants, type Recorded } from "../src/Invariants.ts"

const MINUTE = 60_000
const RESERVATION = "rsv_01ARZ3NDEKTSV4RRFFQ69G5FAV"
const JOB = Job.idOf(RESERVATION)
const document = { size: 9, hash: "h" }

const ofAccount = (event: Recorded["event"], at = 0): Recorded => ({ stream: "account-acc_1", event, at })
const ofJob = (event: Job.JobEvent, at = 0): Recorded => ({ stream: `job-${JOB}`, event, at })

const hold = ofAccount({
  _tag: "CreditReserved",
  reservationId: RESERVATION,
  requestId: "q1",
  operation: "work.steps",
  quantity: 4,
  priceVersion: 1,
  amount: Credits.of(400),
  lots: [{ lotId: "lot_1", amount: Credits.of(400) }],
  jobId: JOB,
  acceptBy: 30_000
})
const accepted = ofJob({
  _tag: "JobAccepted",
  accountId: "acc_1",
  operation: "work.steps",
  family: "work",
  requestId: "q1",
  reservationId: RESERVATION,
  quantity: 4,
  input: document,
  attempts: 3,
  deadline: 60 * MINUTE,
  retention: MINUTE
})
const started = (attempt: number, at: number) => ofJob({ _tag: "JobStarted", runner: "r", attempt, leaseUntil: at + 30_000 }, at)
const progressed = (attempt: number, percent: number, at: number) => ofJob({ _tag: "JobProgressed", attempt, percent }, at)
const released = (attempt: number, at: number, startFrom = at) => ofJob({ _tag: "JobReleased", attempt, startFrom }, at)
const succeeded = (attempt: number, at: number, quantity = 4) =>
  ofJob({ _tag: "JobSucceeded", attempt, quantity, result: document, artifacts: [], retainUntil: at + MINUTE }, at)
const cancelled = (at: number) => ofJob({ _tag: "JobCancelled", retainUntil: at }, at)
const charged = (at: number, quantity = 4) =>
  ofAccount(
    {
      _tag: "OperationSucceeded",
      reservationId: RESERVATION,
      quantity,
      charged: Credits.of(100 * quantity),
      lots: [{ lotId: "lot_1", amount: Credits.of(100 * quantity) }],
      replyHash: document.hash
    },
    at
  )
const refunded = (reason: "cancelled" | "service_error", at: number) =>
  ofAccount(
    {
      _tag: "Refunded",
      reservationId: RESERVATION,
      stage: "reserved",
      reason,
      amount: Credits.of(400),
      lots: [{ lotId: "lot_1", amount: Credits.of(400) }]
    },
    at
  )
const purged = ofJob({ _tag: "JobPurged" }, 5 * MINUTE)

/** Of jobs alone: the account of these examples never got the credits it holds. */
const broken = (...events: ReadonlyArray<Recorded>) => [
  ...new Set(
    invariants(events).flatMap(({ rule }) => (rule.includes("job") || rule.includes("attempt") || rule.includes("progress") ? [rule] : []))
  )
]

const FIRST = "a job is accepted or refused first, and ends once"
const NEWEST = "attempts are numbered, and only the newest attempt reports"
const LEASE = "an attempt starts after the lease of the attempt before it, and not before its time"
const HOLD = "a job's hold is made before the job, and ends after it as the job ended"

describe("the invariants of jobs", () => {
  test("pass a job that is handed back, taken over and charged, and a job that is cancelled", () => {
    const events = [
      ...[hold, accepted, started(1, 0), released(1, 1_000), started(2, 1_000), progressed(2, 50, 2_000)],
      ...[started(3, 31_000), progressed(3, 50, 32_000), succeeded(3, 33_000), charged(33_000), purged]
    ]
    expect(broken(...events)).toEqual([])
    expect(broken(hold, accepted, cancelled(1), refunded("cancelled", 1), purged)).toEqual([])
  })

  test.each<readonly [string, string, ReadonlyArray<Recorded>]>([
    ["is accepted twice", FIRST, [hold, accepted, accepted]],
    ["starts without having been accepted", FIRST, [started(1, 0)]],
    ["succeeds twice", FIRST, [hold, accepted, started(1, 0), succeeded(1, 1), succeeded(1, 2)]],
    ["is cancelled after it succeeded", FIRST, [hold, accepted, started(1, 0), succeeded(1, 1), cancelled(2)]],
    ["is purged before its end", FIRST, [hold, accepted, purged]],
    ["is purged again", FIRST, [hold, accepted, cancelled(1), purged, purged]],
    ["skips an attempt", NEWEST, [hold, accepted, started(2, 0)]],
    ["succeeds by an attempt that was taken over", NEWEST, [hold, accepted, started(1, 0), started(2, 30_000), succeeded(1, 30_001)]],
    ["progresses by an attempt that was handed back", NEWEST, [hold, accepted, started(1, 0), released(1, 1), progressed(1, 10, 2)]],
    ["is taken over before its lease ends", LEASE, [hold, accepted, started(1, 0), started(2, 29_999)]],
    ["is tried again too early", LEASE, [hold, accepted, started(1, 0), released(1, 1, 9_000), started(2, 8_999)]],
    [
      "reports less progress than before",
      "progress never goes back",
      [hold, accepted, started(1, 0), progressed(1, 60, 1), progressed(1, 40, 2)]
    ],
    ["is accepted without a hold", HOLD, [ofAccount({ _tag: "AccountVerified" }), accepted]],
    ["is accepted after its hold was released", HOLD, [hold, refunded("service_error", 1), accepted]],
    ["is charged before its end", HOLD, [hold, accepted, started(1, 0), charged(1)]],
    ["is charged for more units than it did", HOLD, [hold, accepted, started(1, 0), succeeded(1, 1, 3), charged(1, 4)]],
    ["is charged after it was cancelled", HOLD, [hold, accepted, cancelled(1), charged(1)]],
    ["is refunded after it succeeded", HOLD, [hold, accepted, started(1, 0), succeeded(1, 1), refunded("service_error", 1)]],
    ["is refunded for another reason than its end", HOLD, [hold, accepted, cancelled(1), refunded("service_error", 1)]]
  ])("report a job that %s: %s", (_, rule, events) => {
    expect(broken(...events)).toContain(rule)
  })
})
