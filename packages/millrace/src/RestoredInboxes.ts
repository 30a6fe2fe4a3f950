/** The inboxes of a store that was restored from a backup: in their logs, those that were deleted or have expired since are still open. */
import { Inbox, Vault } from "@millrace/core"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"

const { category, codec, evolve, initial } = Inbox.Inbox

/** An inbox that no event has ended. */
export interface Open {
  readonly inbox: Inbox.Active
  readonly subject: { readonly name: string; readonly parent: string }
}

const open = Effect.gen(function* () {
  const log = yield* EventStore.EventStore
  const inboxes = new Map<string, Inbox.Inbox>()
  yield* Stream.runForEachArray(log.readAll(EventStore.start), (events) =>
    Effect.sync(() => {
      for (const event of events) {
        const { data, stream, type } = event
        if (StreamName.category(stream) !== category) continue
        const id = StreamName.id(stream)
        inboxes.set(id, evolve(inboxes.get(id) ?? initial, codec.decode(type, data), HashChain.timeOf(event)))
      }
    })
  )
  return [...inboxes].flatMap(
    ([id, inbox]): ReadonlyArray<Open> => (inbox.status === "active" ? [{ inbox, subject: Vault.ofInbox(id, inbox.accountId) }] : [])
  )
})

/** Destroys the keys of those whose time was over by `now`, milliseconds since 1970. Returns the others. */
export const end = Effect.fnUntraced(function* (now: number) {
  const vault = yield* Vault.Vault
  const live: Array<Open> = []
  for (const one of yield* open) {
    if (Inbox.isLive(one.inbox, now)) live.push(one)
    // Its expiry is written by the next server
    else yield* vault.destroy(one.subject)
  }
  return live
})

/** How many of these have their keys. */
export const readable = (inboxes: ReadonlyArray<Open>) =>
  Effect.map(Vault.census, ({ alive }) => {
    const keys = new Set(alive)
    return inboxes.filter(({ subject }) => keys.has(subject.name) && keys.has(subject.parent)).length
  })
