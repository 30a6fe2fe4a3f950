/** `reactions`: events that a reaction on KurrentDB has parked, because it kept failing at them. */
import { HashChain } from "@millrace/event-sourcing"
import { CompetingReaction, KurrentDb } from "@millrace/event-store-kurrentdb"
import { Effect, Layer } from "effect"
import { Command } from "effect/cli"
import * as Administration from "../Administration.ts"
import { CommandFailed } from "../Failure.ts"
import * as Output from "../Output.ts"
import * as StoreUrl from "../StoreUrl.ts"

const flags = {
  store: Administration.store,
  name: Administration.id("name", "Name of the reaction"),
  json: Output.json
}

/** Only on KurrentDB: elsewhere a reaction reads in order and retries until it succeeds. */
const nodes = (store: string) =>
  Layer.unwrap(
    StoreUrl.isKurrentDb(store)
      ? Effect.succeed(KurrentDb.layer({ connection: store }))
      : Effect.fail(new CommandFailed("only on KurrentDB do reactions park events: name such a store"))
  )

const parked = Command.make("parked", flags, ({ store, name, json }) =>
  Effect.gen(function* () {
    // Fails where there is no such reaction, instead of listing nothing
    yield* CompetingReaction.info(name)
    const events = yield* CompetingReaction.parked(name)
    yield* Output.print(
      json,
      events.map((event) => ({ stream: event.stream, revision: event.revision, type: event.type, id: event.id, at: HashChain.atOf(event) }))
    )
  }).pipe(Effect.provide(nodes(store)))
).pipe(
  Command.withDescription("List what a reaction has parked, oldest first, at most a thousand"),
  Command.withExamples([{ command: "millrace reactions parked --name letters", description: "Each with its stream and revision" }])
)

const replay = Command.make("replay", flags, ({ store, name, json }) =>
  Effect.gen(function* () {
    const { parked } = yield* CompetingReaction.info(name)
    yield* CompetingReaction.replay(name)
    yield* Output.print(json, { name, replayed: parked })
  }).pipe(Effect.provide(nodes(store)))
).pipe(
  Command.withDescription("Have everything that a reaction parked delivered again; what fails again is parked again"),
  Command.withExamples([{ command: "millrace reactions replay --name letters", description: "Once the cause is fixed" }])
)

export const reactions = Command.make("reactions").pipe(
  Command.withDescription("List and replay what reactions on KurrentDB have parked"),
  Command.withExamples([{ command: "millrace reactions parked --name letters", description: "What one has set aside" }]),
  Command.withSubcommands([parked, replay])
)
