/** Comma-separated values (RFC 4180). */

export interface Row {
  /** The line on which the row begins, from 1. */
  readonly line: number
  readonly cells: ReadonlyArray<string>
}

/** The file is malformed. */
export class CsvError extends Error {
  readonly line: number
  constructor(line: number, message: string) {
    super(message)
    this.line = line
  }
}

/** A cell with the comma or the line feed that ends it. In quotes, two quotes stand for one; `lost` follows the closing quote. */
const CELL = /(?:"(?<quoted>[^"]*(?:""[^"]*)*)"(?!")(?<lost>[^,\n]*)|(?<plain>[^,\n]*))(?<end>,|\n|$)/gu

const linesIn = (text: string): number => text.split("\n").length - 1

/** The rows of a text; empty lines are skipped. Throws `CsvError`. */
export function* rows(text: string): Generator<Row> {
  let line = 1
  let begin = 1
  let cells: Array<string> = []
  for (const { groups: { quoted, lost = "", plain = "", end } = {} } of text.matchAll(CELL)) {
    if (plain.startsWith('"')) throw new CsvError(begin, "a quote that is never closed")
    if (plain.includes('"')) throw new CsvError(line, "a quote inside of a cell that does not begin with one")
    line += linesIn(quoted ?? "")
    if (lost.replaceAll("\r", "") !== "") throw new CsvError(line, "something between a closing quote and the next comma")
    const cell = quoted?.replaceAll('""', '"') ?? plain.replaceAll("\r", "")
    cells.push(cell)
    if (end === ",") continue
    if (cells.length > 1 || cell !== "" || quoted !== undefined) yield { line: begin, cells }
    line += linesIn(end ?? "")
    begin = line
    cells = []
  }
}
