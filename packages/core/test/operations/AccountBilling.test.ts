import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { type Context, Effect, Layer, Schema, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import { Registration } from "../../src/accounts/Registration.ts"
import { Charge } from "../../src/billing/Charge.ts"
import { ofAccount, RateLimit } from "../../src/billing/RateLimit.ts"
import * as Decisions from "../../src/ledger/Decisions.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import * as Millrace from "../../src/Millrace.ts"
import * as AccountBilling from "../../src/operations/AccountBilling.ts"
import * as AccountLimits from "../../src/operations/AccountLimits.ts"
import { COMMON_LIMITS } from "../../src/operations/CommonLimits.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import * as Operation from "../../src/work/Operation.ts"
import { UpstreamUnavailable } from "../../src/work/OperationError.ts"
import { credits } from "../billing/Bench.ts"
import { MASTER } from "../vault/Vaults.ts"

const NOW = Date.UTC(2026, 10, 21, 12)

/** Does the requested units or fails. */
const batch = Operation.make("email.validateBatch", {
  summary: "Does what it is told",
  price: 0.6,
  route: { method: "POST", path: "/batch", body: { units: Schema.Int, done: Schema.NullOr(Schema.Int) } },
  quantity: ({ units }) => units,
  success: Schema.Struct({ done: Schema.Int }),
  run: ({ done }) =>
    done === null
      ? Effect.fail(new UpstreamUnavailable({ upstream: "email", reason: "a test" }))
      : Effect.succeed({ data: { done }, quantity: done })
})
const lookup = Operation.make("bin.lookup", {
  summary: "Looks nothing up",
  price: 0.5,
  route: { method: "GET", path: "/bin" },
  success: Schema.Struct({}),
  run: () => Effect.succeed({ data: {} })
})
const OPERATIONS = [batch, lookup, AccountBilling.read, AccountLimits.read]

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "millrace-billing-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** A process on the files of a folder, with a limit of three calls a minute. */
const host = (folder: string) => {
  const stores = Layer.mergeAll(
    SqliteEventStore.layer({ filename: join(folder, "log.db") }),
    SqliteStateStore.layer({ filename: join(folder, "state.db") }),
    MasterKey.layer(MASTER)
  )
  const rateLimit = { limit: 3, window: 60 }
  return Layer.build(Layer.fresh(Layer.provideMerge(Millrace.layer({ operations: OPERATIONS, rateLimit }), stores)))
}
type Host = Effect.Success<ReturnType<typeof host>>

/** The decoded data of a reply. */
const call = <Op extends Operation.Any>(accountId: string, operation: Op, input: Operation.InputOf<Op>) =>
  Effect.gen(function* () {
    const charge = yield* Charge
    const { data } = yield* charge.run(operation, input, { accountId, requestId: "req" })
    return JSON.parse(data)
  })

const at =
  (host: Host) =>
  <A, E>(effect: Effect.Effect<A, E, Host extends Context.Context<infer Services> ? Services : never>) =>
    Effect.provideContext(effect, host)

const testing = (name: string, body: Effect.Effect<unknown, unknown, Scope.Scope>): void =>
  test(name, () =>
    Effect.runPromise(Effect.andThen(TestClock.setTime(NOW), body).pipe(Effect.asVoid, Effect.scoped, Effect.provide(TestClock.layer())))
  )

const opened = Effect.gen(function* () {
  const registration = yield* Registration
  const accountId = yield* registration.open("ada@example.com")
  yield* registration.verify(accountId)
  return accountId
})

describe("account.billing", () => {
  testing(
    "shows each call of any process at once, by operation, and refunds",
    Effect.gen(function* () {
      const files = yield* folder
      const [here, there] = [at(yield* host(files)), at(yield* host(files))]
      const accountId = yield* here(opened)
      const usage = { month: "2026-11", as_of: "2026-11-21T12:00:00.000Z" }
      const none = { calls: 0, credits: 0, refunded: 0, uncharged_calls: 0 }
      expect(yield* here(call(accountId, AccountBilling.read, {}))).toEqual({
        balance: 200,
        held: 0,
        debt: 0,
        lots: [{ lot_id: expect.stringMatching(/^lot_/u), source: "signup", remaining: 200, expires_at: null }],
        usage: { ...usage, ...none, operations: [] }
      })
      yield* here(call(accountId, lookup, {}))
      const looked = { operation: "bin.lookup", ...none, calls: 1, credits: 0.5, units: 1 }
      for (const process of [here, there])
        expect(yield* process(call(accountId, AccountBilling.read, {}))).toMatchObject({
          balance: 199.5,
          usage: { ...none, calls: 1, credits: 0.5, operations: [looked] }
        })
      yield* there(call(accountId, batch, { units: 10, done: 4 }))
      yield* Effect.flip(here(call(accountId, batch, { units: 10, done: null })))
      yield* here(
        Effect.gen(function* () {
          const ledger = yield* Ledger
          const hold = { reservationId: "res_1", requestId: "req", operation: "bin.lookup", quantity: 1, priceVersion: 1 }
          yield* ledger.execute(accountId, Decisions.reserve({ ...hold, unitPrice: credits(500), lifetime: 60_000 }))
          yield* ledger.execute(accountId, Decisions.settle({ reservationId: "res_1", replyHash: "hash" }))
          yield* ledger.refund(accountId, "res_1", { reason: "goodwill" })
        })
      )
      for (const process of [there, here])
        expect(yield* process(call(accountId, AccountBilling.read, {}))).toMatchObject({
          balance: 197.1,
          usage: {
            ...usage,
            calls: 3,
            credits: 3.4,
            refunded: 0.5,
            uncharged_calls: 1,
            operations: [
              { ...looked, calls: 2, credits: 1, refunded: 0.5, units: 2 },
              { operation: "email.validateBatch", calls: 1, credits: 2.4, refunded: 0, uncharged_calls: 1, units: 4 }
            ]
          }
        })
    })
  )

  testing(
    "fails with NotFound for an unknown account",
    Effect.gen(function* () {
      const here = at(yield* host(yield* folder))
      for (const answer of [call("acc_none", AccountBilling.read, {}), call("acc_none", AccountLimits.read, {})])
        expect(yield* Effect.flip(here(answer))).toMatchObject({ _tag: "NotFound", resource: "account" })
    })
  )
})

describe("account.limits", () => {
  testing(
    "shows the remaining calls without counting, and the trial until the account is verified",
    Effect.gen(function* () {
      const here = at(yield* host(yield* folder))
      const accountId = yield* here(Effect.flatMap(Registration, (registration) => registration.open("ada@example.com")))
      const limits = here(call(accountId, AccountLimits.read, {}))
      const rate = { calls: 3, window: 60, remaining: 3, reset_after: 60 }
      const expected = { ...COMMON_LIMITS, rate_limit: rate, operation_bounds: "/catalog" }
      const trial = { total: 10, used: 0, remaining: 10 }
      for (const _ of [1, 2]) expect(yield* limits).toEqual({ ...expected, trial })
      yield* here(Effect.flatMap(RateLimit, (rates) => rates.consume(ofAccount(accountId))))
      yield* TestClock.adjust("20 seconds")
      expect(yield* limits).toEqual({ ...expected, trial, rate_limit: { ...rate, remaining: 2, reset_after: 40 } })
      yield* here(Effect.flatMap(Registration, (registration) => registration.verify(accountId)))
      expect(yield* limits).toEqual({ ...expected, rate_limit: { ...rate, remaining: 2, reset_after: 40 } })
    })
  )
})
