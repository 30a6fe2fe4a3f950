/**
 * One transaction for what many callers ask: everything that was asked for in one turn of the event loop, or while transactions ran, goes
 * together, so they share one round trip and one sync of the disk. The more is waiting, the cheaper each becomes.
 */
import { Effect, Exit, Option, Scheduler, type Scope } from "effect"
import { Fault } from "./Fault.ts"

export interface GroupOptions<Request, Answer> {
  /** Sends a group as one transaction; answers each, in order. A {@link Fault} is told to all. */
  readonly send: (group: ReadonlyArray<Request>) => Effect.Effect<ReadonlyArray<Answer>, Fault>
  /** Transactions under way at once: 1 by default. */
  readonly lanes?: number
  /** Requests in a transaction. A longer one gains nothing and keeps its first caller waiting. */
  readonly count: number
  /** Roughly how much a request sends, in characters: nothing by default. */
  readonly size?: (request: Request) => number
  /** Requests of one key are never under way in two transactions, so they keep their order. */
  readonly key?: (request: Request) => string
  /** Whether a request may share a transaction with an earlier one of its key: it may by default. */
  readonly isRival?: (request: Request, earlier: Request) => boolean
}

/** A bigger transaction gains nothing either: characters. */
const SIZE = 8_000_000

interface Work<Request, Answer> {
  readonly request: Request
  readonly tell: (exit: Exit.Exit<Answer, Fault>) => void
}

/** Answers what `send` answers for one request. */
export type Submit<Request, Answer> = (request: Request) => Effect.Effect<Answer, Fault>

export const make = Effect.fnUntraced(function* <Request, Answer>({
  send,
  lanes = 1,
  count,
  size = () => 0,
  key,
  isRival = () => true
}: GroupOptions<Request, Answer>): Effect.fn.Return<Submit<Request, Answer>, never, Scope.Scope> {
  const turn = (yield* Scheduler.Scheduler).makeDispatcher()
  const scope = yield* Effect.scope
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const underWay = new Set<ReadonlyArray<Work<Request, Answer>>>()
  const busy = new Set<string>()
  let waiting: Array<Work<Request, Answer>> = []
  let isScheduled = false
  let isClosed = false

  const schedule = () => {
    if (isScheduled || waiting.length === 0 || underWay.size >= lanes) return
    isScheduled = true
    turn.scheduleTask(flush, 0)
  }

  const flush = () => {
    isScheduled = false
    const group = take()
    if (group.length === 0 || isClosed) return
    underWay.add(group)
    const keys = key === undefined ? [] : group.map(({ request }) => key(request))
    for (const one of keys) busy.add(one)
    const ended = (exits: ReadonlyArray<Exit.Exit<Answer, Fault>>) => {
      if (!underWay.delete(group)) return
      for (const one of keys) busy.delete(one)
      // Before those who are answered ask again, so that they find the next transaction still open
      schedule()
      for (const [i, work] of group.entries()) work.tell(exits[i] ?? Exit.fail(new Fault("other", "No answer")))
    }
    const all = Effect.map(exitsOf(group.map(({ request }) => request)), ended)
    fork(Effect.forkIn(all, scope))
    schedule()
  }

  /** The next group, out of those that wait. */
  const take = (): ReadonlyArray<Work<Request, Answer>> => {
    const group: Array<Work<Request, Answer>> = []
    const rest: Array<Work<Request, Answer>> = []
    const first = new Map<string, Request>()
    const heldBack = new Set<string>()
    let taken = 0
    for (const work of waiting) {
      const { request } = work
      const name = key?.(request)
      const earlier = name === undefined ? undefined : first.get(name)
      const mayGo = name === undefined || (!busy.has(name) && !heldBack.has(name) && (earlier === undefined || isRival(request, earlier)))
      if (mayGo && group.length < count && taken < SIZE) {
        group.push(work)
        taken += size(request)
        if (name !== undefined && earlier === undefined) first.set(name, request)
      } else {
        rest.push(work)
        if (name !== undefined) heldBack.add(name)
      }
    }
    waiting = rest
    return group
  }

  const exitsOf = (group: ReadonlyArray<Request>): Effect.Effect<ReadonlyArray<Exit.Exit<Answer, Fault>>> =>
    Effect.flatMap(Effect.exit(send(group)), (exit): Effect.Effect<ReadonlyArray<Exit.Exit<Answer, Fault>>> => {
      if (Exit.isSuccess(exit)) return Effect.succeed(exit.value.map(Exit.succeed))
      // What one of them holds was refused: the others are not to suffer from it
      if (group.length > 1 && Option.exists(Exit.findErrorOption(exit), ({ kind }) => kind === "data"))
        return Effect.map(
          Effect.forEach(group, (request) => exitsOf([request])),
          (exits) => exits.flat()
        )
      return Effect.succeed(group.map(() => Exit.failCause(exit.cause)))
    })

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosed = true
      const told = waiting
      waiting = []
      for (const work of told) work.tell(Exit.fail(new Fault("closed", "The store was closed")))
      for (const group of [...underWay]) {
        underWay.delete(group)
        for (const work of group) work.tell(Exit.fail(new Fault("closed", "The store was closed", { inDoubt: true })))
      }
    })
  )

  return (request) =>
    Effect.callback((resume) => {
      if (isClosed) return resume(Effect.fail(new Fault("closed", "The store was closed")))
      waiting.push({ request, tell: resume })
      schedule()
    })
})
