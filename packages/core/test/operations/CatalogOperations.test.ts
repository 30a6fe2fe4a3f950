import { MemoryEventStore, MemoryStateStore } from "@millrace/event-sourcing"
import { Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, test } from "vitest"
import { MailRelay } from "../../src/accounts/MailRelay.ts"
import * as Millrace from "../../src/Millrace.ts"
import * as AccountBilling from "../../src/operations/AccountBilling.ts"
import * as AccountLimits from "../../src/operations/AccountLimits.ts"
import * as Bin from "../../src/operations/Bin.ts"
import * as CatalogOperations from "../../src/operations/CatalogOperations.ts"
import * as Grammar from "../../src/operations/Grammar.ts"
import type { Plan } from "../../src/payments/Plans.ts"
import { MasterKey } from "../../src/vault/MasterKey.ts"
import { CircuitBreaker } from "../../src/work/CircuitBreaker.ts"
import type * as Operation from "../../src/work/Operation.ts"
import { NotFound } from "../../src/work/OperationError.ts"
import { credits } from "../billing/Bench.ts"
import { MASTER } from "../vault/Vaults.ts"

const { read, capabilities, capability, config, groups } = CatalogOperations
const CATALOG = [read, capabilities, capability, config, groups]
const ACCOUNT = [AccountBilling.read, AccountLimits.read]
const OPERATIONS = [Bin.lookup, Grammar.check, ...ACCOUNT, ...CATALOG]
const KEYS = OPERATIONS.map(({ key }) => key)

const PLAN: Plan = { plan: "standard", amount: 2_000, currency: "USD", credits: credits(25_000_000), every: "month" }

const PUBLIC = { accountId: "public", requestId: "req_1", reservationId: "res_1" }

/** The decoded reply of an operation. */
const answer = <Input, A, E, R>(
  operation: {
    readonly run: (input: Input, caller: Operation.Caller) => Effect.Effect<Operation.Outcome<A>, E, R>
    readonly success: Schema.Codec<A, unknown>
  },
  input: Input
) =>
  Effect.map(operation.run(input, PUBLIC), ({ data }) =>
    JSON.parse(JSON.stringify(Schema.encodeSync(Schema.toCodecJson(operation.success))(data)))
  )

const stores = Layer.mergeAll(MemoryEventStore.layer, MemoryStateStore.layer, MasterKey.layer(MASTER))
const upstreams = Layer.mergeAll(
  Layer.succeed(Bin.BinDirectory, { lookup: () => Effect.fail(new NotFound({ resource: "bin" })) }),
  Layer.succeed(Grammar.GrammarChecker, { supports: () => true, check: () => Effect.succeed({ matches: [] }) })
)
const host = (options: Omit<Millrace.MillraceOptions<never>, "operations"> = {}) =>
  Layer.fresh(Millrace.layer({ operations: OPERATIONS, ...options })).pipe(
    Layer.provideMerge(Layer.mergeAll(upstreams, Layer.fresh(stores)))
  )

const testing = <E>(
  name: string,
  body: Effect.Effect<unknown, E, Layer.Success<ReturnType<typeof host>>>,
  options?: Omit<Millrace.MillraceOptions<never>, "operations">
): void => test(name, () => Effect.runPromise(Effect.asVoid(body).pipe(Effect.provide(host(options)), Effect.provide(TestClock.layer()))))

const AVAILABLE = { available: true, reason: null, retry_after: null }

