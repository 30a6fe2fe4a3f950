import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { CsvError, type Row, rows } from "../../src/bin/Csv.ts"

async function* pieces(text: string, size: number): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size)
}

const read = async (text: string, size = 7): Promise<ReadonlyArray<Row>> => {
  const read: Array<Row> = []
  for await (const row of rows(pieces(text, size))) read.push(row)
  return read
}

const quoted = (cell: string) => `"${cell.replaceAll('"', '""')}"`

describe("comma-separated values", () => {
  test("are read as they were written, in pieces of any size", async () => {
    const cell = fc.string({ unit: fc.constantFrom("a", " ", '"', ",", "\n", "\r\n", "é", "😀", "") })
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(cell, { minLength: 2, maxLength: 4 })),
        fc.constantFrom("\n", "\r\n"),
        fc.boolean(),
        fc.integer({ min: 1, max: 9 }),
        async (table, newline, last, size) => {
          const text = table.map((cells) => cells.map(quoted).join(",")).join(newline) + (last ? newline : "")
          expect((await read(text, size)).map(({ cells }) => cells)).toEqual(table)
        }
      ),
      { seed: 1, numRuns: 300 }
    )
  })

  test("need quotes only where they contain what separates them", async () => {
    expect(await read('a,"b,c",\n\n,"say ""hi""",d')).toEqual([
      { line: 1, cells: ["a", "b,c", ""] },
      { line: 3, cells: ["", 'say "hi"', "d"] }
    ])
  })

  test("are counted by the lines of the file, also where a cell has several", async () => {
    expect(await read('a,"b\nc"\r\n"d"\n')).toEqual([
      { line: 1, cells: ["a", "b\nc"] },
      { line: 3, cells: ["d"] }
    ])
    expect(await read("")).toEqual([])
  })

  test.each([
    ['a\nb"c\n', 2],
    ['a\n"b" c\n', 2],
    ['a\n"b\nc', 2]
  ])("are refused where quotes are wrong: %j", async (text, line) => {
    await expect(read(text)).rejects.toSatisfy((error) => error instanceof CsvError && error.line === line)
  })
})
