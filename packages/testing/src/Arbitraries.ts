/**
 * Arbitrary values for fast-check: of any schema, of what the ledger is made of, of what operations take, and scripts of what may be
 * asked of an account over time, for the ledger and its oracle.
 */
import { AccountEvent, Credits, Lots } from "@millrace/core"
import { Arbitrary, Effect, Schema } from "effect"
import * as fc from "fast-check"
import type { Call, Command, Reason, Source } from "./OracleLedger.ts"

/**
 * Values of a schema's type, as decoded: whatever its checks, brands, patterns, unions and records admit. Effect's own engine makes
 * them out of a size and a seed; fast-check shrinks the size, so that a counterexample is small, if not always the smallest.
 */
export const arbitraryOf = <A>(schema: Schema.Codec<A, unknown>, { size = 8 }: { readonly size?: number } = {}): fc.Arbitrary<A> => {
  const values = Arbitrary.schema(schema)
  const sample = (size: number, seed: number): A => {
    const [value] = Effect.runSync(Arbitrary.sampleEffect(values, { count: 1, size, seed }))
    if (value === undefined && !Schema.is(schema)(value)) throw new Error("No value of the schema was found")
    return value as A
  }
  return fc
    .tuple(fc.nat({ max: size }), fc.noShrink(fc.nat()))
    .map(([size, seed]) => ({ value: sample(size, seed) }))
    .map(({ value }) => value)
}

/** What a valid caller may send to an operation: path, query and body in one. */
export const inputOf = <Params extends Fields, Query extends Fields, Body extends Fields>(
  { route }: { readonly route: { readonly params: Params; readonly query: Query; readonly body: Body } },
  options?: { readonly size?: number }
): fc.Arbitrary<Schema.Struct.Type<Params & Query & Body>> => arbitraryOf(Schema.Struct({ ...route.params, ...route.query, ...route.body }), options)

type Fields = { readonly [name: string]: Schema.Codec<any, any> }

// what the ledger is made of

/** From nothing to the largest amount there is; mostly small. */
export const amount: fc.Arbitrary<Credits.Credits> = fc
  .oneof({ weight: 4, arbitrary: fc.nat(20) }, { weight: 4, arbitrary: fc.nat(1_000_000) }, { weight: 1, arbitrary: fc.nat(10 ** 15) })
  .map(Credits.of)

/** Milliseconds since 1970, of this century. */
export const timestamp: fc.Arbitrary<number> = fc.integer({ min: Date.UTC(2000), max: Date.UTC(2100) })

export const lotSource: fc.Arbitrary<Lots.LotSource> = fc.constantFrom(...Lots.LotSource.literals)

/** A lot as an account may hold it: never empty, no more claimed than held. */
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

/** The lots of one account, in the order in which they are used. */
export const lots: fc.Arbitrary<ReadonlyArray<Lots.Lot>> = fc
  .uniqueArray(lot, { maxLength: 8, selector: ({ lotId }) => lotId })
  .map((all) => all.reduce<ReadonlyArray<Lots.Lot>>(Lots.insert, []))

/** Any account event by itself: for codecs. What an account's events are together only a decider knows; see {@link script}. */
export const accountEvent: fc.Arbitrary<AccountEvent> = arbitraryOf(AccountEvent)

// what may be asked of an account

/** A command and when it comes: milliseconds since 1970. */
export interface Step {
  readonly at: number
  readonly command: Command
}

const SECOND = 1_000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE

/** When every script begins. */
export const SCRIPT_START = Date.UTC(2026, 0, 1)

/** A command that is told its time and who came before it: ids of attempts count up, and some come again. */
type Intent = (now: number, attempts: Attempts) => Command

interface Attempts {
  /** A new reservation. */
  readonly next: () => string
  /** The reservation made that many before the newest. */
  readonly back: (n: number) => string
}

const either = <A>(...cases: ReadonlyArray<readonly [weight: number, value: A]>): fc.Arbitrary<A> =>
  fc.oneof(...cases.map(([weight, value]) => ({ weight, arbitrary: fc.constant(value) })))

/** Few lots, few keys, small amounts and whole seconds: so that things coincide. */
const lotId = fc.nat(4).map((n) => `lot_${n}`)
const some = fc.option(fc.integer({ min: 0, max: 12 }), { nil: undefined, freq: 3 })
const wait = either([80, 0], [80, SECOND], [40, 3 * SECOND], [30, 8 * SECOND], [8, 5 * MINUTE], [8, 10 * MINUTE], [2, DAY], [4, 7 * DAY])
const back = either([6, 0], [3, 1], [2, 2], [1, 3], [1, 5], [1, 9])

const grant: fc.Arbitrary<Intent> = fc
  .record({
    lotId,
    amount: fc.integer({ min: 0, max: 14 }),
    source: either<Source>([4, "topup"], [2, "subscription"], [3, "promotion"], [1, "adjustment"]),
    priority: fc.integer({ min: 1, max: 2 }),
    lasts: either<number | null>([3, null], [1, -5 * SECOND], [4, 5 * SECOND], [4, 10 * SECOND], [2, 20 * SECOND], [2, 7 * DAY])
  })
  .map(
    ({ lasts, ...lot }) =>
      (now) => ({
        _tag: "Grant",
        ...lot,
        // On a grid, so that lots expire together
        expiresAt: lasts === null ? null : Math.ceil((now + lasts) / (5 * SECOND)) * 5 * SECOND
      })
  )

