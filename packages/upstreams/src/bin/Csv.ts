/** Comma-separated values (RFC 4180), read from a stream. */

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

type State = "start" | "plain" | "quoted" | "closed"

/** The rows of a text that comes in pieces; empty lines are skipped. Throws `CsvError`. */
export async function* rows(pieces: AsyncIterable<string>): AsyncGenerator<Row> {
  let state: State = "start"
  let line = 1
  let begin = 1
  let cell = ""
  let cells: Array<string> = []

  for await (const piece of pieces) {
    for (const character of piece) {
      if (state === "quoted") {
        if (character === '"') state = "closed"
        else cell += character
      } else if (character === ",") {
        cells.push(cell)
        cell = ""
        state = "start"
      } else if (character === "\n") {
        if (cells.length > 0 || cell !== "" || state === "closed") yield { line: begin, cells: [...cells, cell] }
        cells = []
        cell = ""
        state = "start"
        begin = line + 1
      } else if (character === '"') {
        if (state === "plain") throw new CsvError(line, "a quote inside of a cell that does not begin with one")
        // A second quote after a closing one stands for a quote.
        if (state === "closed") cell += '"'
        state = "quoted"
      } else if (character !== "\r") {
        if (state === "closed") throw new CsvError(line, "something between a closing quote and the next comma")
        cell += character
        state = "plain"
      }
      if (character === "\n") line += 1
    }
  }
  if (state === "quoted") throw new CsvError(begin, "a quote that is never closed")
  if (cells.length > 0 || cell !== "" || state === "closed") yield { line: begin, cells: [...cells, cell] }
}
