/** The log, as JSON Lines. */
import { Effect, Option, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import * as Administration from "../Administration.ts"
import { CommandFailed } from "../Failure.ts"
import * as Output from "../Output.ts"
import * as StoreUrl from "../StoreUrl.ts"

const lineOf = (event: EventStore.RecordedEvent): string => {
  const { position, stream, revision, id, type } = event
  return JSON.stringify({
    position,
    stream,
    revision,
    id,
    type,
    at: HashChain.atOf(event),
    data: JSON.parse(event.data),
    metadata: JSON.parse(event.metadata)
  })
}

export const events = Command.make(
  "events",
  {
    store: Administration.store,
    stream: Flag.String("stream").pipe(Flag.withDescription("Only this stream: account-acc_..."), Flag.optional),
    from: Flag.String("from").pipe(Flag.withDescription("Only what comes after this position"), Flag.optional),
    follow: Flag.Boolean("follow").pipe(Flag.withDescription("Go on with what is written from now on"), Flag.withDefault(false))
  },
  ({ store, stream, from, follow }) =>
    Effect.gen(function* () {
      const log = yield* EventStore.EventStore
      const only = Option.getOrUndefined(stream)
      if (only !== undefined && !StreamName.isStreamName(only)) {
        return yield* Effect.fail(new CommandFailed(`${JSON.stringify(only)} is no name of a stream: {category}-{id}`))
      }
      const after = Option.match(from, { onNone: () => EventStore.start, onSome: EventStore.position })
      const all: Stream.Stream<EventStore.RecordedEvent, EventStore.StoreUnavailable> = follow
        ? Stream.mapArray(log.subscribe(after), (batches) => batches.flatMap((batch) => batch.events) as never)
        : only === undefined
          ? log.readAll(after)
          : Stream.filter(log.readStream(only), (event) => event.position > after)
      yield* Stream.runForEachArray(all, (events) => {
        const lines = events.filter((event) => only === undefined || event.stream === only).map(lineOf)
        return lines.length === 0 ? Effect.void : Output.line(lines.join("\n"))
      })
    }).pipe(Effect.provide(StoreUrl.logLayer(store)))
).pipe(
  Command.withDescription("Print events as JSON Lines"),
  Command.withExamples([
    { command: "millrace events --stream account-acc_01M7YKD46JCP6VGMKADN3JSPJP", description: "One account's" },
    { command: "millrace events --follow", description: "All there are, then each as it is written" }
  ])
)
