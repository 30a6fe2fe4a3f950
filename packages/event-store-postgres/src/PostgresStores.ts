/** Both stores, and the text indexes, on one pool of connections and in one schema. */
import { EventStore, StateStore, TextIndex } from "@millrace/event-sourcing"
import { Context, Effect, Layer } from "effect"
import * as PostgresEventStore from "./PostgresEventStore.ts"
import * as PostgresStateStore from "./PostgresStateStore.ts"
import * as PostgresTextIndex from "./PostgresTextIndex.ts"
import * as Server from "./Server.ts"

export const layer = (
  options: PostgresEventStore.PostgresEventStoreOptions
): Layer.Layer<EventStore.EventStore | StateStore.StateStore | TextIndex.TextIndex, EventStore.StoreUnavailable> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const connections = yield* Server.connect(options)
      const events = yield* PostgresEventStore.makeOn(connections, options)
      const state = yield* PostgresStateStore.makeOn(connections, options)
      return Context.make(EventStore.EventStore, events).pipe(
        Context.add(StateStore.StateStore, state),
        Context.add(TextIndex.TextIndex, PostgresTextIndex.makeOn(connections, options))
      )
    }).pipe(Effect.mapError((fault) => new EventStore.StoreUnavailable({ reason: fault.message })))
  )
