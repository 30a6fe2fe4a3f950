/**
 * Shares transactions among the requests of many callers. Requests that arrive in one turn of the event loop, or while transactions run,
 * share one round trip and one sync. So the cost of each request falls under load.
 */
import { Effect, Exit, FiberSet, Option, Scheduler } from "effect"

export interface Options<Request, Answer, E> {
  /** Sends a group as one transaction, and returns the results in order. If it fails, each request fails. */
  readonly send: (group: ReadonlyArray<Request>) => Effect.Effect<ReadonlyArray<Answer>, E>
  /** The failure of a request when the store is closed. `isSent`: whether its transaction is under way. */
  readonly closed: (isSent: boolean) => E
  /** Called after each transaction, when its callers have their answers. */
  readonly onEnd?: () => void
  /** Whether one of its requests made the group fail. Then each request is sent by itself. Never by default. */
  readonly isOfOne?: (failure: E) => boolean
  /**
   * Transactions under way at once: 1 by default. Many waiting requests are spread over the free lanes. A lane opens beside others only for
   * as many requests as the largest transaction under way has, because many small transactions cost more than the wait for one.
   */
  readonly lanes?: number
  /**
   * Whether a group is sent only after a turn of the event loop without a further request: false by default. A turn of an idle process takes
   * microseconds. A busy process receives in it what has arrived meanwhile, and those requests share the transaction.
   */
  readonly gathers?: boolean
  /** The most requests in a transaction. A longer one gains nothing and delays its first caller. */
  readonly count: number
  /** Makes a function that decides for the requests of one transaction, in order, whether each may join. With `key`. */
  readonly joining?: () => (request: Request) => boolean
  /** The approximate size of a request, in characters: 0 by default. */
  readonly size?: (request: Request) => number
  /** The key of a request. Requests with one key are never in two open transactions, so they keep their order. */
  readonly key?: (request: Request) => string
  /** Whether a request may share a transaction with an earlier one of its key: always by default. */
  readonly isRival?: (request: Request, earlier: Request) => boolean
}

/** Fewer requests for each free lane than this share one transaction. */
const SHARE = 16

/** The most turns of the event loop that a group gathers requests. */
const TURNS = 16

/** The most characters in a transaction. A bigger one gains nothing. */
const SIZE = 8_000_000

interface Work<Request, Answer, E> {
  readonly request: Request
  readonly tell: (exit: Exit.Exit<Answer, E>) => void
}

/** Makes a function that sends one request and returns its result. */
export const make = <Request, Answer, E>(options: Options<Request, Answer, E>) =>
  Effect.map(makeSubmit(options), (submit) => (request: Request) => Effect.callback<Answer, E>((resume) => submit(request, resume)))

/** As {@link make}, for a caller that builds its own effect. */
export const makeSubmit = Effect.fnUntraced(function* <Request, Answer, E>(options: Options<Request, Answer, E>) {
  const turn = (yield* Scheduler.Scheduler).makeDispatcher()
  // Registered first, so that it runs after the open transactions were interrupted
  yield* Effect.addFinalizer(() => Effect.sync(() => groups.close()))
  const run = yield* FiberSet.makeRuntime<never>()
  const groups = new Groups(options, run, (task) => turn.scheduleTask(task, 0))
  return (request: Request, tell: (exit: Exit.Exit<Answer, E>) => void) => groups.submit({ request, tell })
})

/** The waiting requests and the groups under way. */
class Groups<Request, Answer, E> {
  readonly #options: Options<Request, Answer, E>
  readonly #run: (effect: Effect.Effect<void>) => void
  readonly #later: (task: () => void) => void
  readonly #underWay = new Set<ReadonlyArray<Work<Request, Answer, E>>>()
  /** Keys of the requests that are under way. */
  readonly #busy = new Set<string>()
  #waiting: Array<Work<Request, Answer, E>> = []
  #isScheduled = false
  #isClosed = false

  constructor(options: Options<Request, Answer, E>, run: (effect: Effect.Effect<void>) => void, later: (task: () => void) => void) {
    this.#options = options
    this.#run = run
    this.#later = later
  }

