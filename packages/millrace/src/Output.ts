/** Prints answers: as text on a terminal, as JSON elsewhere or with `--json`. */
import type { Head } from "@millrace/audit"
import { Effect } from "effect"
import { Flag } from "effect/cli"
import { ReaderGone } from "./Failure.ts"
import * as Style from "./Style.ts"

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

/** An answer with a head: for people without its buckets, which may be thousands and are for comparing. */
export const printWithHead = <Answer extends { readonly head: Head }>(json: boolean, answer: Answer): Effect.Effect<void, ReaderGone> => {
  const { buckets: _, ...head } = answer.head
  return print(json, isForPeople(json) ? { ...answer, head } : answer)
}

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
      isScalar(inner)
        ? `${indent}${Style.head(name.padEnd(width))}  ${coloured(inner, scalar(inner))}`
        : `${indent}${Style.head(name)}\n${format(inner, `${indent}  `)}`
    )
    .join("\n")
}

const table = (rows: ReadonlyArray<unknown>, indent: string): string => {
  if (rows.some(isScalar)) return rows.map((row) => indent + scalar(row)).join("\n")
  const names = [...new Set(rows.flatMap((row) => Object.keys(row as object)))]
  const values = rows.map((row) => names.map((name) => (row as Record<string, unknown>)[name]))
  const cells = values.map((row) => row.map(cell))
  const widths = names.map((name, i) => cells.reduce((width, row) => Math.max(width, row[i]?.length ?? 0), name.length))
  // Colour is added last: it has no width. The last cell of a row is not padded
  const print = (row: ReadonlyArray<string>, colour: (text: string, i: number) => string) => {
    const last = row.findLastIndex((text) => text !== "")
    const padded = row.slice(0, last + 1).map((text, i) => colour(i === last ? text.trimEnd() : text.padEnd(widths[i] ?? 0), i))
    return indent + padded.join("  ")
  }
  const lines = cells.map((row, i) => print(row, (text, column) => coloured(values[i]?.[column], text)))
  return [print(names, Style.head), ...lines].join("\n")
}

/** Text of a value: what is absent is faint, and what is not well stands out. */
const coloured = (value: unknown, text: string): string => {
  if (value === null || value === undefined) return Style.faint(text)
  return value === "suspended" || value === "closed" || value === "revoked" || value === "overdue" ? Style.bad(text) : text
}

const cell = (value: unknown): string => scalar(isScalar(value) ? value : JSON.stringify(value))
