/**
 * Worker threads shared by all accounts, in fair turns. A thread that was ended is started again in the turn of the account whose message
 * ended it, so that this account pays for the time.
 */
import type { UpstreamUnavailable } from "@millrace/core"
import { Effect, Fiber, type Scope } from "effect"
import * as FairTurns from "./FairTurns.ts"
import * as WorkerThread from "./WorkerThread.ts"

export interface Options<Reply> extends WorkerThread.Options<Reply>, FairTurns.QueueLimits {
  /** Each is started when it is first needed, and holds an engine of its own in memory. 1 by default. */
  readonly threads?: number
}

export interface WorkerPool<Message, Reply> {
  /**
   * Sends the messages of one call, each at a turn of its own, and answers their replies in the same order. Fails with
   * `UpstreamUnavailable`: at once where too many calls wait, where a message waited too long, and as `WorkerThread.ask` does. It is
   * isolated, as it may concern this account alone, unless a thread cannot start or its reply has an unknown shape.
   */
  readonly ask: (accountId: string, messages: ReadonlyArray<Message>) => Effect.Effect<ReadonlyArray<Reply>, UpstreamUnavailable>
}

export const make = <Message, Reply>(options: Options<Reply>): Effect.Effect<WorkerPool<Message, Reply>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const threads = Array.from({ length: options.threads ?? 1 }, () => WorkerThread.make<Message, Reply>(options))
    const turns = yield* FairTurns.make(yield* Effect.all(threads), options, ({ start }) => start)
    const ask = (accountId: string, message: Message) => turns.use(accountId, (thread) => thread.ask(message))

    return {
      // All messages wait from the start, so that the account keeps its place. They are awaited in the order in which they begin: one that
      // waited too long fails the call only after those that a thread works on, which are not interrupted for it.
      ask: (accountId, messages) =>
        Effect.forEach(messages, (message) => Effect.forkScoped(ask(accountId, message), { startImmediately: true })).pipe(
          Effect.flatMap((fibers) => Effect.forEach(fibers, Fiber.join)),
          Effect.scoped,
          turns.admit(accountId)
        )
    }
  })