  submit(work: Work<Request, Answer, E>): void {
    if (this.#isClosed) return this.#refuse([work], false)
    this.#waiting.push(work)
    this.#schedule()
  }

  close(): void {
    this.#isClosed = true
    this.#refuse(this.#waiting.splice(0), false)
    for (const group of [...this.#underWay]) {
      this.#underWay.delete(group)
      this.#refuse(group, true)
    }
  }

  #refuse(works: ReadonlyArray<Work<Request, Answer, E>>, isSent: boolean): void {
    for (const work of works) work.tell(Exit.fail(this.#options.closed(isSent)))
  }

  get #freeLanes(): number {
    return (this.#options.lanes ?? 1) - this.#underWay.size
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0 || this.#freeLanes <= 0) return
    for (const group of this.#underWay) if (group.length > this.#waiting.length) return
    this.#isScheduled = true
    this.#later(this.#options.gathers === true ? () => this.#gather(0, 0) : () => this.#flush())
  }

  /** Sends a group, unless further requests arrived since the last look, which counted `seen`. */
  #gather(seen: number, turns: number): void {
    const { length } = this.#waiting
    if (length === seen || length >= this.#options.count || turns === TURNS) this.#flush()
    else this.#later(() => this.#gather(length, turns + 1))
  }

  #flush(): void {
    this.#isScheduled = false
    const group = this.#take()
    if (group.length === 0 || this.#isClosed) return
    this.#underWay.add(group)
    const { key, onEnd } = this.#options
    const keys = key === undefined ? [] : group.map(({ request }) => key(request))
    for (const one of keys) this.#busy.add(one)
    const ended = (exits: ReadonlyArray<Exit.Exit<Answer, E>>) => {
      if (!this.#underWay.delete(group)) return
      for (const one of keys) this.#busy.delete(one)
      // Scheduled before the callers are answered, so that their next requests still join the next group
      this.#schedule()
      for (const [i, work] of group.entries()) work.tell(exits[i] ?? Exit.die(new Error("No answer")))
      onEnd?.()
    }
    this.#run(Effect.map(this.#exitsOf(group.map(({ request }) => request)), ended))
    this.#schedule()
  }

  /** Takes the next group out of the waiting requests. */
  #take(): ReadonlyArray<Work<Request, Answer, E>> {
    const { key, size = () => 0 } = this.#options
    const share = Math.ceil(this.#waiting.length / this.#freeLanes)
    const count = share < SHARE ? this.#options.count : Math.min(this.#options.count, share)
    const mayGo = key === undefined ? () => true : this.#inOrder(key)
    const group: Array<Work<Request, Answer, E>> = []
    const rest: Array<Work<Request, Answer, E>> = []
    let seen = 0
    let taken = 0
    for (const work of this.#waiting) {
      if (group.length === count || taken >= SIZE) break
      seen++
      if (mayGo(work.request)) {
        group.push(work)
        taken += size(work.request)
      } else rest.push(work)
    }
    this.#waiting = rest.concat(this.#waiting.slice(seen))
    return group
  }

  /** Returns a function that decides for each waiting request, in order, whether it may be sent now. */
  #inOrder(key: (request: Request) => string): (request: Request) => boolean {
    const { isRival = () => true, joining = () => () => true } = this.#options
    const joins = joining()
    const first = new Map<string, Request>()
    const heldBack = new Set<string>()
    return (request) => {
      const name = key(request)
      const earlier = first.get(name)
      const mayGo = !this.#busy.has(name) && !heldBack.has(name) && (earlier === undefined || isRival(request, earlier)) && joins(request)
      if (!mayGo) heldBack.add(name)
      else if (earlier === undefined) first.set(name, request)
      return mayGo
    }
  }

  #exitsOf(group: ReadonlyArray<Request>): Effect.Effect<ReadonlyArray<Exit.Exit<Answer, E>>> {
    const { isOfOne = () => false, send } = this.#options
    // Suspended: a store that throws must not stop the lane
    return Effect.flatMap(Effect.exit(Effect.suspend(() => send(group))), (exit): Effect.Effect<ReadonlyArray<Exit.Exit<Answer, E>>> => {
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
