/** Replays all streams of one kind. */
import { type Decider, type EventCodec, EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"

/** The state of each stream of a kind by its id, in the order of their first events. Reads the whole log. */
export const statesOf = <State, Event extends EventCodec.Tagged>({ category, codec, evolve, initial }: Decider<State, Event>) =>
  Effect.gen(function* () {
    const log = yield* EventStore.EventStore
    const states = new Map<string, State>()
    yield* Stream.runForEachArray(log.readAll(EventStore.start), (events) =>
      Effect.sync(() => {
        for (const event of events) {
          if (StreamName.category(event.stream) !== category) continue
          const id = StreamName.id(event.stream)
          const at = HashChain.timeOf(event)
          states.set(id, evolve(states.get(id) ?? initial, codec.decode(event.type, event.data), at))
        }
      })
    )
    return states
  })
