/**
 * Worker threads shared by all accounts. Messages wait in fair turns, measured by the time that the threads spend on them. The number of
 * calls that wait is bounded for each account and in all, and so is the time for which a message waits.
 */
import { UpstreamUnavailable } from "@millrace/core"
import { Clock, Deferred, type Duration, Effect, Exit, Fiber, type Scope } from "effect"
import { FairQueue } from "./FairQueue.ts"
import * as WorkerThread from "./WorkerThread.ts"

export interface Options<Reply> extends WorkerThread.Options<Reply> {
  /** Each is started when it is first needed, and holds an engine of its own in memory. 1 by default. */
  readonly threads?: number
  /** Calls of one account that wait or run; one more fails. 32 by default. */
  readonly accountLimit?: number
  /** Calls of all accounts that wait or run; one more fails. 256 by default. */
  readonly queueLimit?: number
  /** For how long a message may wait for its turn. */
  readonly waitLimit: Duration.Input
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
    const scope = yield* Effect.scope
    const threads = Array.from({ length: options.threads ?? 1 }, () => WorkerThread.make<Message, Reply>(options))
    const turns = new Turns(yield* Effect.all(threads), yield* Clock.Clock)
    const admitted = admission(options)
    const waitedTooLong = refusal(options, "a message waited too long for its turn")

    // A thread that was ended is started again at the expense of the account whose message ended it
    const end = (turn: Turn<WorkerThread.WorkerThread<Message, Reply>>, exit: Exit.Exit<unknown, unknown>) => {
      const ended = Effect.sync(() => turns.end(turn))
      return turn.thread === undefined || Exit.isSuccess(exit)
        ? ended
        : Effect.ignore(turn.thread.start).pipe(Effect.ensuring(ended), Effect.forkIn(scope), Effect.asVoid)
    }

    const ask = (accountId: string, message: Message) =>
      Effect.suspend(() => {
        const turn = turns.request(accountId)
        return Deferred.await(turn.begun).pipe(
          Effect.timeoutOrElse({ duration: options.waitLimit, orElse: () => Effect.fail(waitedTooLong) }),
          Effect.flatMap((thread) => thread.ask(message)),
          Effect.onExit((exit) => end(turn, exit))
        )
      })

    return {
      // All messages wait from the start, so that the account keeps its place. They are awaited in the order in which they begin: one that
      // waited too long fails the call only after those that a thread works on, which are not interrupted for it.
      ask: (accountId, messages) =>
        Effect.forEach(messages, (message) => Effect.forkScoped(ask(accountId, message), { startImmediately: true })).pipe(
          Effect.flatMap((fibers) => Effect.forEach(fibers, Fiber.join)),
          Effect.scoped,
          admitted(accountId)
        )
    }
  })

const refusal = ({ upstream }: { readonly upstream: string }, reason: string) =>
  new UpstreamUnavailable({ upstream, reason, isolated: true })

/** Lets so many calls of one account and of all run at once, and refuses others. */
const admission = (options: Pick<Options<unknown>, "upstream" | "accountLimit" | "queueLimit">) => {
  const { accountLimit = 32, queueLimit = 256 } = options
  const calls = new Map<string, number>()
  let total = 0

  const enter = (accountId: string) =>
    Effect.suspend(() => {
      const own = calls.get(accountId) ?? 0
      if (own >= accountLimit) return Effect.fail(refusal(options, `${own} calls of the account wait already`))
      if (total >= queueLimit) return Effect.fail(refusal(options, `${total} calls wait already`))
      calls.set(accountId, own + 1)
      total += 1
      return Effect.void
    })

  const leave = (accountId: string) =>
    Effect.sync(() => {
      const others = (calls.get(accountId) ?? 0) - 1
      if (others > 0) calls.set(accountId, others)
      else calls.delete(accountId)
      total -= 1
    })

  return (accountId: string) =>
    <A, E, R>(call: Effect.Effect<A, E, R>): Effect.Effect<A, E | UpstreamUnavailable, R> =>
      Effect.acquireUseRelease(
        enter(accountId),
        () => call,
        () => leave(accountId)
      )
}

/** A message's turn at a thread. */
interface Turn<Thread> {
  readonly accountId: string
  readonly begun: Deferred.Deferred<Thread>
  /** Undefined while it waits. */
  thread: Thread | undefined
  /** Nanoseconds. */
  begunAt: bigint
}

/** Gives each thread that rests to the turn that is next. */
class Turns<Thread> {
  readonly #idle: Array<Thread>
  readonly #clock: Clock.Clock
  readonly #queue = new FairQueue<Turn<Thread>>()

  constructor(threads: ReadonlyArray<Thread>, clock: Clock.Clock) {
    this.#idle = [...threads]
    this.#clock = clock
  }

  request(accountId: string): Turn<Thread> {
    const turn: Turn<Thread> = { accountId, begun: Deferred.makeUnsafe(), thread: undefined, begunAt: 0n }
    this.#queue.add(accountId, turn)
    this.#begin()
    return turn
  }

  /** Of one that has begun or still waits. */
  end(turn: Turn<Thread>): void {
    if (turn.thread === undefined) return this.#queue.remove(turn.accountId, turn)
    this.#queue.release(turn.accountId, Number(this.#clock.monotonicTimeNanosUnsafe() - turn.begunAt))
    this.#idle.push(turn.thread)
    this.#begin()
  }

  #begin(): void {
    while (this.#idle.length > 0) {
      const turn = this.#queue.take()
      if (turn === undefined) return
      turn.thread = this.#idle.pop()
      turn.begunAt = this.#clock.monotonicTimeNanosUnsafe()
      if (turn.thread !== undefined) Deferred.doneUnsafe(turn.begun, Effect.succeed(turn.thread))
    }
  }
}
