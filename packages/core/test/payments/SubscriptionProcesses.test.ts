/** Two processes renew the same subscriptions at once, and processes die while they renew one. Each period is paid once and granted once. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { EventStore } from "@millrace/event-sourcing"
import { Effect, type Scope, Stream } from "effect"
import { describe, expect, test } from "vitest"
import * as Audit from "../../../audit/src/Audit.ts"
import { schema } from "../../../event-store-postgres/test/Postgres.ts"
import { start } from "../../../event-store-sqlite/test/Processes.ts"
import * as Decisions from "../../src/ledger/Decisions.ts"
import type { Store } from "../jobs/Worker.ts"
import { DAY } from "./SubscriptionHosts.ts"
import { ahead, open } from "./SubscriptionWorker.ts"

const ACCOUNTS = Array.from({ length: 8 }, (_, i) => `acc_${i + 1}`)
const MINUTE = 60_000
const CREDITS = 25_000_000

const script = fileURLToPath(new URL("SubscriptionWorker.ts", import.meta.url))

/** A process that maintains subscriptions until `fatal` is in its log; without it, it advances those that it is told to. */
const worker = (store: Store, millis: number, fatal = "none") =>
  Effect.acquireRelease(
    Effect.sync(() => start(process.execPath, ["--conditions=@millrace/source", script, JSON.stringify(store), String(millis), fatal])),
    ({ child, ended }) =>
      Effect.promise(() => {
        child.kill("SIGKILL")
        return ended
      })
  )

/** Every month is shorter, and the grace period is longer than the difference. */
const LONG_AGO = -32 * DAY

/** Accounts whose first period, of a month, is over. */
const subscribed = Effect.fnUntraced(function* (store: Store, accounts: ReadonlyArray<string>) {
  const stores = yield* open(store)
  yield* Effect.scoped(
    Effect.gen(function* () {
      const { checkout, ledger, subscriptions } = yield* ahead(stores, LONG_AGO)
      yield* Effect.forEach(accounts, (id, i) =>
        Effect.gen(function* () {
          yield* ledger.execute(id, Decisions.open({ sealedEmail: "", emailHash: id }))
          const [subscriptionId, paymentId] = [`sub_${FIRST}${i}`, `pay_${FIRST}${i}`]
          yield* subscriptions.want(id, "standard", { subscriptionId, paymentId })
          yield* checkout.capture(id, paymentId)
          yield* subscriptions.note(paymentId)
        })
      )
    })
  )
  return stores
})

const FIRST = "01M7YKD46JCP6VGMKADN3JSPJ"

type Stores = Effect.Success<ReturnType<typeof subscribed>>

const logOf = ({ events }: Stores) => Stream.runCollect(events.readAll(EventStore.start))

/** Each account has two periods, each requested and captured once, and granted as one lot that expires with it. */
const renewedOnce = Effect.fnUntraced(function* (stores: Stores, accounts: ReadonlyArray<string>) {
  const log = (yield* logOf(stores)).map(({ data, stream, type }) => ({ stream, type, data: JSON.parse(data) }))
  for (const account of accounts) {
    const bare = account.slice(4)
    const of = (type: string) => log.filter((event) => event.type === type && event.stream === `subscription-${bare}`)
    expect([account, of("SubscriptionPeriodRequested").length]).toEqual([account, 1])
    const periods = of("SubscriptionPeriodBegan").map(({ data }) => data)
    expect(periods.map(({ period }) => period)).toEqual([0, 1])
    const payments = log.filter(({ type, data }) => type === "PaymentRequested" && data.accountId === account)
    expect(payments.map(({ data }) => data.paymentId)).toEqual(periods.map(({ paymentId }) => paymentId))
    const lots = log.filter(({ type, data }) => type === "CreditsGranted" && periods.some(({ paymentId }) => paymentId === data.paymentRef))
    expect(lots.map(({ data: { amount, expiresAt, paymentRef } }) => ({ amount, expiresAt, paymentRef }))).toEqual(
      periods.map(({ paymentId, until }) => ({ amount: CREDITS, expiresAt: until, paymentRef: paymentId }))
    )
  }
  for (const type of ["PaymentCaptured", "CreditsGranted"])
    expect(log.filter((event) => event.type === type)).toHaveLength(2 * accounts.length)
  const { problems } = yield* Effect.provideService(Audit.run(), EventStore.EventStore, stores.events)
  expect(problems).toEqual([])
})

/** Two processes advance all subscriptions at the same moment. */
const raced = (store: Store) =>
  Effect.gen(function* () {
    const stores = yield* subscribed(store, ACCOUNTS)
    const workers = yield* Effect.forEach([1, 2], () => worker(store, 0))
    yield* Effect.promise(() => Promise.all(workers.map(({ printed }) => printed("ready", 1))))
    for (const { send } of workers) send(ACCOUNTS.join(" "))
    yield* Effect.promise(() => Promise.all(workers.map(({ printed }) => printed("advanced", 1))))
    yield* renewedOnce(stores, ACCOUNTS)
  })

const ACCOUNT = "acc_1"

/** A process dies right after an event is in the log; the next one does the rest. */
const killedAfter = (store: Store, type: string) =>
  Effect.gen(function* () {
    const stores = yield* subscribed(store, [ACCOUNT])
    const before = (yield* logOf(stores)).length
    const dying = yield* worker(store, 0, type)
    yield* Effect.promise(() => dying.ended)
    expect(dying.child.signalCode).toBe("SIGKILL")
    // What else the process did at that moment may share the commit: the period begins beside the grant
    const renewed = (yield* logOf(stores)).slice(before).map((event) => event.type)
    expect(renewed.filter((each) => each === type)).toEqual([type])
    // A payment that was requested and not begun is begun after a minute
    yield* worker(store, 2 * MINUTE, "nothing")
    const rest = Effect.map(logOf(stores), (log) => {
      const count = (wanted: string) => log.filter((event) => event.type === wanted).length
      return [count("SubscriptionPeriodBegan"), count("CreditsGranted")]
    })
    yield* Effect.promise(() => expect.poll(() => Effect.runPromise(rest), { timeout: 60_000 }).toEqual([2, 2]))
    yield* renewedOnce(stores, [ACCOUNT])
  })

const inFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "millrace-subscriptions-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
).pipe(Effect.map((folder): Store => ({ kind: "sqlite", folder })))

const onPostgres = Effect.map(schema, (made): Store => ({ kind: "postgres", ...made }))

const run = (body: Effect.Effect<void, unknown, Scope.Scope>, signal: AbortSignal) => Effect.runPromise(Effect.scoped(body), { signal })

describe("two processes that renew subscriptions at the same moment request, capture and grant each period once", () => {
  test("on one SQLite file", { timeout: 120_000 }, ({ signal }) => run(Effect.flatMap(inFolder, raced), signal))
  test("on one PostgreSQL", { timeout: 120_000 }, ({ signal }) => run(Effect.flatMap(onPostgres, raced), signal))
})

describe("a process that is killed while it renews leaves the rest to the next one", () => {
  const POINTS = ["SubscriptionPeriodRequested", "PaymentRequested", "PaymentCaptured", "CreditsGranted"]
  for (const type of POINTS)
    test(`after ${type}`, { timeout: 120_000 }, ({ signal }) =>
      run(
        Effect.flatMap(inFolder, (store) => killedAfter(store, type)),
        signal
      )
    )

  test("after PaymentCaptured, on PostgreSQL", { timeout: 120_000 }, ({ signal }) =>
    run(
      Effect.flatMap(onPostgres, (store) => killedAfter(store, "PaymentCaptured")),
      signal
    )
  )
})