describe("the catalog's operations", () => {
  testing(
    "are free and list every operation of the host once, including themselves",
    Effect.gen(function* () {
      const { operations } = yield* answer(read, {})
      expect(operations.map(({ key }: { readonly key: string }) => key)).toEqual(KEYS)
      for (const { key, price, availability } of operations) {
        expect(availability).toEqual(AVAILABLE)
        expect(price).toEqual({ credits: key === "bin.lookup" ? 0.5 : key === "grammar.check" ? 1 : 0, unit: "call", version: 1 })
      }
      const listed = yield* answer(capabilities, {})
      expect(listed.capabilities.map(({ key }: { readonly key: string }) => key)).toEqual(KEYS)
      expect(listed.capabilities[0]).toEqual({
        key: "bin.lookup",
        name: "bin lookup",
        summary: Bin.lookup.summary,
        group: "bin",
        availability: AVAILABLE
      })
    })
  )

  testing(
    "describe one operation as the list does, with details, and fail with NotFound for an unknown key",
    Effect.gen(function* () {
      const { operations } = yield* answer(read, {})
      for (const [i, key] of KEYS.entries()) expect(yield* answer(capability, { key })).toMatchObject(operations[i])
      expect(yield* answer(capability, { key: "bin.lookup" })).toMatchObject({
        method: "GET",
        path: "/bin/{bin}",
        example: Bin.lookup.example,
        output: { type: "object", properties: { bin: { type: "string" } } }
      })
      for (const key of ["bin", "toString", "Bin.lookup"])
        expect({ ...(yield* Effect.flip(answer(capability, { key }))) }).toEqual({ _tag: "NotFound", resource: "capability" })
    })
  )

  testing(
    "list the host's groups with prices and availability",
    Effect.gen(function* () {
      const breaker = yield* CircuitBreaker
      for (const _ of [1, 2]) yield* breaker.record("bin", "failure")
      const answered = yield* answer(groups, {})
      expect(answered.groups).toMatchObject([
        { key: "lookups", summary: "Questions with an answer.", availability: AVAILABLE },
        { key: "account", name: "account", summary: null, availability: AVAILABLE },
        { key: "catalog", operations: CATALOG.map(({ key }) => ({ key, price: { credits: 0 } })) }
      ])
      const closed = { available: false, reason: "It is temporarily unavailable.", retry_after: 10 }
      expect(answered.groups[0].operations).toMatchObject([
        { key: "grammar.check", availability: AVAILABLE },
        { key: "bin.lookup", availability: closed }
      ])
    }),
    {
      breaker: { failures: 2, openFor: 10_000 },
      groups: { lookups: { operations: [Grammar.check, Bin.lookup], description: "Questions with an answer." } }
    }
  )

  const constants = {
    credit: { usd: 0.001, value: "0.001", currency: "USD", one: "credit", several: "credits", decimals: 3 },
    pages: { page: { minimum: 1, maximum: 10_000 }, per_page: { minimum: 1, maximum: 100, default: 25 } },
    replies: { kept_for: 86_400, maximum_length: 1_048_576 }
  }

  const lacking = (reason: unknown) => ({ available: false, reason, retry_after: null })
  const nothing = {
    sign_up: lacking("No mail relay is set up at this host. Links by mail need one, and a public URL that they lead to."),
    payments: lacking("No gateway for payments is set up at this host."),
    plans: lacking("No plans are set up at this host.")
  }

  testing(
    "return the configuration",
    Effect.gen(function* () {
      const offers = nothing
      expect(yield* answer(config, {})).toEqual({
        ...constants,
        registration: { credits: 200 },
        rate_limit: { calls: 60, window: 60 },
        offers
      })
    })
  )

  testing(
    "return the settings of the host",
    Effect.gen(function* () {
      const relayed = Effect.provide(answer(config, {}), Layer.succeed(MailRelay, { configured: Effect.void, send: () => Effect.void }))
      // Nothing takes the money of the plans
      const offers = { ...nothing, sign_up: AVAILABLE, plans: nothing.payments }
      expect(yield* relayed).toEqual({ ...constants, registration: { credits: 12.5 }, rate_limit: { calls: 7, window: 30 }, offers })
      expect((yield* Effect.provide(answer(config, {}), MailRelay.unconfigured)).offers).toEqual({ ...offers, sign_up: nothing.sign_up })
    }),
    { rateLimit: { limit: 7, window: 30 }, registration: { signUpCredits: credits(12_500) }, payments: { plans: [PLAN] } }
  )
})

/** The names of all fields except those of JSON Schemas. */
const namesIn = (json: unknown): ReadonlyArray<string> =>
  typeof json === "object" && json !== null
    ? Object.entries(json).flatMap(([name, value]) =>
        name === "bounds" || name === "output" ? [name] : [...(Array.isArray(json) ? [] : [name]), ...namesIn(value)]
      )
    : []

describe("the example of", () => {
  for (const operation of [...ACCOUNT, ...CATALOG]) {
    const { example, key, route, success } = operation
    test(`${key} is a valid input and reply, encoded and decoded`, () => {
      expect(example).toBeDefined()
      const data = Schema.toCodecJson<Schema.Codec<unknown, unknown>>(success)
      const input: Readonly<Record<string, Schema.Codec<unknown, unknown>>> = { ...route.params, ...route.query, ...route.body }
      const sent = JSON.parse(JSON.stringify(Schema.encodeUnknownSync(data)(example?.data)))
      expect(Schema.decodeUnknownSync(data)(sent)).toEqual(example?.data)
      expect(Schema.decodeUnknownSync(Schema.Struct(input))(example?.input)).toEqual(example?.input)
      expect(namesIn(sent).filter((name) => !/^[a-z_]+$/u.test(name))).toEqual([])
    })
  }
})
