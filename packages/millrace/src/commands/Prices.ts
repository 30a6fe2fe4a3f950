/** `prices`: lists the versions of the price plan, and publishes new ones. */
import { readFileSync } from "node:fs"
import { Credits } from "@millrace/core"
import { Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import * as Prices from "../administration/Prices.ts"
import * as DiskFiles from "../DiskFiles.ts"
import { CommandFailed, fail } from "../Failure.ts"
import * as Output from "../Output.ts"
import * as StoreUrl from "../StoreUrl.ts"
import * as Upstreams from "../Upstreams.ts"

const list = Administration.query(
  "list",
  "List the versions of the price plan with their prices, in credits for each unit",
  {
    "millrace prices list": "List all versions, including future ones",
    "millrace prices list --at 2026-12-31T00:00:00Z": "Show the prices at the end of the year"
  },
  StoreUrl.logLayer,
  { at: Administration.time("at", "Only the version in force at this instant; all, when left out") },
  Effect.fnUntraced(function* ({ at }, json) {
    const versions = yield* Prices.list(Option.getOrUndefined(at))
    if (!Output.isForPeople(json)) return versions
    // On a terminal, the prices in force get a table of their own
    const prices = versions.find(({ inForce }) => inForce)?.prices ?? {}
    return {
      versions: versions.map(({ version, effectiveAt, inForce }) => ({ version, effectiveAt, inForce })),
      prices: Object.entries(prices).map(([operation, price]) => ({ operation, price }))
    }
  })
)

const amountOf = (operation: string, text: string) => {
  const price = Credits.parse(text)
  return price === undefined
    ? fail(`${operation} cannot cost ${text}: credits are a number from 0 on with at most three decimals`)
    : Effect.succeed([operation, price] as const)
}

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
      ? fail(`${JSON.stringify(text)} sets no price: --set bin.lookup=0.5`)
      : amountOf(operation, price)
  })

const publish = Administration.act(
  "prices publish",
  "Publish prices as a new version of the plan, in force from now or from a future time; those not named stay as they are. A call costs the price that was in force when it was held. If no price changes, nothing is published",
  {
    "millrace prices publish --set bin.lookup=0.4 --set email.validate=0.8": "Change two prices from now on",
    'millrace prices publish --file prices.json --effective-at 2999-01-01T00:00:00Z --by ada --reason "new year"':
      "Announce prices for a future time"
  },
  {
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
    )
  },
  Effect.fnUntraced(function* ({ file, set, effectiveAt, newOperations }, metadata) {
    const inFile = Option.isSome(file) ? yield* changesIn(file.value) : []
    const changes = Object.fromEntries([...inFile, ...(yield* changesOf(set))])
    if (Object.keys(changes).length === 0) return yield* fail("there is nothing to publish: name prices by --set or --file")
    if (!newOperations)
      yield* Prices.refuseUnknown(
        changes,
        Upstreams.api.operations.map(({ key }): string => key)
      )
    return yield* Prices.publish(changes, Option.getOrUndefined(effectiveAt), metadata)
  })
).pipe(Command.withShortDescription("Publish prices as a new version; those not named stay as they are"))

export const prices = Administration.group("prices", "List prices, and publish new ones", [list, publish])
