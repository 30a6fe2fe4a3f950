/** What the work of an operation may throw, and what each means: the call is refunded, and its caller gets the matching error. */
import {
  InvalidInput as CoreInvalidInput,
  NotFound as CoreNotFound,
  UpstreamUnavailable as CoreUpstreamUnavailable,
  type OperationError,
  OperationFailed
} from "@millrace/core"

/** An error with a stable name and code. */
abstract class Thrown<Name extends string, Code extends string> extends Error {
  override readonly name: Name
  readonly code: Code

  constructor(name: Name, code: Code, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = name
    this.code = code
  }
}

/** The service behind the operation failed. The caller may try again; five in a row open the operation's circuit. */
export class UpstreamUnavailable extends Thrown<"UpstreamUnavailable", "upstream_unavailable"> {
  /** The failure concerns this request only, and does not count for the circuit. */
  readonly isolated: boolean

  /** `reason` is for operators: it is logged, and never shown to the caller. */
  constructor(reason: string, { isolated = false, ...options }: ErrorOptions & { readonly isolated?: boolean } = {}) {
    super("UpstreamUnavailable", "upstream_unavailable", reason, options)
    this.isolated = isolated
  }
}

/** The input is well-formed, but cannot be processed. The caller reads `field` and `message`. */
export class InvalidInput extends Thrown<"InvalidInput", "invalid_input"> {
  readonly field: string

  constructor(field: string, message: string, options?: ErrorOptions) {
    super("InvalidInput", "invalid_input", message, options)
    this.field = field
  }
}

/** What the caller asked for does not exist, or belongs to another account. `resource` is a word such as `invoice`. */
export class NotFound extends Thrown<"NotFound", "not_found"> {
  readonly resource: string

  constructor(resource: string, options?: ErrorOptions) {
    super("NotFound", "not_found", `There is no such ${resource}`, options)
    this.resource = resource
  }
}

const CORE = [CoreInvalidInput, CoreNotFound, CoreUpstreamUnavailable]

/** The failure of an operation whose work threw `error`. Anything that is not one of the three classes is a bug of the operation. */
export const failureOf = (operation: string, error: unknown): OperationError => {
  if (error instanceof UpstreamUnavailable)
    return new CoreUpstreamUnavailable({
      upstream: operation,
      reason: error.message,
      ...(error.isolated ? { isolated: true } : {})
    })
  if (error instanceof InvalidInput) return new CoreInvalidInput({ field: error.field, message: error.message })
  if (error instanceof NotFound) return new CoreNotFound({ resource: error.resource })
  if (CORE.some((Failure) => error instanceof Failure)) return error as OperationError
  return bug(operation, `it threw ${error instanceof Error ? `${error.name}: ${error.message}${placeOf(error)}` : String(error)}`)
}

/** Where an error was made: whoever looks for the bug has only this line. */
export const placeOf = ({ stack = "" }: Error): string => {
  const frame = /^ +at .*$/mu.exec(stack)?.[0].trim()
  return frame === undefined ? "" : ` (${frame})`
}

/** A bug of the operation. It is not among the failures that an operation may declare, but every caller of operations handles it. */
export const bug = (operation: string, reason: string): OperationError => new OperationFailed({ operation, reason }) as never
