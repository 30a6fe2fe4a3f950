/**
 * One transaction for what many callers write: everything that was asked for in one turn of the event loop, or while a transaction
 * ran, is committed together, so they share one sync of the disk. The more is waiting, the cheaper each becomes.
 */
import { Effect, Exit, Scheduler, type Scope } from "effect"
import { Fault } from "./Fault.ts"
import { pauseAfter } from "./Patience.ts"

/** A longer transaction gains nothing and keeps its first caller waiting. */
const GROUP = 2_048
/** Neither does a bigger one: characters. */
const GROUP_SIZE = 8_000_000

interface Work {
  readonly size: number
  /** Inside the transaction. What it answers is told once the transaction is durable. */
  readonly run: () => void
  /** After it: with the fault that undid everything, if there was one. */
  readonly tell: (fault: Fault | undefined) => void
}

export interface GroupCommit {
  /**
   * Runs `run` inside the next transaction and answers what it returned once that is durable. It has to check before it writes:
   * a failure it returns undoes nothing. `broken` says what a fault of the whole transaction means to this caller; `size` is
   * roughly how much is written, in characters.
   */
  readonly submit: <A, E>(size: number, run: () => Exit.Exit<A, E>, broken: (fault: Fault) => E) => Effect.Effect<A, E>
}

/** `transact` runs one transaction or throws a {@link Fault}; `committed` hears of each that took place, after those who wrote it. */
export const make = Effect.fnUntraced(function* (
  transact: (body: () => void) => void,
  committed: () => void
): Effect.fn.Return<GroupCommit, never, Scope.Scope> {
  const turn = (yield* Scheduler.Scheduler).makeDispatcher()
  const scope = yield* Effect.scope
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  let waiting: Array<Work> = []
  let group: Array<Work> = []
  let isBusy = false
  let isClosed = false

  const submit: GroupCommit["submit"] = <A, E>(size: number, run: () => Exit.Exit<A, E>, broken: (fault: Fault) => E) =>
    Effect.callback<A, E>((resume) => {
      let exit: Exit.Exit<A, E> | undefined
      const work: Work = {
        size,
        run: () => {
          exit = run()
        },
        tell: (fault) => resume(fault === undefined && exit !== undefined ? exit : Exit.fail(broken(fault ?? closed)))
      }
      if (isClosed) return work.tell(closed)
      waiting.push(work)
      if (!isBusy) schedule()
    })

  const schedule = () => {
    isBusy = true
    turn.scheduleTask(flush, 0)
  }

  const flush = () => {
    let count = 0
    let size = 0
    while (count < waiting.length && count < GROUP && size < GROUP_SIZE) size += waiting[count++]!.size
    group = waiting.splice(0, count)
    commit(0)
  }

  const commit = (attempt: number) => {
    if (isClosed) return
    const fault = tryCommit()
    const pause = fault?.kind === "locked" && !fault.inDoubt ? pauseAfter(attempt) : undefined
    if (pause !== undefined) {
      fork(
        Effect.forkIn(
          Effect.andThen(
            Effect.sleep(pause),
            Effect.sync(() => commit(attempt + 1))
          ),
          scope
        )
      )
      return
    }
    const told = group
    group = []
    for (const work of told) work.tell(fault)
    if (fault === undefined) committed()
    if (waiting.length > 0) schedule()
    else isBusy = false
  }

  const tryCommit = (): Fault | undefined => {
    try {
      transact(() => {
        for (const work of group) work.run()
      })
      return undefined
    } catch (error) {
      return error instanceof Fault ? error : new Fault("other", String(error), { cause: error })
    }
  }

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosed = true
      const told = [...group, ...waiting]
      group = waiting = []
      for (const work of told) work.tell(closed)
    })
  )
  return { submit }
})

const closed = new Fault("closed", "The store was closed")
