/** What the contract suites of the stores share: where tests are declared, and helpers for their bodies. */
import assert from "node:assert/strict"
import { Effect } from "effect"
import fc from "fast-check"

/** Where tests are declared: the functions of vitest, of node:test, or of any other runner of this shape. */
export interface Runner {
  readonly describe: (name: string, body: () => void) => unknown
  readonly it: (name: string, body: () => Promise<void>) => unknown
}

/** Tests by their titles. */
export type Contract<Body> = Readonly<Record<string, Body>>

/** Declares a group of tests. */
export const declare = <Body>(
  { describe, it }: Runner,
  group: string,
  contract: Contract<Body>,
  run: (body: Body) => Promise<void>
): void => {
  describe(group, () => {
    for (const [title, body] of Object.entries(contract)) it(title, () => run(body))
  })
}

/** Fails when `effect` takes longer than anything should. */
export const failsafe = <A, E, R>(what: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.timeoutOrElse(effect, { duration: "10 seconds", orElse: () => Effect.die(new Error(`Not within ten seconds: ${what}`)) })

/** A property whose every run is an effect. */
export const property = <A>(arbitrary: fc.Arbitrary<A>, numRuns: number, run: (value: A) => Effect.Effect<unknown, unknown>) =>
  Effect.promise(() =>
    fc.assert(
      fc.asyncProperty(arbitrary, async (value) => void (await Effect.runPromise(run(value)))),
      { numRuns }
    )
  )

/** The element at an index, counted from the end where that is negative. */
export const nth = <A>(all: ReadonlyArray<A>, index: number): A => {
  const one = all.at(index)
  assert(one !== undefined, `nothing at ${index} of ${all.length}`)
  return one
}
