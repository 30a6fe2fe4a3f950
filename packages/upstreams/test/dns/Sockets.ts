/** The sockets that clients in this process open while a scope is open, over UDP and TCP, and how many of them closed. */
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { EventEmitter } from "node:events"
import { Effect } from "effect"

const CHANNELS = ["udp.socket", "net.client.socket"]

export const watchSockets = Effect.gen(function* () {
  const counts = { opened: 0, closed: 0 }
  const watch = (event: unknown) => {
    if (typeof event !== "object" || event === null || !("socket" in event) || !(event.socket instanceof EventEmitter)) return
    counts.opened += 1
    event.socket.once("close", () => {
      counts.closed += 1
    })
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      for (const channel of CHANNELS) subscribe(channel, watch)
    }),
    () =>
      Effect.sync(() => {
        for (const channel of CHANNELS) unsubscribe(channel, watch)
      })
  )
  return counts
})
