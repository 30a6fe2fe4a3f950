/**
 * Resources shared by all accounts, such as worker threads. Each use waits for its turn ({@link FairQueue}), by the time that uses take.
 * The number of waiting calls of an account and of all accounts is limited, as is the waiting time.
 */
import { UpstreamUnavailable } from "@millrace/core"
import { Clock, Deferred, type Duration, Effect, Exit } from "effect"
import { FairQueue } from "./FairQueue.ts"

export interface QueueLimits {
  /** The resource's name in errors. */
  readonly upstream: string
  /** Calls of one account that wait or run; one more fails. 32 by default. */
  readonly accountLimit?: number
  /** Calls of all accounts that wait or run; one more fails. 256 by default. */
  readonly queueLimit?: number
  /** The longest wait for a turn. */
  readonly waitLimit: Duration.Input
}

/** Its own failures are isolated, as they say nothing of the resources. `restore` runs after a failed use, in the same turn. */
export const make = <Resource extends object | number>(
  resources: ReadonlyArray<Resource>,
  limits: QueueLimits,
  restore: (resource: Resource) => Effect.Effect<void, unknown> = () => Effect.void
) =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const turns = new Turns(resources, yield* Clock.Clock)
    const waitedTooLong = refusal(limits, "it waited too long for its turn")

    const end = (turn: Turn<Resource>, exit: Exit.Exit<unknown, unknown>) => {
      const ended = Effect.sync(() => turns.end(turn))
      return turn.resource === undefined || Exit.isSuccess(exit)
        ? ended
        : Effect.ignore(restore(turn.resource)).pipe(Effect.ensuring(ended), Effect.forkIn(scope), Effect.asVoid)
    }

    return {
      /** Runs a call of an account, with one use or more. Fails at once if too many calls of the account or of all accounts run. */
      admit: admission(limits),
      /** Waits for a turn and uses one of the resources. Fails if it waits too long. */
      use: <A, E, R>(accountId: string, work: (resource: Resource) => Effect.Effect<A, E, R>) =>
        Effect.acquireUseRelease(
          Effect.sync(() => turns.request(accountId)),
          (turn) =>
            Deferred.await(turn.begun).pipe(
              Effect.timeoutOrElse({ duration: limits.waitLimit, orElse: () => Effect.fail(waitedTooLong) }),
              Effect.flatMap(work)
            ),
          end
        )
    }
  })

const refusal = ({ upstream }: { readonly upstream: string }, reason: string) =>
  new UpstreamUnavailable({ upstream, reason, isolated: true })

/** Limits the concurrent calls of an account and of all accounts, and refuses others. */
const admission = (options: QueueLimits) => {
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

/** One use of a resource. */
interface Turn<Resource> {
  readonly accountId: string
  readonly begun: Deferred.Deferred<Resource>
  /** Undefined while it waits. */
  resource: Resource | undefined
  /** Monotonic nanoseconds. */
  begunAt: bigint
}

/** Gives each idle resource to the next turn. */
class Turns<Resource> {
  readonly #idle: Array<Resource>
  readonly #clock: Clock.Clock
  readonly #queue = new FairQueue<Turn<Resource>>()

  constructor(resources: ReadonlyArray<Resource>, clock: Clock.Clock) {
    this.#idle = [...resources]
    this.#clock = clock
  }

  request(accountId: string): Turn<Resource> {
    const turn: Turn<Resource> = { accountId, begun: Deferred.makeUnsafe(), resource: undefined, begunAt: 0n }
    this.#queue.add(accountId, turn)
    this.#begin()
    return turn
  }

  /** Ends a turn that has begun or still waits. */
  end(turn: Turn<Resource>): void {
    if (turn.resource === undefined) return this.#queue.remove(turn.accountId, turn)
    this.#queue.release(turn.accountId, Number(this.#clock.monotonicTimeNanosUnsafe() - turn.begunAt))
    this.#idle.push(turn.resource)
    this.#begin()
  }

  #begin(): void {
    while (this.#idle.length > 0) {
      const turn = this.#queue.take()
      if (turn === undefined) return
      turn.resource = this.#idle.pop()
      turn.begunAt = this.#clock.monotonicTimeNanosUnsafe()
      if (turn.resource !== undefined) Deferred.doneUnsafe(turn.begun, Effect.succeed(turn.resource))
    }
  }
}
