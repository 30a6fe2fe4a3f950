/**
 * One transaction for the requests of many callers. Requests that come in one turn of the event loop, or while transactions run, share
 * one round trip and one sync of the disk: the more requests wait, the less each costs.
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

export const make = Effect.fnUntraced(function* <Request, Answer>(
  options: GroupOptions<Request, Answer>
): Effect.fn.Return<Submit<Request, Answer>, never, Scope.Scope> {
  const turn = (yield* Scheduler.Scheduler).makeDispatcher()
  const scope = yield* Effect.scope
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const groups = new Groups(
    options,
    (task) => turn.scheduleTask(task, 0),
    (effect) => fork(Effect.forkIn(effect, scope))
  )
  yield* Effect.addFinalizer(() => Effect.sync(() => groups.close()))
  return (request) => Effect.callback((resume) => groups.submit({ request, tell: resume }))
})

/** The requests that wait, and the groups of them that are under way. */
class Groups<Request, Answer> {
  readonly #options: GroupOptions<Request, Answer>
  readonly #later: (task: () => void) => void
  readonly #fork: (effect: Effect.Effect<void>) => void
  readonly #underWay = new Set<ReadonlyArray<Work<Request, Answer>>>()
  /** Keys of the requests that are under way. */
  readonly #busy = new Set<string>()
  #waiting: Array<Work<Request, Answer>> = []
  #isScheduled = false
  #isClosed = false

  constructor(options: GroupOptions<Request, Answer>, later: (task: () => void) => void, fork: (effect: Effect.Effect<void>) => void) {
    this.#options = options
    this.#later = later
    this.#fork = fork
  }

  submit(work: Work<Request, Answer>): void {
    if (this.#isClosed) return work.tell(Exit.fail(new Fault("The store was closed")))
    this.#waiting.push(work)
    this.#schedule()
  }

  close(): void {
    this.#isClosed = true
    const told = this.#waiting
    this.#waiting = []
    for (const work of told) work.tell(Exit.fail(new Fault("The store was closed")))
    for (const group of [...this.#underWay]) {
      this.#underWay.delete(group)
      for (const work of group) work.tell(Exit.fail(new Fault("The store was closed", { inDoubt: true })))
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
      for (const [i, work] of group.entries()) work.tell(exits[i] ?? Exit.fail(new Fault("No answer")))
    }
    this.#fork(Effect.map(this.#exitsOf(group.map(({ request }) => request)), ended))
    this.#schedule()
  }

  /** The next group, out of those that wait. */
  #take(): ReadonlyArray<Work<Request, Answer>> {
    const { count, isRival = () => true, key, size = () => 0 } = this.#options
    const group: Array<Work<Request, Answer>> = []
    const rest: Array<Work<Request, Answer>> = []
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
    return Effect.flatMap(Effect.exit(this.#options.send(group)), (exit): Effect.Effect<ReadonlyArray<Exit.Exit<Answer, Fault>>> => {
      if (Exit.isSuccess(exit)) return Effect.succeed(exit.value.map(Exit.succeed))
      // The database refused the data of one request: the others are sent again without it
      if (group.length > 1 && Option.exists(Exit.findErrorOption(exit), ({ isRefusedData }) => isRefusedData))
        return Effect.map(
          Effect.forEach(group, (request) => this.#exitsOf([request])),
          (exits) => exits.flat()
        )
      return Effect.succeed(group.map(() => Exit.failCause(exit.cause)))
    })
  }
}
