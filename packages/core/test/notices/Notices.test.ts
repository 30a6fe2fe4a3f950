/** What recorded accounts, jobs, payments and subscriptions tell: each notice fits its schema, and is the same wherever it is derived. */
import { readdirSync, readFileSync } from "node:fs"
import { EventStore, MemoryEventStore, MemoryStateStore, StreamName } from "@millrace/event-sourcing"
import { Effect, Layer, Schema, Stream } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { Jobs } from "../../src/jobs/Jobs.ts"
import { administration } from "../../src/Millrace.ts"
import * as Notices from "../../src/notices/Notices.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { type RecordedLine, readLog } from "../golden/Recorded.ts"
import { MASTER } from "../vault/Vaults.ts"

const GOLDEN = new URL("../../../../test/golden/", import.meta.url)

const goldens = ["account", "job", "payment", "subscription"].flatMap((category) =>
  readdirSync(new URL(category, GOLDEN)).map((name) => ({
    name: `${category} ${name}`,
    log: readLog(readFileSync(new URL(`${category}/${name}/events.jsonl`, GOLDEN), "utf8"))
  }))
)

/** A log that holds exactly the recorded events, with the jobs that read it. */
const hostOf = (log: ReadonlyArray<RecordedLine>) =>
  Jobs.layer().pipe(
    Layer.provideMerge(administration()),
    Layer.provideMerge(
      Layer.effect(
        EventStore.EventStore,
        Effect.tap(MemoryEventStore.make, (store) =>
          Effect.forEach(log, ({ stream, revision, ...event }) =>
            StreamName.isStreamName(stream) ? store.append(stream, EventStore.expectedOf(revision - 1), [event]) : Effect.void
          )
        )
      )
    ),
    Layer.provide(Layer.mergeAll(MemoryStateStore.layer, MasterKey.layer(MASTER)))
  )

const told = (log: ReadonlyArray<RecordedLine>, wanted: (name: Notices.Name) => boolean = () => true) =>
  Effect.gen(function* () {
    const events = yield* EventStore.EventStore
    const all = yield* Stream.runCollect(events.readAll(EventStore.start))
    // The log of a new host begins with its first prices
    const recorded = all.filter(({ id }) => log.some((line) => line.id === id))
    return yield* Effect.forEach(recorded, (event) => Effect.map(Notices.of(event, wanted), (notices) => ({ event, notices })))
  }).pipe(Effect.provide(hostOf(log)), Effect.runPromise)

const statusOf: Readonly<Record<string, string>> = { JobSucceeded: "succeeded", JobFailed: "failed", JobCancelled: "cancelled" }

describe.each(goldens)("the recorded $name", ({ log }) => {
  test("tells notices that fit their schemas, with the ids of their events", async () => {
    for (const { event, notices } of await told(log)) {
      expect(notices.length > 0 ? Notices.mayTell(event) : true).toBe(true)
      for (const notice of notices) {
        const { facts, selects } = Notices.NOTICES[notice.name]
        expect(selects(event)).toBe(true)
        const decode = Schema.decodeUnknownSync(facts as unknown as Schema.Codec<unknown>, { onExcessProperty: "error" })
        expect(decode(JSON.parse(JSON.stringify(notice.facts)))).toBeDefined()
        expect(notice).toMatchObject({ id: `${notice.name.replaceAll(".", "_")}_${event.id}`, position: event.position })
        expect(notice.account).toMatch(/^acc_/u)
        expect(event.metadata).toContain(notice.at)
      }
    }
  })

  test("tells the end of each job with its status", async () => {
    const ends = (await told(log, (name) => name === "job.ended")).flatMap(({ event, notices }) =>
      notices.map(({ facts }) => [event.type, facts])
    )
    const expected = log.flatMap(({ stream, type }) =>
      statusOf[type] === undefined
        ? []
        : [[type, expect.objectContaining({ job: StreamName.id(stream as StreamName.StreamName), status: statusOf[type] })]]
    )
    expect(ends).toEqual(expected)
  })
})

test("an event tells only what is wanted, and looks up nothing else", async () => {
  const [first] = goldens.filter(({ name }) => name === "account every-event")
  await fc.assert(
    fc.asyncProperty(fc.subarray([...Notices.NAMES]), async (names) => {
      const all = await told(first?.log ?? [])
      const some = await told(first?.log ?? [], (name) => names.includes(name))
      const wanted = all.map(({ event, notices }) => ({ event, notices: notices.filter(({ name }) => names.includes(name)) }))
      expect(some).toEqual(wanted)
    }),
    { numRuns: 10 }
  )
})

test("recorded accounts with every event tell every notice of accounts, with amounts in credits", async () => {
  const accounts = goldens.filter(({ name }) => name.startsWith("account "))
  const all = (await Promise.all(accounts.map(({ log }) => told(log)))).flat().flatMap(({ notices }) => notices)
  const ofAccounts = Notices.NAMES.filter((name) => !/^(?:job|payment|subscription)\./u.test(name))
  expect([...new Set(all.map(({ name }) => name))].toSorted()).toEqual(ofAccounts.toSorted())
  const [first] = accounts.filter(({ name }) => name === "account every-event")
  const notices = (await told(first?.log ?? [])).flatMap(({ notices }) => notices)
  const granted = first?.log.filter(({ type }) => type === "CreditsGranted").map(({ data }) => JSON.parse(data).amount / 1000)
  expect(notices.filter(({ name }) => name === "credits.granted").map(({ facts }) => "amount" in facts && facts.amount)).toEqual(granted)
  expect(all.find(({ name }) => name === "credits.low")?.facts).toEqual({ threshold: 5, balance: 4 })
  const expiring = { lot: "lot_01M81H066KJV4M1ET6SYH90201_p0", amount: 4, expiresAt: "2026-11-30T14:30:00.000Z" }
  expect(all.find(({ name }) => name === "lot.expiring")?.facts).toEqual(expiring)
})

test("the recorded subscription tells that it started, is past due, was renewed and has ended, of its account", async () => {
  const [golden] = goldens.filter(({ name }) => name === "subscription changed")
  const notices = (await told(golden?.log ?? [])).flatMap(({ notices }) => notices)
  const account = "acc_01M82XD6M7JQR440HDBPJMQC1H"
  const subscription = "sub_01M82XD6PAHP7M6WFJGRV65E50"
  const [started, pastDue, renewed, ended] = notices
  const payment = "pay_01M82XD6PAHP7M6WFJGRV65E5"
  expect(started).toMatchObject({
    name: "subscription.started",
    account,
    facts: { subscription, plan: "standard", payment: `${payment}0` }
  })
  expect(pastDue).toMatchObject({ name: "subscription.past_due", account, facts: { subscription, payment: `${payment}3` } })
  expect(renewed).toMatchObject({
    name: "subscription.renewed",
    account,
    facts: { subscription, plan: "standard", payment: `${payment}4` }
  })
  expect(ended).toMatchObject({ name: "subscription.ended", account, facts: { subscription, reason: "canceled" } })
  // Another try for the same period tells nothing more
  expect(notices).toHaveLength(4)
})
