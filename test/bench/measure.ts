/** Contenders that take turns in one process, so that a drifting machine is the same for all; what is quoted is the ratio. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Interval, intervalOf } from "./figures.ts"

/** Works for about `millis` and answers how much it did in a second. */
export type Contender = (millis: number) => Promise<number>

export interface Comparison {
  /** Median of the rounds, in units a second. */
  readonly rate: number
  /** Median of the rounds' ratios to the first contender. */
  readonly ratio: number
}

export interface Options {
  readonly rounds: number
  readonly millis: number
  /** Gets the ratio of each contender to the first one, with its uncertainty. */
  readonly seen?: (name: string, ratio: Interval) => void
}

export const median = (values: ReadonlyArray<number>): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

/**
 * Each round runs every contender once, in turn and in alternating order, after a round that does not count. `load`: what the contenders
 * do, if a benchmark compares them more than once.
 */
export const compare = async (
  contenders: Readonly<Record<string, Contender>>,
  { rounds, millis, seen }: Options,
  load?: string
): Promise<Readonly<Record<string, Comparison>>> => {
  const names = Object.keys(contenders)
  const rates = new Map(names.map((name) => [name, [] as Array<number>]))
  for (let round = -1; round < rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const rate = await contenders[name]?.(round < 0 ? millis / 4 : millis)
      if (round >= 0 && rate !== undefined) rates.get(name)?.push(rate)
    }
  }
  const base = rates.get(names[0] ?? "") ?? []
  for (const name of names.slice(1)) {
    const ratios = (rates.get(name) ?? []).map((rate, i) => rate / (base[i] ?? rate))
    seen?.(load === undefined ? name : `${name}, ${load}`, intervalOf(ratios))
  }
  return Object.fromEntries(
    [...rates].map(([name, seen]) => [
      name,
      { rate: Math.round(median(seen)), ratio: Number(median(seen.map((rate, i) => rate / (base[i] ?? rate))).toFixed(3)) }
    ])
  )
}

/** A folder on disk for the time of `use`. */
export const withFolder = async <A>(use: (folder: string) => Promise<A>): Promise<A> => {
  const folder = mkdtempSync(join(process.env["MILLRACE_BENCH_DIR"] ?? tmpdir(), "millrace-bench-"))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  // Also where something ends the process before its time
  process.once("exit", remove)
  try {
    return await use(folder)
  } finally {
    process.off("exit", remove)
    remove()
  }
}
