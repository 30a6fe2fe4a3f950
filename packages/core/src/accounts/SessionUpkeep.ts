/**
 * Writes the end of sessions that are past it, at one host at a time, and erases accounts of sign-ups that nobody confirmed. A session
 * cannot be used from its end on, whether or not that was written.
 */
import { type Aggregate, Deadlines, type EventStore, type StateStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer } from "effect"
import * as Session from "./Session.ts"
import { Sessions } from "./Sessions.ts"
import { SignUps } from "./SignUps.ts"

/** For how long the account of a sign-up is looked at after its session, should no host run then: 30 days, in milliseconds. */
const PATIENCE = 30 * 24 * 3_600_000

/** The deadline of the account of a sign-up, beside that of its session. */
const ACCOUNT = "account:"

const schedule = Deadlines.of(Session.Session, {
  SessionOpened: ({ accountId, expiresAt, idleAt, proof }, { id: key }) => [
    { _tag: "set", key, dueAt: Math.min(idleAt, expiresAt) },
    // An account that was verified since, or has credits, is left alone: then no event clears the deadline
    ...(proof === "signUp" ? [{ _tag: "set", key: ACCOUNT + accountId, dueAt: expiresAt, until: expiresAt + PATIENCE } as const] : [])
  ],
  SessionUsed: ({ idleAt }, { id: key }) => [{ _tag: "set", key, dueAt: idleAt }],
  SessionEnded: (_, { id: key }) => [{ _tag: "clear", key }]
})

const make = Effect.fnUntraced(function* (options?: Deadlines.Options) {
  const sessions = yield* Sessions
  const signUps = yield* SignUps
  const { status } = yield* Deadlines.make(
    {
      name: "sessions",
      version: 1,
      ...schedule,
      onDue: ({ key }): Effect.Effect<void, Aggregate.Failure | StateStore.StateUnavailable> =>
        key.startsWith(ACCOUNT) ? signUps.abandon(key.slice(ACCOUNT.length)) : sessions.expire(key)
    },
    options
  )
  return { status }
})

export class SessionUpkeep extends Context.Service<SessionUpkeep, Effect.Success<ReturnType<typeof make>>>()(
  "@millrace/core/accounts/SessionUpkeep"
) {
  static readonly layer = (
    options?: Deadlines.Options
  ): Layer.Layer<SessionUpkeep, never, Sessions | SignUps | EventStore.EventStore | StateStore.StateStore> =>
    Layer.effect(this, make(options))
}
