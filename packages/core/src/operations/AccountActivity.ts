/** An operation that says how the credits of an account changed, day by day. */
import { Clock, Effect, Schema } from "effect"
import { type DayUsage, monthOf, UsageBook } from "../billing/Usage.ts"
import * as Credits from "../Credits.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { Timestamp, toIso } from "../Timestamp.ts"
import * as Operation from "../work/Operation.ts"
import { NotFound, UpstreamUnavailable } from "../work/OperationError.ts"

const DAY = 86_400_000

const Day = Schema.Struct({
  /** A day of UTC, such as `2026-11-21`. */
  date: Schema.String,
  /** Credits at the end of the day, those that were held included; of the current day, those of now. */
  balance: Credits.CreditsFromDecimal,
  charged: Credits.CreditsFromDecimal,
  granted: Credits.CreditsFromDecimal
})

export const AccountActivity = Schema.Struct({
  /** The oldest first, without a gap. Shorter while a long past is counted for the first time: ask again then. */
  days: Schema.Array(Day),
  /** All that happened up to this time is counted. */
  as_of: Timestamp
})

/** The days up to the current one, whose changes lead to `total`. `days`: those on which anything changed. */
export const daysUpTo = (now: number, count: number, total: number, days: ReadonlyArray<DayUsage>): ReadonlyArray<typeof Day.Type> => {
  const byDay = new Map(days.map((usage) => [usage.day, usage]))
  let balance = total
  const listed = Array.from({ length: count }, (_, back) => {
    const date = toIso(now - back * DAY).slice(0, 10)
    const { change = 0, charged = Credits.zero, granted = Credits.zero } = byDay.get(date) ?? {}
    // A lot that expired since is written off by its own day's event only when that is written: never below nothing
    const day = { date, balance: Credits.of(Math.max(0, balance)), charged, granted }
    balance -= change
    return day
  })
  return listed.reverse()
}

/** The months of UTC that the days touch, the newest first. */
const monthsOf = (now: number, count: number): ReadonlyArray<string> => [
  ...new Set(Array.from({ length: count }, (_, back) => monthOf(now - back * DAY)))
]

const unavailable = ({ _tag }: { readonly _tag: string }) => new UpstreamUnavailable({ upstream: "ledger", reason: _tag })

const DEFAULT_DAYS = 30

export const read = Operation.make("account.activity", {
  summary: "How the account's credits changed, day by day",
  price: 0,
  route: {
    method: "GET",
    path: "/account/activity",
    query: { days: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 90 }))) }
  },
  success: AccountActivity,
  local: true,
  run: Effect.fnUntraced(function* ({ days: count = DEFAULT_DAYS }, { accountId }) {
    const ledger = yield* Ledger
    const book = yield* UsageBook
    const now = yield* Clock.currentTimeMillis
    const months = yield* Effect.mapError(
      Effect.forEach(monthsOf(now, count), (month) => book.read(accountId, month)),
      unavailable
    )
    // After the fold: what happens between the two is counted neither here nor there but on the current day
    const { available, held } = yield* Effect.mapError(ledger.balance(accountId), (error) =>
      error._tag === "AccountNotFound" ? new NotFound({ resource: "account" }) : unavailable(error)
    )
    const isWhole = months.every(({ asOf }) => asOf >= now)
    const asOf = Math.min(...months.map((month) => month.asOf))
    const usage = months.flatMap(({ days }) => days)
    return { data: { days: daysUpTo(now, isWhole ? count : 1, available + held, isWhole ? usage : []), as_of: asOf } }
  }),
  example: {
    input: { days: 2 },
    data: {
      days: [
        { date: "2026-11-20", balance: Credits.of(200_000), charged: Credits.zero, granted: Credits.of(200_000) },
        { date: "2026-11-21", balance: Credits.of(198_900), charged: Credits.of(1_100), granted: Credits.zero }
      ],
      as_of: Date.UTC(2026, 10, 21, 12)
    }
  }
})
