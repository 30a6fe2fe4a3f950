/** An operation that answers with the result of its work. */
import type { Duration, Effect, Schema } from "effect"
import * as Contract from "./Contract.ts"
import type { OperationError } from "./OperationError.ts"

/** What an operation gives back. */
export interface Outcome<A> {
  readonly data: A
  /** Units that were done, where they are fewer than were held for. */
  readonly quantity?: number
  /** The answer is not final: seconds after which to ask again. */
  readonly retryAfter?: number
  /** Where the answer is one page of many. */
  readonly page?: Contract.Page
}

export interface Call<
  Key extends string,
  Method extends string,
  P extends Contract.Path,
  Params extends Contract.Fields,
  Query extends Contract.Fields,
  Body extends Contract.Fields,
  Success extends Schema.Top,
  E extends OperationError,
  R
> extends Contract.Contract<Key, Method, P, Params, Query, Body, Success, E, R> {
  readonly _tag: "Call"
  readonly run: (input: Contract.Input<Params, Query, Body>, caller: Contract.Caller) => Effect.Effect<Outcome<Success["Type"]>, E, R>
  /**
   * For an operation that creates or changes something: what became of a call whose process died. Undefined when the call left no
   * trace. Recovery asks when the hold expires, and charges or refunds by the answer.
   */
  readonly recover?: (reservationId: string) => Effect.Effect<Outcome<Success["Type"]> | undefined, E, R>
}

/** An operation that is called and answers: its work runs while the caller waits, for 30 seconds at most by default. */
export const make = <
  const Key extends string,
  const Method extends string,
  const P extends Contract.Path,
  Success extends Schema.Top,
  ERun extends OperationError,
  RRun,
  Params extends Contract.Fields = {},
  Query extends Contract.Fields = {},
  Body extends Contract.Fields = {},
  ECheck extends OperationError = never,
  RCheck = never,
  ERecover extends OperationError = never,
  RRecover = never,
  RConfigured = never
>(
  key: Key,
  options: Contract.Options<Method, P, Params, Query, Body, Success, ECheck, RCheck, RConfigured> & {
    readonly run: (
      input: Contract.Input<Params, Query, Body>,
      caller: Contract.Caller
    ) => Effect.Effect<Outcome<Success["Type"]>, ERun, RRun>
    readonly recover?: (reservationId: string) => Effect.Effect<Outcome<Success["Type"]> | undefined, ERecover, RRecover>
    readonly timeout?: Duration.Input
  }
): Call<Key, Method, P, Params, Query, Body, Success, ERun | ECheck | ERecover, RRun | RCheck | RRecover | RConfigured> => ({
  ...Contract.make(key, options, options.timeout ?? "30 seconds"),
  _tag: "Call",
  run: options.run,
  ...(options.recover === undefined ? {} : { recover: options.recover })
})
