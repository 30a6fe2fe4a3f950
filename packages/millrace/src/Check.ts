/** What a check of `doctor` says. */
import { Cause, Effect } from "effect"
import { describe } from "./Failure.ts"

export interface Check {
  readonly name: string
  readonly ok: boolean
  readonly detail: string
  readonly advice?: string
}

export type Finding = Omit<Check, "name">

/** What a check found. With an advice it is wrong, unless `ok` says otherwise. */
export const finding = (detail: string, advice?: string, ok = advice === undefined): Finding => ({
  ok,
  detail,
  ...(advice === undefined ? {} : { advice })
})

const isTagged = (error: unknown): error is Error & { readonly _tag: string } =>
  error instanceof Error && "_tag" in error && typeof error._tag === "string"

/** A check that fails counts as not ok. */
export const check = <E, R>(name: string, look: Effect.Effect<Finding, E, R>): Effect.Effect<Check, never, R> =>
  look.pipe(
    Effect.catchCause((cause) => {
      const error = Cause.squash(cause)
      const detail = isTagged(error) ? describe(error) : String(error)
      return Effect.succeed<Finding>({ ok: false, detail })
    }),
    Effect.map((finding) => ({ name, ...finding }))
  )
