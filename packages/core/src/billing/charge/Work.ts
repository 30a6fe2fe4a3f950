/** Step 3: does the work of a call. If it is interrupted, the hold is released. */
import { Effect } from "effect"
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

/** Runs the operation, within its time limit. */
export const work = <E extends OperationError, R>(
  { perform }: Pick<Services, "perform">,
  operation: AnyCall<E, R> | AnyFile<E, R>,
  input: unknown,
  call: Caller
): Effect.Effect<Delivered, E | UpstreamUnavailable | OperationFailed, R> => {
  const caller = callerOf(call)
  if (operation._tag === "Call")
    return perform(
      operation,
      operation.success,
      called(operation, "run", () => operation.run(input, caller))
    )
  return Effect.suspend(() => {
    let file: Download | undefined
    const found = called(operation, "open", () => operation.open(input, caller))
    const opened = Effect.map(found, (download: Download) => {
      file = download
      return { data: { content_type: download.contentType, size: download.size, tag: download.tag } }
    })
    return Effect.map(perform(operation, FileInfo, opened), (done) => (file === undefined ? done : { ...done, file }))
  })
}

/** What the operation is told of its caller. */
const callerOf = ({ accountId, credential, requestId, reservationId, wait }: Caller): Caller => {
  const caller = { accountId, requestId, reservationId }
  if (credential === undefined && wait === undefined) return caller
  return { ...caller, ...(credential === undefined ? {} : { credential }), ...(wait === undefined ? {} : { wait }) }
}
