/** The work of an operation: it is run, and its result is validated, stored as JSON, and read again. */
import type { OperationError } from "@millrace/core"
import { Effect, type Schema } from "effect"
import type * as Schemas from "./Schemas.ts"
import { bug, failureOf } from "./Throwable.ts"

/** What the work may return: a value, a promise of one, or an Effect, whose services `createMillrace` takes as its option `services`. */
export type Returned<A, R = never> = A | PromiseLike<A> | Effect.Effect<A, OperationError, R>

/** A result with more to say than its data. */
export class Result<A> {
  readonly data: A
  readonly quantity: number | undefined

  constructor(data: A, quantity: number | undefined) {
    this.data = data
    this.quantity = quantity
  }
}

/** The result of work that did fewer units than were asked for: only `quantity` of them are charged. */
export const charging = <A>(quantity: number, data: A): Result<A> => new Result(data, quantity)

/** Runs a function of the host's. What it throws becomes the failure of the call. */
export const performed = <A, R>(key: string, work: (signal: AbortSignal) => Returned<A, R>): Effect.Effect<A, OperationError, R> =>
  Effect.flatten(
    Effect.tryPromise({
      try: async (signal) => {
        const returned = work(signal)
        return Effect.isEffect(returned)
          ? Effect.mapError(returned, (error) => failureOf(key, error))
          : Effect.succeed((await returned) as A)
      },
      catch: (error) => failureOf(key, error)
    })
  )

/** Validates the result of the work. A result that its own schema refuses is a bug, and so are more units than the `held` ones. */
export const outcomeOf = (
  key: string,
  success: Schemas.Output,
  returned: unknown,
  held: number
): Effect.Effect<{ readonly data: Schema.Json; readonly quantity?: number }, OperationError> => {
  const { data, quantity } = returned instanceof Result ? returned : new Result(returned, undefined)
  if (quantity !== undefined && !(Number.isSafeInteger(quantity) && quantity >= 0 && quantity <= held))
    return Effect.fail(
      bug(key, `it charges ${String(quantity)} of ${held} held: give a whole number of units, at most as many as were held`)
    )
  return success.validate(data).pipe(
    Effect.mapError((issues) =>
      bug(key, `its result breaks its own schema: ${issues.map(({ field, message }) => `${field || "the result"}: ${message}`).join("; ")}`)
    ),
    Effect.flatMap((value) =>
      Effect.try({
        try: () => ({ data: success.encode(value), ...(quantity === undefined ? {} : { quantity }) }),
        catch: (error) => bug(key, `its result is not JSON: ${error instanceof Error ? error.message : String(error)}`)
      })
    )
  )
}

/** Reads a stored result or checkpoint. It was made by the schema; a later release of the operation may have another, which is its bug. */
export const restored = (
  key: string,
  what: string,
  decode: Schemas.Decode | undefined,
  json: unknown
): Effect.Effect<unknown, OperationError> =>
  decode === undefined
    ? Effect.succeed(json)
    : Effect.mapError(decode(json), ({ message }) => bug(key, `its stored ${what} does not match its schema: ${message}`))
