/** One transaction, and one sync of the disk, for the writes of many callers. */
import { GroupCommit as Groups } from "@millrace/event-sourcing"
import { Effect, Exit, type Scope } from "effect"
import { Fault } from "./Fault.ts"
import { patiently } from "./Patience.ts"

/** A longer transaction gains nothing and keeps its first caller waiting. */
const COUNT = 2_048

interface Work {
  readonly size: number
  readonly run: () => void
}

export interface GroupCommit {
  /**
   * Runs `run` inside the next transaction, and answers what it returned once the transaction is durable. `run` has to check before it
   * writes, because a failure that it returns undoes nothing. `broken` turns a fault of the whole transaction into a failure of this
   * write; `size` is roughly how much is written, in characters.
   */
  readonly submit: <A, E>(size: number, run: () => Exit.Exit<A, E>, broken: (fault: Fault) => E) => Effect.Effect<A, E>
}

/** `transact` runs one transaction on the file or throws a {@link Fault}; `committed` is called after each. */
export const make = Effect.fnUntraced(function* (
  filename: string,
  transact: (body: () => void) => void,
  committed: () => void
): Effect.fn.Return<GroupCommit, never, Scope.Scope> {
  const commit = (group: ReadonlyArray<Work>) => () => {
    transact(() => {
      for (const { run } of group) run()
    })
    committed()
    return group.map(() => undefined)
  }
  const submit = yield* Groups.make<Work, void, Fault>({
    send: (group) =>
      Effect.catchDefect(
        patiently(filename, commit(group), (fault) => fault),
        (error) => Effect.fail(new Fault("other", String(error), { cause: error }))
      ),
    count: COUNT,
    size: ({ size }) => size,
    broken: () => closed
  })
  return {
    submit: <A, E>(size: number, run: () => Exit.Exit<A, E>, broken: (fault: Fault) => E) =>
      Effect.suspend(() => {
        let exit: Exit.Exit<A, E> | undefined
        const work: Work = {
          size,
          run: () => {
            exit = run()
          }
        }
        return Effect.matchEffect(submit(work), {
          onFailure: (fault) => Effect.fail(broken(fault)),
          onSuccess: () => exit ?? Exit.fail(broken(closed))
        })
      })
  }
})

const closed = new Fault("closed", "The store was closed")
