/**
 * Arbitraries for fast-check: values of any schema, inputs of operations, parts of the ledger, and scripts of commands to one account, which
 * the ledger and its oracle both execute.
 */
import { AccountEvent, Credits, Lots } from "@millrace/core"
import { Arbitrary, Effect, Schema } from "effect"
import * as fc from "fast-check"
import type { Call, Command, Reason, Recurring, Source } from "./OracleLedger.ts"

/**
 * Decoded values of a schema, with all its checks, brands, patterns, unions and records. Effect's engine generates them from a size and a
 * seed; fast-check shrinks the size, so a counterexample is small, though not always the smallest.
 */
export const arbitraryOf = <S extends Schema.Constraint>(
  schema: S,
  { size = 8 }: { readonly size?: number } = {}
): fc.Arbitrary<S["Type"]> => {
  const values = Arbitrary.schema(schema)
  const sample = (size: number, seed: number): S["Type"] => {
    for (const value of Effect.runSync(Arbitrary.sampleEffect(values, { count: 1, size, seed }))) return value
    throw new Error("No value of the schema was found")
  }
  return fc
    .tuple(fc.nat({ max: size }), fc.noShrink(fc.nat()))
    .map(([size, seed]) => sample(size, seed))
    .filter((value) => !hasMisreadKey(value))
}

/**
 * Whether a record in a value has a key of one character that JSON escapes. The `JSON.parse` of Node 24 and 26 may read such a key as a
 * backslash: https://github.com/nodejs/node/issues/63785.
 */
const hasMisreadKey = (value: unknown): boolean =>
  Array.isArray(value)
    ? value.some(hasMisreadKey)
    : isRecord(value) && Object.entries(value).some(([key, inner]) => isMisread(key) || hasMisreadKey(inner))

const isMisread = (key: string): boolean => key.length === 1 && JSON.stringify(key) !== `"${key}"`

const isRecord = (value: unknown): value is object =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype

/** Valid inputs of an operation: path, query and body in one. */
export const inputOf = <Params extends Schema.Struct.Fields, Query extends Schema.Struct.Fields, Body extends Schema.Struct.Fields>(
  { route }: { readonly route: { readonly params: Params; readonly query: Query; readonly body: Body } },
  options?: { readonly size?: number }
): fc.Arbitrary<Schema.Struct.Type<Params & Query & Body>> =>
  arbitraryOf(Schema.Struct({ ...route.params, ...route.query, ...route.body }), options)

// parts of the ledger

/** Amounts from zero to the largest, mostly small. */
export const amount: fc.Arbitrary<Credits.Credits> = fc
  .oneof({ weight: 4, arbitrary: fc.nat(20) }, { weight: 4, arbitrary: fc.nat(1_000_000) }, { weight: 1, arbitrary: fc.nat(10 ** 15) })
  .map(Credits.of)

/** Milliseconds since 1970, of this century. */
export const timestamp: fc.Arbitrary<number> = fc.integer({ min: Date.UTC(2000), max: Date.UTC(2100) })

export const lotSource: fc.Arbitrary<Lots.LotSource> = fc.constantFrom(...Lots.LotSource.literals)

/** A lot of an account: never empty, with no more claimed than held. */
export const lot: fc.Arbitrary<Lots.Lot> = fc
  .record({
    lotId: fc.stringMatching(/^lot_[0-9A-Z]{4}$/u),
    source: lotSource,
    priority: fc.integer({ min: 0, max: 50 }),
    expiresAt: fc.option(timestamp),
    grantedAt: timestamp,
    left: fc.nat(1_000),
    held: fc.nat(1_000),
    claimed: fc.nat(1_000)
  })
  .map(({ left, held, claimed, ...terms }) => ({
    ...terms,
    left: Credits.of(left + held === 0 ? 1 : left),
    held: Credits.of(held),
    claimed: Credits.of(Math.min(claimed, held))
  }))

