/** A report in sentences, for an auditor who does not program: what was checked, whether all is well, and what each finding means. */
import { Money } from "@millrace/core"
import type { Head } from "./Head.ts"
import { sayIn } from "./Means.ts"
import { type Problem, type Report, WHOLE_LOG } from "./Report.ts"
import { type RuleName, sentenceOf, statements } from "./rules/Catalog.ts"

export interface SentenceOptions {
  /** The earlier head with which the log was compared. */
  readonly against?: Head | undefined
  readonly money?: Money.Money
  /** More lines, after what was checked. */
  readonly also?: ReadonlyArray<string>
}

const count = (n: number, one: string, many = `${one}s`): string => `${n.toLocaleString("en")} ${n === 1 ? one : many}`

/** What was checked. */
const checked = (report: Report): ReadonlyArray<string> => {
  const { accounts, events, from, head, holds, jobs, lots, ok, prices, streams, to } = report
  if (events === 0) return ["The log is empty: there was nothing to check."]
  const kinds = [count(accounts, "account"), count(lots, "lot"), count(holds, "hold"), count(prices, "price list"), count(jobs, "job")]
  return [
    `Checked ${count(events, "event")} in ${count(streams, "stream")}, from ${from} to ${to}:`,
    `${kinds.slice(0, -1).join(", ")} and ${kinds.at(-1)}.`,
    // The digest is over hashes as they stand in the log: of a log that does not verify it proves nothing
    ok ? `The log ends at position ${head.position}; its digest is ${head.digest}.` : `The log ends at position ${head.position}.`
  ]
}

/** What the comparison with a head says, or what is not known without one. */
const compared = ({ problems }: Report, against: Head | undefined): string => {
  if (against === undefined) {
    return "There was no earlier head to compare with, so this audit cannot tell whether the end of the log was cut off, whether a stream was removed, or whether all of it was written anew."
  }
  const of = `the head of ${against.at ?? "an empty log"} at position ${against.position || "0"}`
  return problems.some(({ rule }) => rule === ("log-extends-head" satisfies RuleName))
    ? `The log does NOT extend ${of}.`
    : `The log extends ${of}: up to there nothing was changed, removed or cut off.`
}

const who = ({ means: { account, lot }, stream }: Problem): string => {
  if (account !== null) return `Account ${account}${lot === undefined ? "" : `, lot ${lot}`}: `
  return stream === WHOLE_LOG ? "" : `Stream ${stream}: `
}

const facts = ({ detail, line, position, rule, stream }: Problem): ReadonlyArray<string> => {
  const statement = statements.find(({ name }) => name === rule)
  const place = [`position ${position || "0"}`, stream === WHOLE_LOG ? "the whole log" : `stream ${stream}`]
  // What a line that is no event says of its position and stream is not known
  const where = line === undefined ? place : [`line ${line}`, ...place.filter((_, i) => (i === 0 ? position !== "" : stream !== WHOLE_LOG))]
  return [
    `Where: ${where.join(", ")}.`,
    `Rule ${rule}: ${sentenceOf(rule) ?? "a rule of this host."}${statement === undefined ? "" : ` (Tenet ${statement.tenet}: ${statement.guards}.)`}`,
    `Fact: ${detail}`
  ]
}

/** A finding: what it means in money, then the facts. */
const finding = (problem: Problem, money: Money.Money): ReadonlyArray<string> => {
  const say = sayIn(money)
  const { after, before, sentence } = problem.means
  const around =
    before === undefined || after === undefined || problem.rule === ("books-agree" satisfies RuleName)
      ? []
      : [`Before: ${say(before * 1000)} to spend. After: ${say(after * 1000)}.`]
  return [`${who(problem)}${sentence}`, ...around, ...facts(problem)]
}

/** What the findings concern together. */
const verdict = ({ events, found, ok, problems }: Report): string => {
  if (ok && events === 0) return "Nothing is wrong, and nothing is vouched for."
  if (ok) return "All is well: every event is unchanged and in its place, and no rule is broken."
  const accounts = new Set(problems.flatMap(({ means: { account } }) => account ?? []))
  const concerned = accounts.size === 0 ? "no account by name" : count(accounts.size, "account")
  return `Something is wrong: ${count(found, "finding")}, which concern${found === 1 ? "s" : ""} ${concerned}.`
}

/** The lines of a report. */
export const sentences = (report: Report, { against, also = [], money = Money.STANDARD }: SentenceOptions = {}): ReadonlyArray<string> => {
  const { found, problems } = report
  const listed = problems.flatMap((problem, i) => {
    const [first = "", ...others] = finding(problem, money)
    const number = `${i + 1}. `
    return ["", `${number}${first}`, ...others.map((line) => " ".repeat(number.length) + line)]
  })
  const more = found > problems.length ? ["", `${count(found - problems.length, "more finding")} of the same streams are not shown.`] : []
  return [...checked(report), ...also, "", compared(report, against), verdict(report), ...listed, ...more]
}
