/** `prices`: lists the versions of the price plan, and publishes new ones. */
import { readFileSync } from "node:fs"
import { Credits, PricePlan, toIso } from "@millrace/core"
import { EventStore, StreamName } from "@millrace/event-sourcing"
import { Clock, Effect, Option, Schema, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as DiskFiles from "../DiskFiles.ts"
import { CommandFailed } from "../Failure.ts"
import * as Output from "../Output.ts"
import * as StoreUrl from "../StoreUrl.ts"
import * as Upstreams from "../Upstreams.ts"

const { by, reason, store } = Administration
const { json } = Output

const { codec } = PricePlan.PricePlan

const planOf = Effect.gen(function* () {
  const log = yield* EventStore.EventStore
  return yield* Stream.runFold(
    log.readStream(StreamName.make(PricePlan.PricePlan.category, "standard")),
    () => PricePlan.PricePlan.initial,
    (plan, { type, data }) => PricePlan.PricePlan.evolve(plan, codec.decode(type, data), 0)
  )
})

const decimals = (prices: PricePlan.Prices): Readonly<Record<string, number>> =>
  Object.fromEntries(Object.entries(prices).map(([operation, price]) => [operation, Credits.toDecimal(price)]))

const list = Command.make(
  "list",
  { store, at: Administration.time("at", "Only the version in force at this instant; all, when left out"), json },
  ({ store, at, json }) =>
    Effect.gen(function* () {
      const plan = yield* planOf
      const instant = Option.getOrElse(at, () => undefined) ?? (yield* Clock.currentTimeMillis)
      const inForce = PricePlan.inForce(plan, instant)
      const versions = (Option.isSome(at) ? plan.filter((list) => list === inForce) : plan).map(({ version, effectiveAt, prices }) => ({
        version,
        effectiveAt: toIso(effectiveAt),
        inForce: version === inForce?.version,
        prices: decimals(prices)
      }))
      // On a terminal, the prices in force get a table of their own
      yield* Output.isForPeople(json)
        ? Output.print(json, {
            versions: versions.map(({ version, effectiveAt, inForce }) => ({ version, effectiveAt, inForce })),
            prices: Object.entries(decimals(inForce?.prices ?? {})).map(([operation, price]) => ({ operation, price }))
          })
        : Output.print(json, versions)
    }).pipe(Effect.provide(StoreUrl.logLayer(store)))
).pipe(
  Command.withDescription("List the versions of the price plan with their prices, in credits for each unit"),
  Command.withExamples([
    { command: "millrace prices list", description: "All versions, those to come included" },
    { command: "millrace prices list --at 2026-12-31T00:00:00Z", description: "What calls cost at the end of the year" }
  ])
)

const amountOf = (operation: string, text: string) =>
  Option.match(Option.fromUndefinedOr(Credits.parse(text)), {
    onNone: () =>
      Effect.fail(new CommandFailed(`${operation} cannot cost ${text}: credits are a number from 0 on with at most three decimals`)),
    onSome: (price) => Effect.succeed([operation, price] as const)
  })

const Decimals = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Finite))

const changesIn = (file: string) =>
  Effect.gen(function* () {
    const text = yield* DiskFiles.attempt(`${file} cannot be read`, () => readFileSync(file, "utf8"))
    const prices = yield* Effect.mapError(
      Schema.decodeUnknownEffect(Decimals)(text),
      () => new CommandFailed(`${file} holds no prices: {"bin.lookup": 0.5}, credits by operation`)
    )
    return yield* Effect.forEach(Object.entries(prices), ([operation, price]) => amountOf(operation, String(price)))
  })

const ASSIGNMENT = /^(?<operation>[^=]+)=(?<price>.*)$/u

const changesOf = (assignments: ReadonlyArray<string>) =>
  Effect.forEach(assignments, (text) => {
    const { operation, price } = ASSIGNMENT.exec(text)?.groups ?? {}
    return operation === undefined || price === undefined
      ? Effect.fail(new CommandFailed(`${JSON.stringify(text)} sets no price: --set bin.lookup=0.5`))
      : amountOf(operation, price)
  })