/** The lots of one account, in the order in which they are spent. */
export const lots: fc.Arbitrary<ReadonlyArray<Lots.Lot>> = fc
  .uniqueArray(lot, { maxLength: 8, selector: ({ lotId }) => lotId })
  .map((all) => all.reduce<ReadonlyArray<Lots.Lot>>(Lots.insert, []))

/** Any single account event, to test codecs. For a possible sequence of events see {@link script}. */
export const accountEvent: fc.Arbitrary<AccountEvent> = arbitraryOf(AccountEvent).map(
  // A schema's integers include -0, which JSON does not have
  (event): AccountEvent => JSON.parse(JSON.stringify(event))
)

// commands to an account

/** A command, and when it is given: milliseconds since 1970. */
export interface Step {
  readonly at: number
  readonly command: Command
}

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** When every script begins. */
export const SCRIPT_START = Date.UTC(2026, 0, 1)

/** Makes commands that are given at once, from the time and the names in use. */
type Intent = (now: number, names: Names) => ReadonlyArray<Command>

/** Names of reservations, trials, lots and recurring grants, which count up. Most commands are about the newest. */
interface Names {
  readonly next: (kind: Kind) => string
  /** The n-th name before the newest. */
  readonly back: (kind: Kind, n: number) => string
}
type Kind = "res" | "trial" | "lot" | "grant"

const weighted = <A>(...cases: ReadonlyArray<readonly [weight: number, arbitrary: fc.Arbitrary<A>]>): fc.Arbitrary<A> =>
  fc.oneof(...cases.map(([weight, arbitrary]) => ({ weight, arbitrary })))

const either = <A>(...cases: ReadonlyArray<readonly [weight: number, value: A]>): fc.Arbitrary<A> =>
  weighted(...cases.map(([weight, value]) => [weight, fc.constant(value)] as const))

const optional = <A>(value: fc.Arbitrary<A>): fc.Arbitrary<A | undefined> => fc.option(value, { nil: undefined, freq: 2 })

// Small amounts, whole seconds and few keys make coincidences likely

const wait = either([50, 0], [50, SECOND], [20, 3 * SECOND], [15, 8 * SECOND], [2, 5 * MINUTE], [2, 10 * MINUTE], [1, DAY], [1, 7 * DAY])
const back = either([8, 0], [5, 1], [3, 2], [2, 3], [1, 5], [1, 9])
const some = optional(fc.integer({ min: 0, max: 12 }))
const adjustmentLifetime = either<number | undefined>([3, undefined], [1, HOUR], [1, 30 * DAY])

const grant: fc.Arbitrary<Intent> = fc
  .record({
    again: optional(fc.nat(3)),
    isNew: either([8, true], [1, false]),
    amount: fc.integer({ min: 0, max: 30 }),
    source: either<Source>([4, "topup"], [2, "subscription"], [3, "promotion"], [1, "adjustment"]),
    priority: fc.integer({ min: 1, max: 2 }),
    lasts: either<number | null>([6, null], [1, -5 * SECOND], [3, 5 * SECOND], [3, 10 * SECOND], [3, 20 * SECOND], [3, 7 * DAY])
  })
  .map(({ again = 0, isNew, lasts, ...lot }) => (now, { next, back }) => {
    // On a grid of five seconds, so that lots expire together
    const expiresAt = lasts === null ? null : Math.ceil((now + lasts) / (5 * SECOND)) * 5 * SECOND
    return [{ _tag: "Grant", lotId: isNew ? next("lot") : back("lot", again), ...lot, expiresAt }]
  })

