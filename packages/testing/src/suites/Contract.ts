/** What the contract suites of the stores share: where tests are declared, and helpers for their bodies. */
import assert from "node:assert/strict"
import { Effect, type Layer, type Scope } from "effect"
import fc from "fast-check"

/** Where tests are declared: the functions of vitest, of node:test, or of any other runner of this shape. */
export interface Runner {
  readonly describe: (name: string, body: () => void) => unknown
  readonly it: (name: string, body: () => Promise<void>) => unknown
}

/** The body of a test, as `Effect.gen` takes it. */
type Body<A> = (argument: A) => Generator<Effect.Effect<unknown, unknown, Scope.Scope>, unknown, never>

/** Tests of a subject, such as a store, by their titles. */
export type Contract<Subject> = Readonly<Record<string, Body<Subject>>>

/** Declares a group of tests. Each test gets a new subject with a new layer. */
export const declare = <Subject, R>(
  { describe, it }: Runner,
  group: string,
  contract: Contract<Subject>,
  subject: Effect.Effect<Subject, unknown, R | Scope.Scope>,
  makeLayer: () => Layer.Layer<R, unknown>
): void =>
  void describe(group, () => {
    for (const [title, body] of Object.entries(contract)) {
      const test = Effect.flatMap(subject, (subject) => Effect.gen(() => body(subject)))
      it(title, () => test.pipe(Effect.asVoid, Effect.scoped, Effect.provide(makeLayer()), Effect.runPromise))
    }
  })

/** Fails when `effect` takes ten seconds, which is longer than anything should. */
export const failsafe = <A, E, R>(what: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.timeoutOrElse(effect, { duration: "10 seconds", orElse: () => Effect.die(new Error(`Not within ten seconds: ${what}`)) })

/** A property whose runs are generators of effects. */
export const property = <A>(arbitrary: fc.Arbitrary<A>, numRuns: number, run: Body<A>) =>
  Effect.promise(() =>
    fc.assert(
      fc.asyncProperty(arbitrary, async (value) => void (await Effect.runPromise(Effect.scoped(Effect.gen(() => run(value)))))),
      { numRuns }
    )
  )

/** The option of effects that run all at once. */
export const atOnce = { concurrency: "unbounded" } as const

/** The element at an index, counted from the end if negative. */
export const nth = <A>(all: ReadonlyArray<A>, index: number): A => {
  const one = all.at(index)
  assert(one !== undefined, `There is no element ${index} of ${all.length}`)
  return one
}
