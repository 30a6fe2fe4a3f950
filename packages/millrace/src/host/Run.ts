/** Runs effects as promises that reject with errors of a host. */
import { Credits, Money } from "@millrace/core"
import { type Effect, Exit, type ManagedRuntime } from "effect"
import { errorOf, MillraceError } from "./Failures.ts"
import { shown } from "./Given.ts"

export type Run<R> = <A, E>(effect: Effect.Effect<A, E, R>, signal?: AbortSignal) => Promise<A>

export const runnerOf =
  <R, E>(runtime: ManagedRuntime.ManagedRuntime<R, E>, money: Money.Money = Money.STANDARD, isClosed = () => false): Run<R> =>
  async (effect, signal) => {
    if (isClosed()) throw new MillraceError("closed", "This host of Millrace is closed: close() was called")
    const exit = await runtime.runPromiseExit(effect, signal === undefined ? {} : { signal })
    if (Exit.isSuccess(exit)) return exit.value
    if (signal?.aborted === true) throw signal.reason
    throw errorOf(exit.cause, money)
  }

/** An amount that a host gives in credits. */
export const amountOf = (credits: number, name: string): Credits.Credits => {
  const amount = typeof credits === "number" ? Credits.parse(String(credits)) : undefined
  return amount ?? refuse(credits, name, "at least 0")
}

/** An amount of which none would be a mistake. */
export const positiveAmountOf = (credits: number, name: string): Credits.Credits => {
  const amount = amountOf(credits, name)
  return amount === 0 ? refuse(credits, name, "above 0") : amount
}

const refuse = (credits: unknown, name: string, least: string): never => {
  const sentence = `${name} is ${shown(credits)}: give a number of credits, ${least}, with at most three decimals`
  throw new MillraceError("invalid_amount", sentence, { argument: name })
}
