/** Shares transactions among the writes of many callers. A transaction is retried while another process has the file locked. */
import { GroupCommit } from "@millrace/event-sourcing"
import { Cause, Effect, Exit } from "effect"
import { Fault } from "./Fault.ts"
import { patiently } from "./Patience.ts"

/** The most writes in a transaction. */
const COUNT = 2_048

/** A part of a transaction. One object, for the many appends of a busy log. */
export interface Write {
  /** Its approximate size, in characters. */
  readonly size: number
  /** Called inside the transaction. It must check before it writes, because it cannot be rolled back by itself. */
  readonly run: () => void
  /** Called once the transaction is durable, or has failed with a fault of the whole. */
  readonly ended: (transaction: Exit.Exit<unknown, Fault>) => void
}

export interface Transactions {
  /** Makes a write part of the next transaction. */
  readonly submit: (write: Write) => void
  /**
   * Runs `run` inside the next transaction, and returns its result once the transaction is durable. A failure that it returns rolls nothing
   * back. `broken` converts a fault of the whole transaction to a failure of this write.
   */
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
            for (const write of writes) write.run()
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
  const submit = (write: Write) => commit(write, (exit) => write.ended(exit))
  const transactions: Transactions = {
    submit,
    run: <A, E>(size: number, run: () => Exit.Exit<A, E>, broken: (fault: Fault) => E) =>
      Effect.callback<A, E>((resume) => {
        let result: Exit.Exit<A, E> = NOT_RUN
        submit({
          size,
          run: () => {
            result = run()
          },
          ended: (exit) => resume(Exit.isSuccess(exit) ? result : Exit.failCause(Cause.map(exit.cause, broken)))
        })
      })
  }
  return transactions
})

const NOT_RUN = Exit.die("not run")