const call = fc
  .record({
    quantity: fc.integer({ min: 1, max: 4 }),
    unitPrice: fc.integer({ min: 1, max: 4 }),
    lifetime: fc.integer({ min: 1, max: 12 }),
    end: either<"itself" | "recovery" | "job">([8, "itself"], [1, "recovery"], [1, "job"]),
    key: fc.option(
      fc.record({
        hash: fc.constantFrom("key_a", "key_b"),
        fingerprint: either([5, "one request"], [1, "another request"]),
        lookedUpAgo: either([8, 0], [2, SECOND], [1, 10 * MINUTE - 1], [1, 10 * MINUTE])
      }),
      { nil: undefined, freq: 2 }
    )
  })
  .map(({ lifetime, end, key, ...rest }) => (now: number, reservationId: string): Call => {
    const milliseconds = lifetime * SECOND
    return {
      reservationId,
      ...rest,
      end: end === "job" ? { _tag: end, acceptWithin: milliseconds } : { _tag: end, lifetime: milliseconds },
      ...(key && { key: { hash: key.hash, fingerprint: key.fingerprint, lookedUpAt: now - key.lookedUpAgo } })
    }
  })

const reserve: fc.Arbitrary<Intent> = fc
  .tuple(call, fc.option(back, { nil: undefined, freq: 10 }), either([10, false], [1, true]))
  .map(([call, n, again]) => (now, { next, back }) => ({ _tag: "Reserve", call: call(now, again && n !== undefined ? back(n) : next()) }))

const reason = either<Exclude<Reason, "goodwill">>([2, "service_error"], [2, "cancelled"], [1, "expired"], [1, "abandoned"])
const quantity = fc.option(fc.integer({ min: 0, max: 5 }), { nil: undefined, freq: 3 })

const onReservation = <A>(rest: fc.Arbitrary<A>, command: (reservationId: string, rest: A) => Command): fc.Arbitrary<Intent> =>
  fc.tuple(back, rest).map(
    ([n, rest]) =>
      (_, { back }) =>
        command(back(n), rest)
  )

const settleLate: fc.Arbitrary<Intent> = fc.tuple(call, back, quantity, either([6, false], [1, true])).map(
  ([call, n, quantity, again]) =>
    (now, { back, next }) => {
      const lateOf = back(n)
      return { _tag: "SettleLate", lateOf, call: call(now, again ? back(0) : next()), quantity }
    }
)

const lotted = (_tag: "ClawBack" | "ReverseClawback"): fc.Arbitrary<Intent> =>
  fc.tuple(lotId, some).map(([lotId, amount]) => (): Command => ({ _tag, lotId, amount }))

const intent: fc.Arbitrary<Intent> = fc.oneof(
  { weight: 14, arbitrary: grant },
  { weight: 24, arbitrary: reserve },
  {
    weight: 14,
    arbitrary: onReservation(quantity, (reservationId, quantity): Command => ({ _tag: "Settle", reservationId, quantity }))
  },
  { weight: 4, arbitrary: settleLate },
  { weight: 8, arbitrary: onReservation(reason, (reservationId, reason): Command => ({ _tag: "Refund", reservationId, reason })) },
  {
    weight: 10,
    arbitrary: onReservation(
      fc.tuple(fc.oneof(reason, fc.constant("goodwill" as const)), some),
      (reservationId, [reason, amount]): Command => ({ _tag: "GiveBack", reservationId, reason, amount })
    )
  },
  { weight: 9, arbitrary: lotted("ClawBack") },
  { weight: 6, arbitrary: lotted("ReverseClawback") },
  {
    weight: 3,
    arbitrary: fc
      .integer({ min: 1, max: 12 })
      .map((lifetime): Intent => (_, { next }) => ({ _tag: "ReserveTrial", reservationId: next(), lifetime: lifetime * SECOND }))
  },
  {
    weight: 2,
    arbitrary: onReservation(
      fc.constantFrom("UseTrial" as const, "ReleaseTrial" as const),
      (reservationId, _tag): Command => ({ _tag, reservationId })
    )
  },
  {
    weight: 4,
    arbitrary: either<Command>(
      [20, { _tag: "ApplyDue" }],
      [20, { _tag: "Verify", signUp: 20, lotId: "lot_signup" }],
      [10, { _tag: "Suspend" }],
      [20, { _tag: "Reinstate" }],
      [1, { _tag: "Close" }],
      [5, { _tag: "Open" }]
    ).map((command) => () => command)
  }
)

/** What may be asked of one account, in order of time: most scripts open it first, and all keep to few lots and keys. */
export const script = ({ maxLength = 60 }: { readonly maxLength?: number } = {}): fc.Arbitrary<ReadonlyArray<Step>> =>
  fc.tuple(either([30, true], [1, false]), fc.array(fc.tuple(wait, intent), { maxLength, size: "max" })).map(([opens, told]) => {
    let now = SCRIPT_START
    let made = 0
    const id = (n: number) => `res_${String(Math.max(1, n)).padStart(3, "0")}`
    const attempts: Attempts = { next: () => id(++made), back: (n) => id(made - n) }
    const steps: Array<Step> = opens ? [{ at: now, command: { _tag: "Open" } }] : []
    for (const [wait, intent] of told) {
      now += wait
      steps.push({ at: now, command: intent(now, attempts) })
    }
    return steps
  })
