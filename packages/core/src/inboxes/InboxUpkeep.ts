/**
 * Maintains inboxes in the background, also after a process died: ends those whose time is over or whose account was closed, and removes
 * files that no message needs.
 */
import { Deadlines, type EventHandlers, type EventStore, Lease, type Projection, Reaction, type StateStore } from "@millrace/event-sourcing"
import { Context, type Duration, Effect, Layer, Option } from "effect"
import * as FileSweeper from "../jobs/FileSweeper.ts"
import type { File } from "../jobs/Files.ts"
import { Account } from "../ledger/Account.ts"
import type { AccountEvent } from "../ledger/AccountEvent.ts"
import * as Inbox from "./Inbox.ts"
import { Inboxes } from "./Inboxes.ts"

export interface InboxUpkeepOptions extends Deadlines.Options {
  /** How often one of the hosts removes files that no message needs and that are a day old: every 6 hours by default. */
  readonly sweepFilesEvery?: Duration.Input
}

const clear = (_: unknown, { id: key }: EventHandlers.Origin): ReadonlyArray<Deadlines.Change> => [{ _tag: "clear", key }]

/** The deadlines of inboxes, with their account. */
const lives = Deadlines.of(Inbox.Inbox, {
  InboxCreated: ({ accountId, expiresAt }, { id: key }) => [{ _tag: "set", key, dueAt: expiresAt, payload: accountId }],
  InboxDeleted: clear,
  InboxExpired: clear
})

/** An inbox that cannot be read may need the file. */
const mayBeNamed = ({ read }: Inboxes["Service"], { id, owner }: File): Effect.Effect<boolean> =>
  Effect.map(Effect.option(read(owner)), (found) => {
    if (Option.isNone(found)) return true
    const { at, state } = found.value
    return Inbox.isLive(state, at) && state.messages.some(({ blobId }) => blobId === id)
  })

/** Deletes the inboxes of a closed account: nobody can read them any more, and an erasure leaves their files otherwise until they expire. */
const closuresOf = (inboxes: Inboxes["Service"], { list }: Deadlines.Deadlines) => {
  const close = Effect.fnUntraced(function* (_: unknown, { id: accountId, position }: EventHandlers.Origin) {
    const open = (yield* list({ atLeast: position })).filter(({ payload }) => payload === accountId)
    for (const { key: inboxId } of open) yield* Effect.catchTag(inboxes.remove({ accountId, inboxId }), "InboxNotFound", () => Effect.void)
  })
  const reaction = Reaction.of<AccountEvent, Effect.Error<ReturnType<typeof close>>>(Account, { AccountClosed: close })
  return { name: "inboxClosures", start: "beginning", ...reaction } as const
}

const make = Effect.fnUntraced(function* ({ sweepFilesEvery, ...options }: InboxUpkeepOptions = {}) {
  const inboxes = yield* Inboxes
  const { blobs, files } = inboxes.letters
  const deadlines = yield* Deadlines.make(
    {
      name: "inboxDeadlines",
      version: 1,
      ...lives,
      onDue: ({ key: inboxId, payload: accountId }) => inboxes.expire({ inboxId, accountId })
    },
    options
  )
  const closures = yield* Reaction.make(closuresOf(inboxes, deadlines), options)
  const sweeper = FileSweeper.make(
    {
      files,
      isNeeded: Effect.succeed((file: File) => mayBeNamed(inboxes, file)),
      ...(sweepFilesEvery === undefined ? {} : { every: sweepFilesEvery })
    },
    blobs
  )
  yield* Effect.forkScoped(Lease.keep("inboxFiles", options)((lease) => sweeper.lead(lease)))
  return {
    /** Inboxes that should have been ended by `now`, milliseconds since 1970. */
    overdue: (
      now: number,
      options?: Projection.ReadOptions
    ): Effect.Effect<ReadonlyArray<Deadlines.Deadline>, Projection.ProjectionBehind | Projection.ProjectionStopped> =>
      deadlines.overdue(now, options),
    status: Effect.all({ deadlines: deadlines.status, closures: closures.status, files: Effect.sync(sweeper.status) })
  }
})

export class InboxUpkeep extends Context.Service<InboxUpkeep, Effect.Success<ReturnType<typeof make>>>()(
  "@millrace/core/inboxes/InboxUpkeep"
) {
  static readonly layer = (
    options?: InboxUpkeepOptions
  ): Layer.Layer<InboxUpkeep, never, Inboxes | EventStore.EventStore | StateStore.StateStore> => Layer.effect(this, make(options))
}