/** A misspelt key would leave the old price in force. */
const refuseUnknown = (changes: PricePlan.Prices, plan: PricePlan.PricePlan) => {
  const known = new Set([...Object.keys(plan.at(-1)?.prices ?? {}), ...Upstreams.api.operations.map(({ key }): string => key)])
  const unknown = Object.keys(changes).filter((operation) => !known.has(operation))
  return unknown.length === 0
    ? Effect.void
    : Effect.fail(
        new CommandFailed(`no operation here is called ${unknown.join(", ")}: see prices list, or say --new-operations for those to come`)
      )
}

/** Versions take effect in order: without a time, a new one would only take effect with the last that is announced. */
const refuseToWait = (plan: PricePlan.PricePlan, now: number) => {
  const last = plan.at(-1)
  return last === undefined || last.effectiveAt <= now
    ? Effect.void
    : Effect.fail(
        new CommandFailed(
          `version ${last.version} comes into force at ${toIso(last.effectiveAt)}, and what follows it no sooner: name a time by --effective-at`
        )
      )
}

const publish = Command.make(
  "publish",
  {
    store,
    file: Flag.String("file").pipe(Flag.withDescription('JSON file of prices: {"bin.lookup": 0.5}, credits by operation'), Flag.optional),
    set: Flag.String("set").pipe(
      Flag.withMetavar("operation=credits"),
      Flag.withDescription("A price; repeat for several. It overrides the file's"),
      Flag.between(0, 1_000)
    ),
    effectiveAt: Administration.time("effective-at", "When they come into force; now, when left out"),
    newOperations: Flag.Boolean("new-operations").pipe(
      Flag.withDescription("Allow prices of operations that this program does not know"),
      Flag.withDefault(false)
    ),
    by,
    reason,
    json
  },
  ({ file, set, effectiveAt, newOperations, store, json, ...flags }) =>
    Effect.gen(function* () {
      const inFile = Option.isSome(file) ? yield* changesIn(file.value) : []
      const changes = Object.fromEntries([...inFile, ...(yield* changesOf(set))])
      if (Object.keys(changes).length === 0)
        return yield* Effect.fail(new CommandFailed("there is nothing to publish: name prices by --set or --file"))
      const book = yield* PricePlan.PriceBook
      const before = yield* book.plan
      if (!newOperations) yield* refuseUnknown(changes, before)
      if (Option.isNone(effectiveAt)) yield* refuseToWait(before, yield* Clock.currentTimeMillis)
      const after = yield* book
        .publish(changes, Option.getOrUndefined(effectiveAt), Administration.metadata("prices publish", flags))
        .pipe(
          Effect.catchTag("EffectiveTooEarly", ({ earliest }) =>
            Effect.fail(
              new CommandFailed(
                `prices cannot come into force before they are published, nor before those they follow: from ${toIso(earliest)} on`
              )
            )
          )
        )
      const last = after.at(-1)
      if (last === undefined) return yield* Effect.die(new Error("A plan that was published to has a version"))
      const old = before.at(-1)?.prices ?? {}
      const published = after.length > before.length
      yield* Output.print(json, {
        version: last.version,
        effectiveAt: toIso(last.effectiveAt),
        published,
        changes: (published ? Object.entries(changes) : [])
          .filter(([operation, price]) => old[operation] !== price)
          .map(([operation, price]) => {
            const from = old[operation]
            return { operation, from: from === undefined ? null : Credits.toDecimal(from), to: Credits.toDecimal(price) }
          })
      })
    }).pipe(Effect.provide(Administration.layer(store)))
).pipe(
  Command.withShortDescription("Publish prices as a new version; those not named stay as they are"),
  Command.withDescription(
    "Publish prices as a new version of the plan, in force from now or from a time to come; those not named stay as they are. A call costs what was in force when it was held. Prices that all stand already publish nothing"
  ),
  Command.withExamples([
    { command: "millrace prices publish --set bin.lookup=0.4 --set email.validate=0.8", description: "Two prices, from now on" },
    {
      command: 'millrace prices publish --file prices.json --effective-at 2999-01-01T00:00:00Z --by ada --reason "new year"',
      description: "Announced ahead"
    }
  ])
)

export const prices = Administration.group("prices", "List prices, and publish new ones", [list, publish])
