/** The head of a log as it is now, without an audit: to note it, for an audit to come. */
import { EventStore, HashChain } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"
import { bucketsOf, digest, type Head, type StreamEnd } from "./Head.ts"

/** Reads the whole log, and keeps the end of each stream in memory. It checks nothing. */
export const readHead: Effect.Effect<Head, EventStore.StoreUnavailable, EventStore.EventStore> = Effect.gen(function* () {
  const log = yield* EventStore.EventStore
  const ends = new Map<string, StreamEnd>()
  let [events, at, position] = [0, "", EventStore.start]
  yield* Stream.runForEachArray(log.readAll(EventStore.start), (read) =>
    Effect.sync(() => {
      for (const event of read) {
        const { revision, stream: name } = event
        ends.set(name, { name, revision, hash: HashChain.hashOf(event) })
        const time = HashChain.atOf(event)
        if (time > at) at = time
        position = event.position
      }
      events += read.length
    })
  )
  const all = [...ends.values()]
  return { position, streams: all.length, events, digest: digest(all), at: at === "" ? null : at, buckets: bucketsOf(all) }
})
