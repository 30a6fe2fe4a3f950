/**
 * One transaction for the requests of many callers. Requests that come in one turn of the event loop, or while transactions run, share
 * one round trip and one sync of the disk: the more requests wait, the less each costs.
 */
import { Effect, Exit, Option, Scheduler, type Scope } from "effect"

export interface Options<Request, Answer, Fault> {
  /** Sends a group as one transaction; answers each, in order. A fault is told to all. */
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
  /** Whether a fault is that of one request. The others of its group are then sent again without it. */
  readonly isOfOne?: (fault: Fault) => boolean
  /** The fault of a request that the store was closed before, or while, it was sent; or that was not answered with its group. */
  readonly broken: (why: "closed" | "closedMeanwhile" | "unanswered") => Fault
}

/** A bigger transaction gains nothing either: characters. */
const SIZE = 8_000_000

interface Work<Request, Answer, Fault> {
  readonly request: Request
  readonly tell: (exit: Exit.Exit<Answer, Fault>) => void
}

/** Answers what `send` answers for one request. */
export type Submit<Request, Answer, Fault> = (request: Request) => Effect.Effect<Answer, Fault>

export const make = Effect.fnUntraced(function* <Request, Answer, Fault>(
  options: Options<Request, Answer, Fault>
): Effect.fn.Return<Submit<Request, Answer, Fault>, never, Scope.Scope> {
  const turn = (yield* Scheduler.Scheduler).makeDispatcher()
  const scope = yield* Effect.scope
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const groups = new Groups(
    options,
    (task) => turn.scheduleTask(task, 0),
    (effect) => fork(Effect.forkIn(effect, scope, { startImmediately: true }))
  )
  yield* Effect.addFinalizer(() => Effect.sync(() => groups.close()))
  return (request) => Effect.callback((resume) => groups.submit({ request, tell: resume }))
})

/** The requests that wait, and the groups of them that are under way. */
class Groups<Request, Answer, Fault> {
  readonly #options: Options<Request, Answer, Fault>
  readonly #later: (task: () => void) => void
  readonly #fork: (effect: Effect.Effect<void>) => void
  readonly #underWay = new Set<ReadonlyArray<Work<Request, Answer, Fault>>>()
  /** Keys of the requests that are under way. */
  readonly #busy = new Set<string>()
  #waiting: Array<Work<Request, Answer, Fault>> = []
  #isScheduled = false
  #isClosed = false

  constructor(options: Options<Request, Answer, Fault>, later: (task: () => void) => void, fork: (effect: Effect.Effect<void>) => void) {
    this.#options = options
    this.#later = later
    this.#fork = fork
  }

  submit(work: Work<Request, Answer, Fault>): void {
    if (this.#isClosed) return work.tell(Exit.fail(this.#options.broken("closed")))
    this.#waiting.push(work)
    this.#schedule()
  }

  close(): void {
    this.#isClosed = true
    const told = this.#waiting
    this.#waiting = []
    for (const work of told) work.tell(Exit.fail(this.#options.broken("closed")))
    for (const group of [...this.#underWay]) {
      this.#underWay.delete(group)
      for (const work of group) work.tell(Exit.fail(this.#options.broken("closedMeanwhile")))
    }
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0 || this.#underWay.size >= (this.#options.lanes ?? 1)) return
    this.#isScheduled = true
    this.#later(() => this.#flush())
  }

  #flush(): void {
    this.#isScheduled = false
    const group = this.#take()
    if (group.length === 0 || this.#isClosed) return
    this.#underWay.add(group)
    const { key } = this.#options
    const keys = key === undefined ? [] : group.map(({ request }) => key(request))
    for (const one of keys) this.#busy.add(one)
    const ended = (exits: ReadonlyArray<Exit.Exit<Answer, Fault>>) => {
      if (!this.#underWay.delete(group)) return
      for (const one of keys) this.#busy.delete(one)
      // Before the callers are answered and ask again, so that they find the next transaction still open
      this.#schedule()
      for (const [i, work] of group.entries()) work.tell(exits[i] ?? Exit.fail(this.#options.broken("unanswered")))
    }
    this.#fork(Effect.map(this.#exitsOf(group.map(({ request }) => request)), ended))
    this.#schedule()
  }

  /** The next group, out of those that wait. */
  #take(): ReadonlyArray<Work<Request, Answer, Fault>> {
    const { count, isRival = () => true, key, size = () => 0 } = this.#options
    const group: Array<Work<Request, Answer, Fault>> = []
    const rest: Array<Work<Request, Answer, Fault>> = []
    const first = new Map<string, Request>()
    const heldBack = new Set<string>()
    let taken = 0
    for (const work of this.#waiting) {
      const { request } = work
      const name = key?.(request)
      const earlier = name === undefined ? undefined : first.get(name)
      const mayGo =
        name === undefined || (!this.#busy.has(name) && !heldBack.has(name) && (earlier === undefined || isRival(request, earlier)))
      if (mayGo && group.length < count && taken < SIZE) {
        group.push(work)
        taken += size(request)
        if (name !== undefined && earlier === undefined) first.set(name, request)
      } else {
        rest.push(work)
        if (name !== undefined) heldBack.add(name)
      }
    }
    this.#waiting = rest
    return group
  }

  #exitsOf(group: ReadonlyArray<Request>): Effect.Effect<ReadonlyArray<Exit.Exit<Answer, Fault>>> {
    const { isOfOne = () => false } = this.#options
    return Effect.flatMap(Effect.exit(this.#options.send(group)), (exit): Effect.Effect<ReadonlyArray<Exit.Exit<Answer, Fault>>> => {
      if (Exit.isSuccess(exit)) return Effect.succeed(exit.value.map(Exit.succeed))
      if (group.length > 1 && Option.exists(Exit.findErrorOption(exit), isOfOne))
        return Effect.map(
          Effect.forEach(group, (request) => this.#exitsOf([request])),
          (exits) => exits.flat()
        )
      return Effect.succeed(group.map(() => Exit.failCause(exit.cause)))
    })
  }
}
