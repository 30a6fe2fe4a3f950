/**
 * Worker threads shared by all accounts, in fair turns. An ended thread is restarted in the turn of the account whose message ended it, so
 * the time counts for that account.
 */
import type { UpstreamUnavailable } from "@millrace/core"
import { Effect, Fiber, type Scope } from "effect"
import * as FairTurns from "./FairTurns.ts"
import * as WorkerThread from "./WorkerThread.ts"

export interface Options<Reply> extends WorkerThread.Options<Reply>, FairTurns.QueueLimits {
  /** The number of threads, 1 by default. Each starts on first use, and holds its own engine in memory. */
  readonly threads?: number
}

export interface WorkerPool<Message, Reply> {
  /**
   * Sends the messages of a call, each in its own turn, and returns their replies in the same order. `UpstreamUnavailable` if too many
   * calls wait, if a message waits too long, and as `WorkerThread.ask` does. It is isolated, as it may concern this account only, unless a
   * thread cannot start or its reply is malformed.
   */
  readonly ask: (accountId: string, messages: ReadonlyArray<Message>) => Effect.Effect<ReadonlyArray<Reply>, UpstreamUnavailable>
}

export const make = <Message, Reply>(options: Options<Reply>): Effect.Effect<WorkerPool<Message, Reply>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const threads = Array.from({ length: options.threads ?? 1 }, () => WorkerThread.make<Message, Reply>(options))
    const turns = yield* FairTurns.make(yield* Effect.all(threads), options, ({ start }) => start)
    const ask = (accountId: string, message: Message) => turns.use(accountId, (thread) => thread.ask(message))

    return {
      // All messages queue at the start, so that the account keeps its place. They are awaited in the order in which they begin, so a message
      // that waits too long fails the call only after the running ones, which are not interrupted
      ask: (accountId, messages) =>
        Effect.forEach(messages, (message) => Effect.forkScoped(ask(accountId, message), { startImmediately: true })).pipe(
          Effect.flatMap((fibers) => Effect.forEach(fibers, Fiber.join)),
          Effect.scoped,
          turns.admit(accountId)
        )
    }
  })
