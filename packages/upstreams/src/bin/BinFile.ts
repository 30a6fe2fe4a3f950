/** An operator's own list of BINs: a CSV file with the columns bin, scheme, type, brand, country and bank, in any order. */
import { readFile } from "node:fs/promises"
import type { Bin } from "@millrace/core"
import { Effect, Schema } from "effect"
import { countryOf } from "./Countries.ts"
import { CsvError, type Row, rows } from "./Csv.ts"
import { schemeNamed } from "./Schemes.ts"

/** The file cannot be read, or is malformed. */
export class BinFileError extends Schema.TaggedError<BinFileError>()("BinFileError", {
  path: Schema.String,
  /** The line, from 1; null if the failure concerns the whole file. */
  line: Schema.NullOr(Schema.Int),
  reason: Schema.String
}) {
  override get message(): string {
    return `The file of BIN ranges cannot be used: ${this.path}${this.line === null ? "" : `:${this.line}`}: ${this.reason}`
  }
}

/** The row of a prefix. An empty cell is null. */
export type BinEntry = Omit<typeof Bin.BinRecord.Type, "bin" | "scheme"> & { readonly scheme: string | null }

/** Finds the entry of the longest prefix of a BIN that the file lists. */
export type BinFile = (bin: string) => BinEntry | undefined

const COLUMNS = ["bin", "scheme", "type", "brand", "country", "bank"] as const
type Column = (typeof COLUMNS)[number]

/** The columns in the order of the header row. */
const columnsOf = ({ line, cells }: Row): ReadonlyArray<string> => {
  const names = cells.map((name) => name.trim().toLowerCase())
  if (names.length === COLUMNS.length && COLUMNS.every((column) => names.includes(column))) return names
  throw new CsvError(line, `the header must be ${COLUMNS.join(",")}, in any order`)
}

const entryOf = ({ line, cells }: Row, columns: ReadonlyArray<string>): { readonly bin: string; readonly entry: BinEntry } => {
  if (cells.length !== COLUMNS.length) throw new CsvError(line, `${cells.length} cells instead of ${COLUMNS.length}`)
  const cell = (column: Column): string | null => cells[columns.indexOf(column)]?.trim() || null
  const bin = cell("bin")
  const scheme = cell("scheme")
  const code = cell("country")
  const bank = cell("bank")
  if (bin === null || !/^[0-9]{1,8}$/u.test(bin)) throw new CsvError(line, "bin must have one to eight digits")
  const country = code === null ? null : countryOf(code)
  if (country === undefined) throw new CsvError(line, `${JSON.stringify(code)} is no ISO 3166-1 alpha-2 code`)
  const entry = {
    scheme: scheme === null ? null : schemeNamed(scheme),
    type: cell("type")?.toLowerCase() ?? null,
    brand: cell("brand"),
    country,
    bank: bank === null ? null : { name: bank }
  }
  return { bin, entry }
}

const read = async (path: string, signal: AbortSignal): Promise<ReadonlyMap<string, BinEntry>> => {
  const entries = new Map<string, BinEntry>()
  let columns: ReadonlyArray<string> | undefined
  const text = new TextDecoder("utf-8", { fatal: true }).decode(await readFile(path, { signal }))
  for (const row of rows(text)) {
    if (columns === undefined) {
      columns = columnsOf(row)
      continue
    }
    const { bin, entry } = entryOf(row, columns)
    if (entries.has(bin)) throw new CsvError(row.line, `bin ${bin} is listed twice`)
    entries.set(bin, entry)
  }
  if (columns === undefined) throw new CsvError(1, "the file is empty")
  return entries
}

/** Reads the whole file, once. */
export const load = (path: string): Effect.Effect<BinFile, BinFileError> =>
  Effect.tryPromise({
    try: (signal) => read(path, signal),
    catch: (cause) =>
      new BinFileError({
        path,
        line: cause instanceof CsvError ? cause.line : null,
        reason: cause instanceof Error ? cause.message : String(cause)
      })
  }).pipe(
    Effect.map((entries) => (bin) => {
      for (let length = bin.length; length > 0; length -= 1) {
        const entry = entries.get(bin.slice(0, length))
        if (entry !== undefined) return entry
      }
      return undefined
    })
  )
