/** Writes the expiry of proxy sessions, at one host at a time. They cannot be used from their expiry on, whether or not it was written. */
import { Deadlines, type EventHandlers, type EventStore, type StateStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer } from "effect"
import { ProxySession } from "./ProxySession.ts"
import { ProxySessions } from "./ProxySessions.ts"

const clear = (_: unknown, { id: key }: EventHandlers.Origin): ReadonlyArray<Deadlines.Change> => [{ _tag: "clear", key }]

const schedule = Deadlines.of(ProxySession, {
  ProxySessionOpened: ({ expiresAt }, { id: key }) => [{ _tag: "set", key, dueAt: expiresAt }],
  ProxySessionEnded: clear,
  ProxySessionExpired: clear
})

const make = Effect.fnUntraced(function* (options?: Deadlines.Options) {
  const sessions = yield* ProxySessions
  const { status } = yield* Deadlines.make(
    { name: "proxySessions", version: 1, ...schedule, onDue: ({ key }) => sessions.expire(key) },
    options
  )
  return { status }
})

export class ProxyUpkeep extends Context.Service<ProxyUpkeep, Effect.Success<ReturnType<typeof make>>>()(
  "@millrace/core/proxies/ProxyUpkeep"
) {
  static readonly layer = (
    options?: Deadlines.Options
  ): Layer.Layer<ProxyUpkeep, never, ProxySessions | EventStore.EventStore | StateStore.StateStore> => Layer.effect(this, make(options))
}
