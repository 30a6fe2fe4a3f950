/** Why an upstream failed, as `charges show` tells it: the words are sealed, and are gone with the account's keys. */
import { readFileSync, renameSync } from "node:fs"
import { join } from "node:path"
import { Charge, Credits, Decisions, Ledger, MasterKey, Millrace, Operation, PricePlan, UpstreamUnavailable, Vault } from "@millrace/core"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Effect, Layer, Redacted, Schema } from "effect"
import { expect, it } from "vitest"
import { millrace } from "../../../test/system/InProcess.ts"
import { newStore, openAccount } from "../../../test/system/Server.ts"

const REASON = "connect ECONNREFUSED 10.0.0.7:8081"

type Store = ReturnType<typeof newStore>

const stateOf = ({ folder }: Store) => join(folder, "millrace.state.db")

/** Runs beside the command line, on the same files. */
const beside = <A, E>(store: Store, effect: Effect.Effect<A, E, Millrace.Administration>): Promise<A> =>
  Effect.runPromise(Effect.provide(effect, Layer.provide(Millrace.administration(), storesOf(store))))

const storesOf = (store: Store) =>
  Layer.mergeAll(
    SqliteEventStore.layer({ filename: store.file }),
    SqliteStateStore.layer({ filename: stateOf(store) }),
    MasterKey.layer(Redacted.make(readFileSync(join(store.folder, "master.key"), "utf8").trim()))
  )

/** Holds a call of the account and refunds it, with `failure` in the metadata of the refund. */
const refund = (account: string, requestId: string, failure: string | undefined) =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    const reservationId = `res_${requestId}`
    const call = { reservationId, requestId, operation: "bin.lookup", quantity: 1, priceVersion: 1, unitPrice: Credits.of(500) }
    yield* ledger.execute(account, Decisions.reserve({ ...call, lifetime: 60_000 }))
    yield* ledger.execute(account, Decisions.release(reservationId, "service_error"), failure === undefined ? {} : { failure })
  })

const Shown = Schema.Struct({
  outcome: Schema.Literal("refunded"),
  ends: Schema.Tuple([Schema.Struct({ reason: Schema.Literal("service_error"), failure: Schema.optionalKey(Schema.String) })])
})

const failureOf = async ({ url }: Store, request: string) => {
  const { code, stdout, stderr } = await millrace(["charges", "show", "--store", url, "--request", request])
  expect([code, stderr]).toEqual([0, ""])
  expect(stdout.trimEnd()).not.toContain("\n")
  return Schema.decodeUnknownSync(Schema.fromJsonString(Shown))(stdout).ends[0].failure
}

it("the reason of an upstream's failure is shown where it can be opened, and otherwise as erased or unreadable", {
  timeout: 60_000
}, async () => {
  const store = newStore()
  const { account } = await openAccount(store.url, 10)
  const other = await openAccount(store.url, 10)
  await beside(
    store,
    Effect.gen(function* () {
      const vault = yield* Vault.Vault
      const failure = yield* vault.seal(Vault.ofAccount(account), "failure", REASON)
      yield* refund(account, "sealed", failure)
      yield* refund(account, "without", undefined)
      yield* refund(account, "tampered", `${failure.slice(0, -4)}AAAA`)
      yield* refund(other.account, "foreign", failure)
    })
  )
  const shown = async () => Promise.all(["sealed", "without", "tampered", "foreign"].map((request) => failureOf(store, request)))
  expect(await shown()).toEqual([REASON, undefined, "unreadable", "unreadable"])
  expect((await millrace(["events", "--store", store.url])).stdout).not.toContain(REASON)

  // Without the state, everything else is shown all the same
  renameSync(stateOf(store), `${stateOf(store)}.aside`)
  expect(await shown()).toEqual(["unreadable", undefined, "unreadable", "unreadable"])
  renameSync(`${stateOf(store)}.aside`, stateOf(store))

  const erased = await millrace(["accounts", "erase", "--store", store.url, "--account", account, "--confirm", account])
  expect([erased.code, erased.stderr]).toEqual([0, ""])
  expect(await shown()).toEqual(["erased", undefined, "erased", "unreadable"])
})

const work = Operation.job("failing.work", {
  summary: "Fails",
  route: { method: "POST", path: "/work", body: { question: Schema.String } },
  family: Operation.family("work", { resource: "work", path: "/work/:job", result: Schema.Null }),
  success: Schema.Struct({ id: Schema.String }),
  created: ({ id }) => ({ id }),
  attempts: 2,
  run: ({ question }) => Effect.fail(new UpstreamUnavailable({ upstream: "failing", reason: `${REASON}, asked for ${question}` }))
})

it("the reason is shown for each failed attempt of a job, without the input", { timeout: 60_000 }, async () => {
  const store = newStore()
  const { account } = await openAccount(store.url, 10)
  const host = Millrace.layer({ operations: [work], jobs: { backOff: { first: "1 millis", longest: "1 millis" } } })
  const failed = Effect.gen(function* () {
    yield* PricePlan.PriceBook.use((prices) => prices.publish({ [work.key]: Credits.of(1_000) }))
    const charge = yield* Charge.Charge
    const { job, ...reply } = yield* charge.run(work, { question: "SECRET-QUESTION" }, { accountId: account, requestId: "job" })
    if (job === undefined) throw new Error("The call becomes a job")
    const { ended } = yield* charge.awaitJob(work, account, { ...reply, job }, "30 seconds")
    expect(ended).toBe(true)
  })
  await Effect.runPromise(Effect.provide(failed, Layer.provide(host, storesOf(store))))
  const { code, stdout, stderr } = await millrace(["charges", "show", "--store", store.url, "--request", "job"])
  expect([code, stderr]).toEqual([0, ""])
  const attempt = { error: "UpstreamUnavailable", failure: `${REASON}, asked for [input]` }
  expect(JSON.parse(stdout)).toMatchObject({
    outcome: "refunded",
    job: expect.stringMatching(/^job_/u),
    failedAttempts: [
      { attempt: 1, ...attempt, type: "JobReleased" },
      { attempt: 2, ...attempt, type: "JobFailed" }
    ]
  })
  expect((await millrace(["events", "--store", store.url])).stdout).not.toContain("SECRET-QUESTION")
})
