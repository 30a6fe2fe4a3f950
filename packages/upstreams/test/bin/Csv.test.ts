import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { CsvError, type Row, rows } from "../../src/bin/Csv.ts"

const read = (text: string): ReadonlyArray<Row> => [...rows(text)]

const quoted = (cell: string) => `"${cell.replaceAll('"', '""')}"`

describe("comma-separated values", () => {
  test("are read as they were written", () => {
    const cell = fc.string({ unit: fc.constantFrom("a", " ", '"', ",", "\n", "\r\n", "é", "😀", "") })
    fc.assert(
      fc.property(
        fc.array(fc.array(cell, { minLength: 2, maxLength: 4 })),
        fc.constantFrom("\n", "\r\n"),
        fc.boolean(),
        (table, newline, last) => {
          const text = table.map((cells) => cells.map(quoted).join(",")).join(newline) + (last ? newline : "")
          expect(read(text).map(({ cells }) => cells)).toEqual(table)
        }
      ),
      { seed: 1, numRuns: 300 }
    )
  })

  test("need quotes only around separators", () => {
    expect(read('a,"b,c",\n\n,"say ""hi""",d')).toEqual([
      { line: 1, cells: ["a", "b,c", ""] },
      { line: 3, cells: ["", 'say "hi"', "d"] }
    ])
  })

  test("are numbered by the lines of the file, also with cells of several lines", () => {
    expect(read('a,"b\nc"\r\n"d"\n')).toEqual([
      { line: 1, cells: ["a", "b\nc"] },
      { line: 3, cells: ["d"] }
    ])
    expect(read("")).toEqual([])
  })

  test.each([
    ['a\nb"c\n', 2],
    ['a\n"b" c\n', 2],
    ['a\n"b\nc', 2]
  ])("are refused if quotes are misplaced: %j", (text, line) => {
    expect(() => read(text)).toThrow(expect.toSatisfy((error) => error instanceof CsvError && error.line === line))
  })
})