const call = fc
  .record({
    quantity: fc.integer({ min: 1, max: 4 }),
    unitPrice: fc.integer({ min: 1, max: 4 }),
    lifetime: fc.integer({ min: 1, max: 12 }),
    end: either<"itself" | "recovery" | "job">([6, "itself"], [1, "recovery"], [1, "job"]),
    lives: adjustmentLifetime,
    key: fc.option(
      fc.record({
        hash: fc.constantFrom("key_a", "key_b"),
        fingerprint: either([5, "one request"], [1, "another request"]),
        lookedUpAgo: either([8, 0], [2, SECOND], [1, 10 * MINUTE]),
        knownAgo: either([6, 0], [2, SECOND], [2, Number.POSITIVE_INFINITY])
      }),
      { nil: undefined, freq: 2 }
    )
  })
  .map(({ lifetime, end, lives, key, ...rest }) => (now: number, reservationId: string): Call => {
    const milliseconds = lifetime * SECOND
    return {
      reservationId,
      ...rest,
      end: end === "job" ? { _tag: end, acceptWithin: milliseconds } : { _tag: end, lifetime: milliseconds },
      ...(lives === undefined ? {} : { adjustmentLifetime: lives }),
      ...(key && {
        key: {
          hash: key.hash,
          fingerprint: key.fingerprint,
          lookedUpAt: now - key.lookedUpAgo,
          knownAt: now - key.lookedUpAgo - key.knownAgo
        }
      })
    }
  })

const quantity = optional(fc.integer({ min: 0, max: 4 }))

const reserve: fc.Arbitrary<Intent> = fc
  .tuple(call, back, either([12, true], [1, false]))
  .map(([call, n, isNew]) => (now, { next, back }) => [{ _tag: "Reserve", call: call(now, isNew ? next("res") : back("res", n)) }])

/** A call that is reserved and settled at once. */
const charge: fc.Arbitrary<Intent> = fc.tuple(call, quantity).map(([call, quantity]) => (now, { next }) => {
  const reservationId = next("res")
  return [
    { _tag: "Reserve", call: call(now, reservationId) },
    { _tag: "Settle", reservationId, quantity }
  ]
})

/** A payment that is clawed back while its credits are held, or after they were charged. */
const dispute: fc.Arbitrary<Intent> = fc
  .record({ amount: fc.integer({ min: 1, max: 16 }), lasts: optional(fc.nat(10)), call, isCharged: fc.boolean(), quantity, taken: some })
  .map(({ amount, lasts, call, isCharged, quantity, taken }) => (now, { next }) => {
    const lotId = next("lot")
    const reservationId = next("res")
    const expiresAt = lasts === undefined ? null : now + lasts * SECOND
    return [
      { _tag: "Grant", lotId, amount, source: "topup", priority: 0, expiresAt },
      { _tag: "Reserve", call: call(now, reservationId) },
      ...(isCharged ? [{ _tag: "Settle", reservationId, quantity } as const] : []),
      { _tag: "ClawBack", lotId, amount: taken }
    ]
  })

const settleLate: fc.Arbitrary<Intent> = fc
  .tuple(call, back, quantity, either([8, true], [1, false]))
  .map(([call, n, quantity, isNew]) => (now, { back, next }) => {
    const lateOf = back("res", n)
    return [{ _tag: "SettleLate", lateOf, call: call(now, isNew ? next("res") : back("res", 0)), quantity }]
  })

const about = <A>(kind: Kind, rest: fc.Arbitrary<A>, command: (name: string, rest: A) => Command): fc.Arbitrary<Intent> =>
  fc.tuple(back, rest).map(([n, rest]) => (_, { back }) => [command(back(kind, n), rest)])

const reason = either<Exclude<Reason, "goodwill">>([2, "service_error"], [2, "cancelled"], [1, "expired"], [1, "abandoned"])

const settle = about("res", quantity, (reservationId, quantity) => ({ _tag: "Settle", reservationId, quantity }))
const release = about("res", reason, (reservationId, reason) => ({ _tag: "Release", reservationId, reason }))
const refunded = fc.record({ reason: fc.oneof(reason, fc.constant("goodwill" as const)), amount: some, adjustmentLifetime })
const refund = about("res", refunded, (reservationId, terms) => ({ _tag: "Refund", reservationId, ...terms }))
const clawBack = about("lot", some, (lotId, amount) => ({ _tag: "ClawBack", lotId, amount }))
const announceExpiry = about("lot", fc.constant(undefined), (lotId) => ({ _tag: "AnnounceExpiry", lotId }))
const returned = fc.record({ amount: some, adjustmentLifetime })
const reverseClawback = about("lot", returned, (lotId, terms) => ({ _tag: "ReverseClawback", lotId, ...terms }))

