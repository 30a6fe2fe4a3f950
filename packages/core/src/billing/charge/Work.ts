/** Step 3: does the work of a call. If it is interrupted, the hold is released. */
import { type Context, Effect, Exit } from "effect"
import { effect, type Running, type Told } from "../../Running.ts"
import type { Caller } from "../../work/Contract.ts"
import { type Download, FileInfo } from "../../work/FileOperation.ts"
import type { AnyCall, AnyFile } from "../../work/Operation.ts"
import type { OperationError, OperationFailed, UpstreamUnavailable } from "../../work/OperationError.ts"
import { called, type Done } from "../../work/Perform.ts"
import type { Services } from "./Services.ts"

/** The result of the work; `file` if the operation replies with one. */
export interface Delivered extends Done {
  readonly file?: Download
}

type Failure<E> = E | UpstreamUnavailable | OperationFailed

/** Runs the operation, within its time limit, by callback. */
export const start = <E extends OperationError, R>(
  { perform }: Pick<Services, "perform">,
  operation: AnyCall<E, R> | AnyFile<E, R>,
  input: unknown,
  call: Caller,
  context: Context.Context<R>,
  told: Told<Delivered, Failure<E>>
): Running => {
  const caller = callerOf(call)
  if (operation._tag === "Call") {
    const run = () => called(operation, "run", () => operation.run(input, caller))
    return perform.start(operation, operation.success, run, context, told)
  }
  let file: Download | undefined
  const open = () =>
    Effect.map(
      called(operation, "open", () => operation.open(input, caller)),
      (download: Download) => {
        file = download
        return { data: { content_type: download.contentType, size: download.size, tag: download.tag } }
      }
    )
  return perform.start(operation, FileInfo, open, context, (exit) =>
    told(Exit.isSuccess(exit) && file !== undefined ? Exit.succeed({ ...exit.value, file }) : exit)
  )
}

/** Runs the operation, within its time limit. */
export const work = <E extends OperationError, R>(
  needs: Pick<Services, "perform">,
  operation: AnyCall<E, R> | AnyFile<E, R>,
  input: unknown,
  call: Caller
): Effect.Effect<Delivered, Failure<E>, R> => effect((context, told) => start(needs, operation, input, call, context, told))

/** What the operation is told of its caller. */
const callerOf = ({ accountId, credential, requestId, reservationId, wait }: Caller): Caller => {
  const caller = { accountId, requestId, reservationId }
  if (credential === undefined && wait === undefined) return caller
  return { ...caller, ...(credential === undefined ? {} : { credential }), ...(wait === undefined ? {} : { wait }) }
}
