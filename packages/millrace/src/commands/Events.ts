/** `events`: prints the log. */
import { lineOf } from "@millrace/audit"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Effect, Option, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import { fail } from "../Failure.ts"
import * as Output from "../Output.ts"
import * as Signals from "../Signals.ts"
import * as StoreUrl from "../StoreUrl.ts"
import * as Style from "../Style.ts"

const plainLine = (event: EventStore.RecordedEvent): string => {
  const { position, stream, revision, type, data } = event
  const place = Output.printable([position, HashChain.atOf(event), `${stream}@${revision}`].join("  "))
  return [Style.faint(place), Style.head(Output.printable(type)), Output.printable(data)].join("  ")
}

const POSITION = "a position as an event has it, such as 0000000000000042"

export const events = Command.make(
  "events",
  {
    store: Administration.store,
    stream: Flag.String("stream").pipe(Flag.withDescription("Only this stream: account-acc_..."), Flag.optional),
    from: Flag.String("from").pipe(
      Flag.withDescription("Only events after this position"),
      Flag.filter(
        (text) => /^\d+$/u.test(text),
        () => POSITION
      ),
      Flag.optional
    ),
    follow: Flag.Boolean("follow").pipe(Flag.withDescription("Keep printing new events, until SIGTERM or SIGINT"), Flag.withDefault(false)),
    json: Output.json
  },
  ({ store, stream, from: given, follow, json }) =>
    Effect.gen(function* () {
      const from = Option.match(given, { onNone: () => EventStore.start, onSome: (text) => StoreUrl.positionOf(text, store) })
      if (from === undefined) return yield* fail(`--from takes ${POSITION}`)
      const log = yield* EventStore.EventStore
      const only = Option.getOrUndefined(stream)
      if (only !== undefined && !StreamName.isStreamName(only)) {
        return yield* fail(`${JSON.stringify(only)} is no name of a stream: {category}-{id}`)
      }
      const write = Output.isForPeople(json) ? plainLine : lineOf
      const print = (events: ReadonlyArray<EventStore.RecordedEvent>) => {
        const lines = events.filter((event) => (only === undefined || event.stream === only) && event.position > from).map(write)
        return lines.length === 0 ? Effect.void : Output.line(lines.join("\n"))
      }
      if (follow) return yield* Signals.endsBySignal(Stream.runForEach(log.subscribe(from), ({ events }) => print(events)))
      yield* Stream.runForEachArray(only === undefined ? log.readAll(from) : log.readStream(only), print)
    }).pipe(Effect.provide(StoreUrl.logLayer(store)))
).pipe(
  Command.withDescription("Print events: as JSON Lines, or short on a terminal"),
  Administration.withExamples({
    "millrace events --stream account-acc_01M7YKD46JCP6VGMKADN3JSPJP": "Print the events of one account",
    "millrace events --from 0000000000000042 --follow": "Print the events after this position, then new ones as they are written"
  })
)
