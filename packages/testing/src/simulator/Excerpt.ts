/** The part of a trace that explains a violation. */

/** Lines that are shown at most. */
const LINES = 60
/** Lines before and after the violation that are shown whatever they say. */
const BEFORE = 12
const AFTER = 3

/** Names of calls, accounts, jobs, reservations, lots, proxy sessions and hosts. */
const NAMES = /\b(?:q\d+|k\d+|(?:acc|job|res|lot|proxy)_\w+|h\d+\.\d+)\b/gu

const namesIn = (text: string): ReadonlyArray<string> => text.match(NAMES) ?? []

/** The names in the violation, and those in the line that begins each call of them: its account, its host and its key. */
const namesOf = (violation: string, trace: ReadonlyArray<string>): ReadonlySet<string> => {
  const direct = new Set(namesIn(violation))
  const begun = trace.filter((line) => [...direct].some((name) => line.includes(` ${name}: calls `)))
  return new Set([...direct, ...begun.flatMap(namesIn)])
}

/** Which lines are shown: the one of the violation, its neighbours, and the nearest lines that name what it names. */
const chosen = (trace: ReadonlyArray<string>, at: number): ReadonlyArray<number> => {
  const names = namesOf(trace[at] ?? "", trace)
  const isNear = (i: number) => i >= at - BEFORE && i <= at + AFTER
  const isAbout = (line: string) => namesIn(line).some((name) => names.has(name))
  const about = trace.flatMap((line, i) => (isNear(i) || isAbout(line) ? [i] : []))
  return about
    .sort((a, b) => Math.abs(a - at) - Math.abs(b - at))
    .slice(0, LINES)
    .sort((a, b) => a - b)
}

/** Longer lines are cut. */
const WIDTH = 240

/** Lines of the trace about what happened at one of them, which is marked. A line of dots stands for lines that are left out. */
export const excerpt = (trace: ReadonlyArray<string>, at: number): ReadonlyArray<string> => {
  const indices = chosen(trace, at)
  const lines = indices.flatMap((i, n) => {
    const line = `${i === at ? ">" : " "} ${cut(trace[i] ?? "")}`
    return i === (indices[n - 1] ?? -1) + 1 ? [line] : ["  ...", line]
  })
  return (indices.at(-1) ?? 0) === trace.length - 1 ? lines : [...lines, "  ..."]
}

const cut = (line: string): string => (line.length > WIDTH ? `${line.slice(0, WIDTH)}...` : line)
