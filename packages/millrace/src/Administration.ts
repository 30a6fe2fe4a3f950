/** What operator commands share: their frame, flags for the store, ids, amounts and times, and who acts and why. */
import { userInfo } from "node:os"
import { Credits, Millrace, toIso } from "@millrace/core"
import type { Aggregate } from "@millrace/event-sourcing"
import { Effect, Layer, Option } from "effect"
import { Command, Flag } from "effect/cli"
import * as Output from "./Output.ts"
import * as Setting from "./Setting.ts"
import * as StoreUrl from "./StoreUrl.ts"

/** The flag of the store. The description lists the kinds of stores. */
export const storeBy = (description: string) =>
  Setting.make("store", description, { metavar: "url", parse: (text) => text, expected: "a store", secret: true }, StoreUrl.DEFAULT)

export const store = storeBy("The store: sqlite:PATH, postgres:URL, or kurrentdb:URL with --state")

/** A command of several others, with the first example of the first. */
export const group = <const Name extends string, const Subcommands extends readonly [Command.Command.Any, ...Array<Command.Command.Any>]>(
  name: Name,
  description: string,
  subcommands: Subcommands
) =>
  Command.make(name).pipe(
    Command.withDescription(description),
    Command.withExamples(subcommands[0].examples.slice(0, 1)),
    Command.withSubcommands(subcommands)
  )

type Values<Flags> = Command.Command.Config.InferValue<Flags>

/** Command lines with what they do. */
type Examples = Readonly<Record<string, string>>

export const withExamples = (examples: Examples) =>
  Command.withExamples(Object.entries(examples).map(([command, description]) => ({ command, description })))

/** A command that reads a store by the services of a layer, and prints an answer. */
export const query = <const Flags extends Command.Command.Config, E, R, Services, LayerError, Needs>(
  name: string,
  description: string,
  examples: Examples,
  layerOf: (store: string) => Layer.Layer<Services, LayerError, Needs>,
  flags: Flags,
  run: (flags: Values<Flags>, json: boolean) => Effect.Effect<unknown, E, R>
) =>
  Command.make(name, { store, flags, json: Output.json }, ({ store, flags, json }) =>
    Effect.flatMap(run(flags, json), (answer) => Output.print(json, answer)).pipe(Effect.provide(layerOf(store)))
  ).pipe(Command.withDescription(description), withExamples(examples))

/** A command of a group that changes a store and prints an answer. Its events record who acts and why, by default the command itself. */
export const act = <const Flags extends Command.Command.Config, E, R>(
  name: `${string} ${string}`,
  description: string,
  examples: Examples,
  flags: Flags,
  run: (flags: Values<Flags>, metadata: Aggregate.Metadata, store: string) => Effect.Effect<unknown, E, R>,
  mode: StoreUrl.StoreOptions["mode"] = "open"
) =>
  Command.make(name.slice(name.indexOf(" ") + 1), { store, flags, by, reason, json: Output.json }, ({ store, flags, json, ...who }) =>
    Effect.flatMap(run(flags, metadata(name, who), store), (answer) => Output.print(json, answer)).pipe(Effect.provide(layer(store, mode)))
  ).pipe(Command.withDescription(description), withExamples(examples))

/** The services for administration, on an existing store; with `create`, a missing store is made. */
export const layer = (url: string, mode: StoreUrl.StoreOptions["mode"] = "open") =>
  Millrace.administration().pipe(Layer.provideMerge(StoreUrl.layer({ url, mode })))

const ID = /^[^\s\p{Cc}]{1,200}$/u

/** The id of something, as commands and answers show it. */
export const id = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(description),
    Flag.filter(
      (text) => ID.test(text) && text.isWellFormed(),
      () => "an id: 1 to 200 characters without spaces"
    )
  )

export const account = id("account", "Id of the account: acc_...")

/** Recorded with every event of an operator command. */
export const by = Flag.String("by").pipe(Flag.withDescription("Who acts; recorded (default: the user of this process)"), Flag.optional)
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
    // The process runs as a user without a name
    return String(process.getuid?.() ?? "unknown")
  }
}

/** Decimal credits, more than 0, with at most three decimals. */
export const amount = Flag.String("amount").pipe(
  Flag.withDescription("Credits, with at most three decimals"),
  Flag.filterMap(
    (text) => Option.filter(Option.fromUndefinedOr(Credits.parse(text)), (credits) => credits > 0),
    () => "an amount of credits: a number greater than 0 with at most three decimals, such as 100 or 0.5"
  )
)

/** A time in ISO 8601, with a zone. */
export const time = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(`${description}: 2026-12-31T00:00:00Z`),
    Flag.filterMap(
      (text) => Option.fromUndefinedOr(instantOf(text)),
      () => "a time in ISO 8601 with its zone, such as 2026-12-31T00:00:00Z"
    ),
    Flag.optional
  )

const ISO = /^(?<day>\d{4}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d))?$/u

/** Undefined for a malformed time. Unlike `Date.parse`, it refuses 30 February. */
const instantOf = (text: string): Date | undefined => {
  const day = Date.parse(ISO.exec(text)?.groups?.["day"] ?? "")
  if (Number.isNaN(day) || !text.startsWith(new Date(day).toISOString().slice(0, 10))) return undefined
  const instant = Date.parse(text)
  return Number.isNaN(instant) ? undefined : new Date(instant)
}

export const isoOrNull = (millis: number | null | undefined): string | null =>
  millis === null || millis === undefined ? null : toIso(millis)
