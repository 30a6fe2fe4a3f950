/** An operation that answers with the result of its work. */
import type { Effect, Schema } from "effect"
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
  /** Of an operation that is `cached`: a `hit` made no request to its upstream. */
  readonly cache?: CacheResult
}

export type CacheResult = "hit" | "miss"

/** What a reader of public data has read. */
export interface Read<A> {
  readonly data: A
  readonly cache: CacheResult
}

export interface Call<Key extends string, Rt extends Contract.Route, Success extends Schema.Top, E extends OperationError, R>
  extends Contract.Contract<Key, Rt, Success, E, R> {
  readonly _tag: "Call"
  /** The operation may wait for `caller.wait` seconds, for an answer that a caller would otherwise ask for again and again. */
  readonly waits?: true
  /**
   * Its reply is not kept under an idempotency key, because it shows what must be deletable at any time. A call that is sent again under the
   * key does not run again, and is told that it succeeded.
   */
  readonly unkept?: true
  /** It may answer with what an earlier call of any account has read, for as long as the upstream allows. Each call is charged. */
  readonly cached?: true
  readonly run: (input: Contract.Input<Rt>, caller: Contract.Caller) => Effect.Effect<Outcome<Success["Type"]>, E, R>
  /**
   * For an operation that creates or changes something: finds the outcome of a call whose process died; undefined if the call had no
   * effect. Recovery runs it when the hold expires, then charges the outcome or releases the hold.
   */
  readonly recover?: (reservationId: string) => Effect.Effect<Outcome<Success["Type"]> | undefined, E, R>
}

/** Defines an operation whose work runs while the caller waits, by default for at most 30 seconds. */
export const make = <
  const Key extends string,
  const O extends Contract.RouteOptions,
  Success extends Schema.Top,
  ERun extends OperationError,
  RRun,
  ECheck extends OperationError = never,
  RCheck = never,
  ERecover extends OperationError = never,
  RRecover = never,
  RConfigured = never
>(
  key: Key,
  options: Contract.Options<O, Success, ECheck, RCheck, RConfigured> &
    Pick<Call<Key, Contract.RouteOf<O>, Success, ERun, RRun>, "run" | "cached" | "unkept" | "waits"> &
    Pick<Call<Key, Contract.RouteOf<O>, Success, ERecover, RRecover>, "recover">
): Call<Key, Contract.RouteOf<O>, Success, ERun | ECheck | ERecover, RRun | RCheck | RRecover | RConfigured> => ({
  ...Contract.make(key, options, "30 seconds"),
  _tag: "Call",
  run: options.run,
  ...(options.waits === undefined ? {} : { waits: options.waits }),
  ...(options.cached === undefined ? {} : { cached: options.cached }),
  ...(options.unkept === undefined ? {} : { unkept: options.unkept }),
  ...(options.recover === undefined ? {} : { recover: options.recover })
})
