/** Two runs of one seed must not differ. Where they do, something outside the seed decides. */
import type { Run } from "./Run.ts"

/** Lines of the trace that are shown before the first difference. */
const BEFORE = 6

const CAUSES = [
  "Something that the seed does not decide takes part. Likely causes, in an operation, a fake, an expectation or an input:",
  "  Math.random or crypto.randomUUID: use Effect's Random, or the `random` that `input` gets",
  "  Date.now or new Date(): use Effect's Clock or DateTime",
  "  a Map or a counter that outlives a run: give `workload` as a function that makes all of it anew",
  "  a real timer, network, file or process"
]

/** A description of the first difference; undefined if the runs are alike. */
export const differenceOf = (one: Run, other: Run): ReadonlyArray<string> | undefined => {
  const { outcome, trace } = one
  const length = Math.max(trace.length, other.trace.length)
  const at = Array.from({ length }, (_, i) => i).find((i) => trace[i] !== other.trace[i])
  if (at === undefined) {
    if (outcome?.hash === other.outcome?.hash) return undefined
    return [...differenceOfLogs(one, other), ...CAUSES]
  }
  return [
    `The traces differ from line ${at + 1} on:`,
    ...trace.slice(Math.max(0, at - BEFORE), at).map((line) => `    ${line}`),
    `  1 ${trace[at] ?? "(the trace has ended)"}`,
    `  2 ${other.trace[at] ?? "(the trace has ended)"}`,
    ...CAUSES
  ]
}

const differenceOfLogs = ({ outcome }: Run, { outcome: other }: Run): ReadonlyArray<string> => {
  const [one, two] = [outcome?.events ?? [], other?.events ?? []]
  const at = one.findIndex((event, i) => JSON.stringify(textOf(event)) !== JSON.stringify(two[i] && textOf(two[i])))
  const show = (event: (typeof one)[number] | undefined) => (event === undefined ? "(the log has ended)" : JSON.stringify(textOf(event)))
  return [`The logs differ from event ${at + 1} on:`, `  1 ${show(one[at])}`, `  2 ${show(two[at])}`]
}

const textOf = ({ data, id, metadata, revision, stream, type }: NonNullable<Run["outcome"]>["events"][number]) => ({
  ...{ stream, revision, type, id, data, metadata }
})
