/** What administrative commands share: the store they work on, who acts and why, and how they write amounts and times. */
import { userInfo } from "node:os"
import { Config, Effect, Layer, Option, Schema } from "effect"
import { Flag } from "effect/cli"
import { Credits, Millrace, toIso } from "@millrace/core"
import type { Aggregate } from "@millrace/event-sourcing"
import * as StoreUrl from "./StoreUrl.ts"

export const store = Flag.String("store").pipe(
  Flag.withDescription(`Where everything is kept (MILLRACE_STORE, else ${StoreUrl.DEFAULT})`),
  Flag.withFallbackConfig(Config.String("MILLRACE_STORE")),
  Flag.withDefault(StoreUrl.DEFAULT)
)

export const masterKey = Config.Redacted("MILLRACE_MASTER_KEY").pipe(Config.option, Config.map(Option.getOrUndefined))

/** Everything but the calls themselves, on a store that is there; with `create`, on one that is made if it is not. */
export const layer = (url: string, mode: StoreUrl.StoreOptions["mode"] = "open") =>
  Layer.unwrap(
    Effect.map(masterKey, (masterKey) => Millrace.administration().pipe(Layer.provideMerge(StoreUrl.layer({ url, masterKey, mode }))))
  )

export const account = Flag.String("account").pipe(Flag.withDescription("Id of the account: acc_..."))

/** Recorded with every event of an administrative act. */
export const by = Flag.String("by").pipe(Flag.withDescription("Who acts; recorded (the user of this process)"), Flag.optional)
export const reason = Flag.String("reason").pipe(Flag.withDescription("Why; recorded"), Flag.optional)

export const metadata = (
  act: string,
  flags: { readonly by: Option.Option<string>; readonly reason: Option.Option<string> }
): Aggregate.Metadata => ({
  actor: Option.getOrElse(flags.by, () => `cli:${userName()}`),
  reason: Option.getOrElse(flags.reason, () => act)
})

const userName = (): string => {
  try {
    return userInfo().username
  } catch {
    // A process may run as a user without a name
    return String(process.getuid?.() ?? "unknown")
  }
}

/** Decimal credits, more than none, with at most three decimals. */
export const amount = Flag.String("amount").pipe(
  Flag.withDescription("Credits, with at most three decimals"),
  Flag.filterMap(
    (text) => Option.filter(Option.fromUndefinedOr(Credits.parse(text)), (credits) => credits > 0),
    (text) => `${JSON.stringify(text)} is no amount of credits: a number greater than 0 with at most three decimals`
  )
)

/** A time in ISO 8601, with a zone. */
export const time = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(`${description}: 2026-12-31T00:00:00Z`),
    Flag.filterMap(
      (text) => Option.filter(Option.some(Date.parse(text)), (millis) => ISO.test(text) && !Number.isNaN(millis)),
      (text) => `${JSON.stringify(text)} is no time such as 2026-12-31T00:00:00Z`
    ),
    Flag.optional
  )

const ISO = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d))?$/u

export const isoOrNull = (millis: number | null | undefined): string | null => (millis === null || millis === undefined ? null : toIso(millis))
