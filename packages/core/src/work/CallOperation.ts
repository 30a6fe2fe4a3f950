/** An operation that answers with the result of its work. */
import type { Duration, Effect, Schema } from "effect"
import * as Contract from "./Contract.ts"
import type { OperationError } from "./OperationError.ts"

/** The result of an operation's work. */
export interface Outcome<A> {
  readonly data: A
  /** Units done, if fewer than held. */
  readonly quantity?: number
  /** If the reply is not final: seconds after which the client should ask again. */
  readonly retryAfter?: number
  /** The page, if the reply is one of many. */
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
   * For an operation that creates or changes something: finds the outcome of a call whose process died; undefined if the call had no
   * effect. Recovery runs it when the hold expires, then charges the outcome or releases the hold.
   */
  readonly recover?: (reservationId: string) => Effect.Effect<Outcome<Success["Type"]> | undefined, E, R>
}

/** Defines an operation whose work runs while the caller waits, by default for at most 30 seconds. */
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
