/** Runs properties from a fixed seed, so each run has the same cases; `MILLRACE_SEED` selects others. */
import { assert, type IAsyncProperty, type IProperty } from "fast-check"

const seed = Number(process.env["MILLRACE_SEED"] ?? 1)

export const check = <T>(property: IProperty<T>, numRuns = 100): void => void assert(property, { seed, numRuns })

export const checkAsync = <T>(property: IAsyncProperty<T>, numRuns = 50): Promise<void> => assert(property, { seed, numRuns })
