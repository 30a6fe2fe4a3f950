/** Shares transactions among the writes of many callers. A transaction is retried while another process has the file locked. */
import { GroupCommit } from "@millrace/event-sourcing"
import { Cause, Effect, Exit } from "effect"
import { Fault } from "./Fault.ts"
import { patiently } from "./Patience.ts"

/** The most writes in a transaction. */
const COUNT = 2_048

const NOT_RUN = Exit.die("not run")

interface Write {
  /** The approximate size of the write, in characters. */
  readonly size: number
  readonly run: () => void
}

export interface Transactions {
  /**
   * Runs `run` inside the next transaction, and tells its result once the transaction is durable. `run` must check before it writes,
   * because a failure that it returns rolls nothing back. `broken` converts a fault of the whole transaction to a failure of this write.
   */
  readonly submit: <A, E>(
    size: number,
    run: () => Exit.Exit<A, E>,
    broken: (fault: Fault) => E,
    told: (exit: Exit.Exit<A, E>) => void
  ) => void
  /** As `submit`, for a fiber. */
  readonly run: <A, E>(size: number, run: () => Exit.Exit<A, E>, broken: (fault: Fault) => E) => Effect.Effect<A, E>
}

/** `transact` runs one transaction or throws a {@link Fault}; `onEnd` is called after each. */
export const make = Effect.fnUntraced(function* (filename: string, transact: (body: () => void) => void, onEnd = () => {}) {
  const commit = yield* GroupCommit.makeSubmit({
    send: (writes: ReadonlyArray<Write>) =>
      patiently(
        filename,
        () => {
          transact(() => {
            for (const { run } of writes) run()
          })
          return writes
        },
        (fault) => fault
      ),
    // A transaction runs synchronously, so it is never interrupted
    closed: () => new Fault("The store was closed"),
    onEnd,
    count: COUNT,
    size: ({ size }) => size
  })
  const submit: Transactions["submit"] = <A, E>(
    size: number,
    run: () => Exit.Exit<A, E>,
    broken: (fault: Fault) => E,
    told: (exit: Exit.Exit<A, E>) => void
  ) => {
    let exit: Exit.Exit<A, E> = NOT_RUN
    const write = {
      size,
      run: () => {
        exit = run()
      }
    }
    commit(write, (committed) => told(Exit.isSuccess(committed) ? exit : Exit.failCause(Cause.map(committed.cause, broken))))
  }
  const transactions: Transactions = {
    submit,
    run: (size, run, broken) => Effect.callback((resume) => submit(size, run, broken, resume))
  }
  return transactions
})
