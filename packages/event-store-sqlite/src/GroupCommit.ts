/**
 * One transaction for the writes of many callers. Writes that come in one turn of the event loop, or while a transaction runs, are
 * committed together and share one sync of the disk: the more writes wait, the less each costs.
 */
import { Effect, Exit, Scheduler, type Scope } from "effect"
import { Fault } from "./Fault.ts"
import { pauseAfter } from "./Patience.ts"

/** A longer transaction gains nothing and keeps its first caller waiting. */
const GROUP = 2_048
/** A bigger transaction gains nothing either: characters. */
const GROUP_SIZE = 8_000_000

interface Work {
  readonly size: number
  /** Inside the transaction. What it answers is told once the transaction is durable. */
  readonly run: () => void
  /** After the transaction: with the fault that undid it, if there was one. */
  readonly tell: (fault: Fault | undefined) => void
}

export interface GroupCommit {
  /**
   * Runs `run` inside the next transaction, and answers what it returned once the transaction is durable. `run` has to check before it
   * writes, because a failure that it returns undoes nothing. `broken` turns a fault of the whole transaction into a failure of this
   * write; `size` is roughly how much is written, in characters.
   */
  readonly submit: <A, E>(size: number, run: () => Exit.Exit<A, E>, broken: (fault: Fault) => E) => Effect.Effect<A, E>
}

/** `transact` runs one transaction or throws a {@link Fault}; `committed` is called after each, once its writers were answered. */
export const make = Effect.fnUntraced(function* (
  transact: (body: () => void) => void,
  committed: () => void
): Effect.fn.Return<GroupCommit, never, Scope.Scope> {
  const turn = (yield* Scheduler.Scheduler).makeDispatcher()
  const scope = yield* Effect.scope
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const groups = new Groups(
    transact,
    committed,
    (task) => turn.scheduleTask(task, 0),
    (task, pause) => void fork(Effect.forkIn(Effect.delay(Effect.sync(task), pause), scope))
  )
  yield* Effect.addFinalizer(() => Effect.sync(() => groups.close()))
  return {
    submit: <A, E>(size: number, run: () => Exit.Exit<A, E>, broken: (fault: Fault) => E) =>
      Effect.callback<A, E>((resume) => {
        let exit: Exit.Exit<A, E> | undefined
        groups.submit({
          size,
          run: () => {
            exit = run()
          },
          tell: (fault) => resume(fault === undefined && exit !== undefined ? exit : Exit.fail(broken(fault ?? closed)))
        })
      })
  }
})

/** The writes that wait, and the group of them whose transaction runs. */
class Groups {
  readonly #transact: (body: () => void) => void
  readonly #committed: () => void
  readonly #later: (task: () => void) => void
  readonly #after: (task: () => void, pause: number) => void
  #waiting: Array<Work> = []
  #group: Array<Work> = []
  #isBusy = false
  #isClosed = false

  constructor(
    transact: (body: () => void) => void,
    committed: () => void,
    later: (task: () => void) => void,
    after: (task: () => void, pause: number) => void
  ) {
    this.#transact = transact
    this.#committed = committed
    this.#later = later
    this.#after = after
  }

  submit(work: Work): void {
    if (this.#isClosed) return work.tell(closed)
    this.#waiting.push(work)
    if (!this.#isBusy) this.#schedule()
  }

  close(): void {
    this.#isClosed = true
    const told = [...this.#group, ...this.#waiting]
    this.#group = this.#waiting = []
    for (const work of told) work.tell(closed)
  }

  #schedule(): void {
    this.#isBusy = true
    this.#later(() => this.#flush())
  }

  #flush(): void {
    let count = 0
    let size = 0
    while (count < this.#waiting.length && count < GROUP && size < GROUP_SIZE) size += this.#waiting[count++]!.size
    this.#group = this.#waiting.splice(0, count)
    this.#commit(0)
  }

  #commit(attempt: number): void {
    if (this.#isClosed) return
    const fault = this.#tryCommit()
    const pause = fault?.kind === "locked" && !fault.inDoubt ? pauseAfter(attempt) : undefined
    if (pause !== undefined) return this.#after(() => this.#commit(attempt + 1), pause)
    const told = this.#group
    this.#group = []
    for (const work of told) work.tell(fault)
    if (fault === undefined) this.#committed()
    if (this.#waiting.length > 0) this.#schedule()
    else this.#isBusy = false
  }

  #tryCommit(): Fault | undefined {
    try {
      this.#transact(() => {
        for (const work of this.#group) work.run()
      })
      return undefined
    } catch (error) {
      return error instanceof Fault ? error : new Fault("other", String(error), { cause: error })
    }
  }
}

const closed = new Fault("closed", "The store was closed")
