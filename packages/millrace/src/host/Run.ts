/** Runs effects as promises that reject with errors of a host. */
import { Credits, Money } from "@millrace/core"
import { type Effect, Exit, type ManagedRuntime } from "effect"
import { errorOf, MillraceError } from "./Failures.ts"

export type Run<R> = <A, E>(effect: Effect.Effect<A, E, R>, signal?: AbortSignal) => Promise<A>

export const runnerOf =
  <R, E>(runtime: ManagedRuntime.ManagedRuntime<R, E>, money: Money.Money = Money.STANDARD): Run<R> =>
  async (effect, signal) => {
    const exit = await runtime.runPromiseExit(effect, signal === undefined ? {} : { signal })
    if (Exit.isSuccess(exit)) return exit.value
    if (signal?.aborted === true) throw signal.reason
    throw errorOf(exit.cause, money)
  }

/** An amount that a host gives in credits. */
export const amountOf = (credits: number, name: string): Credits.Credits => {
  const amount = typeof credits === "number" ? Credits.parse(String(credits)) : undefined
  if (amount !== undefined) return amount
  const sentence = `${name} is ${String(credits)}: give a number of credits, at least 0, with at most three decimals`
  throw new MillraceError("invalid_amount", sentence, { name })
}
