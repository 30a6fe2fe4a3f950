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
  { accountId, credential, requestId, reservationId, wait }: Caller
): Effect.Effect<Delivered, E | UpstreamUnavailable | OperationFailed, R> => {
  const asked = { ...(credential === undefined ? {} : { credential }), ...(wait === undefined ? {} : { wait }) }
  const caller = { accountId, requestId, reservationId, ...asked }
  const task = { key: operation.key, timeout: operation.timeout, ...(operation.local === undefined ? {} : { local: operation.local }) }
  if (operation._tag === "Call")
    return perform({ ...task, success: operation.success, work: called(operation, "run", () => operation.run(input, caller)) })
  return Effect.suspend(() => {
    let file: Download | undefined
    const found = called(operation, "open", () => operation.open(input, caller))
    const opened = Effect.map(found, (download: Download) => {
      file = download
      return { data: { content_type: download.contentType, size: download.size, tag: download.tag } }
    })
    return Effect.map(perform({ ...task, success: FileInfo, work: opened }), (done) => (file === undefined ? done : { ...done, file }))
  })
}
