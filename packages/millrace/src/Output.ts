/** Prints answers: as text on a terminal, as JSON elsewhere or with `--json`. */
import { Effect } from "effect"
import { Flag } from "effect/cli"
import { ReaderGone } from "./Failure.ts"

export const json = Flag.Boolean("json").pipe(
  Flag.withDescription("Print JSON; the default where the output is not a terminal"),
  Flag.withDefault(false)
)

/** Whether to print text for people. */
export const isForPeople = (json: boolean): boolean => !json && process.stdout.isTTY === true

export const text = (content: string): Effect.Effect<void, ReaderGone> =>
  Effect.callback((resume) => {
    process.stdout.write(content, (error) => resume(error ? Effect.fail(new ReaderGone("nobody reads the output")) : Effect.void))
  })

/** One answer. */
export const print = (json: boolean, answer: unknown): Effect.Effect<void, ReaderGone> =>
  text(isForPeople(json) ? `${format(answer)}\n` : `${JSON.stringify(answer)}\n`)

/** Has the process exit with 1 where something is wrong, though the command itself succeeds. */
export const exitCode = (isWell: boolean): Effect.Effect<void> =>
  Effect.sync(() => {
    if (!isWell) process.exitCode = 1
  })

/** One line of many. */
export const line = (content: string): Effect.Effect<void, ReaderGone> => text(`${content}\n`)

const isScalar = (value: unknown): boolean => typeof value !== "object" || value === null || value instanceof Date

/** Characters that could move the cursor or reverse the text. Labels are written by their owners. */
const UNPRINTABLE = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu

export const printable = (text: string): string =>
  text.replaceAll(UNPRINTABLE, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`)

const scalar = (value: unknown): string =>
  value === null || value === undefined ? "-" : value instanceof Date ? value.toISOString() : printable(String(value))

/** Names and values in two columns; lists of records as tables. */
const format = (value: unknown, indent = ""): string => {
  if (isScalar(value)) return indent + scalar(value)
  if (Array.isArray(value)) return value.length === 0 ? `${indent}none` : table(value, indent)
  const entries = Object.entries(value as object)
  const width = Math.max(0, ...entries.map(([name]) => name.length))
  return entries
    .map(([name, inner]) =>
      isScalar(inner) ? `${indent}${name.padEnd(width)}  ${scalar(inner)}` : `${indent}${name}\n${format(inner, `${indent}  `)}`
    )
    .join("\n")
}

const table = (rows: ReadonlyArray<unknown>, indent: string): string => {
  if (rows.some(isScalar)) return rows.map((row) => indent + scalar(row)).join("\n")
  const names = [...new Set(rows.flatMap((row) => Object.keys(row as object)))]
  const cells = rows.map((row) => names.map((name) => cell((row as Record<string, unknown>)[name])))
  const widths = names.map((name, i) => Math.max(name.length, ...cells.map((row) => row[i]?.length ?? 0)))
  const print = (row: ReadonlyArray<string>) =>
    indent +
    row
      .map((text, i) => text.padEnd(widths[i] ?? 0))
      .join("  ")
      .trimEnd()
  return [print(names), ...cells.map(print)].join("\n")
}

const cell = (value: unknown): string => scalar(isScalar(value) ? value : JSON.stringify(value))