const reserveTrial: fc.Arbitrary<Intent> = fc
  .tuple(fc.integer({ min: 1, max: 12 }), either([6, true], [1, false]))
  .map(([lifetime, isNew]) => (_, { next, back }) => {
    const reservationId = isNew ? next("trial") : back("trial", 0)
    return [{ _tag: "ReserveTrial", reservationId, lifetime: lifetime * SECOND }]
  })
const trialEnd = fc.constantFrom("UseTrial" as const, "ReleaseTrial" as const)
const endTrial = about("trial", trialEnd, (reservationId, _tag) => ({ _tag, reservationId }))

const startRecurring: fc.Arbitrary<Intent> = fc
  .record({
    isRepeated: either([8, false], [1, true]),
    amount: fc.integer({ min: 0, max: 12 }),
    source: either<Source>([4, "promotion"], [3, "adjustment"], [1, "topup"]),
    priority: fc.integer({ min: 1, max: 2 }),
    every: either<Recurring["every"]>([3, "day"], [2, "week"], [2, "month"], [1, "year"]),
    lasts: either<number | null>([4, null], [1, 0], [1, SECOND], [2, 3 * DAY], [2, 10 * DAY]),
    expires: either<Recurring["expires"]>([2, "next"], [1, "never"])
  })
  .map(({ isRepeated, lasts, ...grant }) => (now, { next }) => {
    const until = lasts === null ? null : now + lasts
    const start = { _tag: "StartRecurring", grant: { ...grant, grantId: next("grant"), until } } as const
    return isRepeated ? [start, start] : [start]
  })
const stopRecurring = about("grant", fc.constant(undefined), (grantId) => ({ _tag: "StopRecurring", grantId }))

const setThreshold: fc.Arbitrary<Intent> = fc.option(fc.nat(25)).map((threshold) => () => [{ _tag: "SetThreshold", threshold }])

const other: fc.Arbitrary<Intent> = either<ReadonlyArray<Command>>(
  [20, [{ _tag: "ApplyDue" }]],
  [10, [{ _tag: "Verify", signUp: 20, lotId: "lot_signup" }]],
  [5, [{ _tag: "Suspend" }]],
  [25, [{ _tag: "Reinstate" }]],
  [1, [{ _tag: "Close" }]],
  [3, [{ _tag: "Open" }]]
).map((commands) => () => commands)

const intent = weighted<Intent>(
  [14, grant],
  [16, reserve],
  [10, charge],
  [12, settle],
  [7, dispute],
  [4, settleLate],
  [8, release],
  [10, refund],
  [5, clawBack],
  [7, reverseClawback],
  [3, startRecurring],
  [1, stopRecurring],
  [4, setThreshold],
  [3, announceExpiry],
  [2, reserveTrial],
  [2, endTrial],
  [5, other]
)

/** Commands to one account, in order of time. Most scripts open it first. For `maxLength`, commands that are given at once count as one. */
export const script = ({
  minLength = 0,
  maxLength = 60
}: Pick<fc.ArrayConstraints, "minLength" | "maxLength"> = {}): fc.Arbitrary<ReadonlyArray<Step>> =>
  fc
    .tuple(either([30, true], [1, false]), fc.array(fc.tuple(wait, intent), { minLength, maxLength, size: "max" }))
    .map(([opens, intents]) => {
      let now = SCRIPT_START
      const made = { res: 0, trial: 0, lot: 0, grant: 0 }
      const name = (kind: Kind, n: number) => `${kind}_${String(Math.max(1, n)).padStart(3, "0")}`
      const names: Names = { next: (kind) => name(kind, ++made[kind]), back: (kind, n) => name(kind, made[kind] - n) }
      const steps: Array<Step> = opens ? [{ at: now, command: { _tag: "Open" } }] : []
      for (const [wait, intent] of intents) {
        now += wait
        for (const command of intent(now, names)) steps.push({ at: now, command })
      }
      return steps
    })
