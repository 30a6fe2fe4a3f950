/** The plans of subscriptions, as hosts and operators give them. */
import { readFileSync } from "node:fs"
import { Amount, Credits, type Plans } from "@millrace/core"
import { Option, Schema } from "effect"
import type * as Setting from "./Setting.ts"

/** A plan of a subscription. */
export interface PlanOptions {
  /** Of a period, in US dollars. */
  readonly price: number
  /** Credits that each period brings, which expire with it. */
  readonly credits: number
  readonly period: "day" | "week" | "month" | "year"
}

const CURRENCY = "USD"

const Given = Schema.Record(
  Schema.String.check(Schema.isPattern(/^[a-z0-9][a-z0-9_-]{0,39}$/u)),
  Schema.Struct({
    price: Schema.Finite.check(Schema.isGreaterThanOrEqualTo(1)),
    credits: Schema.Finite.check(Schema.isGreaterThan(0)),
    period: Schema.Literals(["day", "week", "month", "year"])
  })
)

const decode = Schema.decodeUnknownOption(Given, { onExcessProperty: "error" })

/** Plans by their name; undefined if one of them is wrong, or if there is none. */
export const plansOf = (given: unknown): ReadonlyArray<Plans.Plan> | undefined => {
  const plans: Array<Plans.Plan> = []
  for (const [plan, { credits, period, price }] of Object.entries(Option.getOrElse(decode(given), () => ({})))) {
    const [amount, brought] = [Amount.fromDecimal(price, CURRENCY), Credits.parse(String(credits))]
    if (amount === undefined || brought === undefined) return undefined
    plans.push({ plan, amount, currency: CURRENCY, credits: brought, every: period })
  }
  return plans.length === 0 ? undefined : plans
}

/** JSON, or the name of a file with JSON. */
const parse = (text: string): ReadonlyArray<Plans.Plan> | undefined => {
  try {
    return plansOf(JSON.parse(text.trimStart().startsWith("{") ? text : readFileSync(text, "utf8")))
  } catch {
    return undefined
  }
}

/** What plans must be, in words. */
export const EXPECTED =
  'plans by name, such as {"standard":{"price":20,"credits":25000,"period":"month"}}: the price in dollars, from 1; the period day, week, month or year'

export const plans: Setting.Kind<ReadonlyArray<Plans.Plan>> = {
  metavar: "file|json",
  parse,
  expected: `${EXPECTED}; or a file with that`
}
