import { createWriteStream } from "node:fs"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { createMillrace, job } from "millrace"
import { z } from "zod"

const table = job("table.print", {
  summary: "Print a table of squares",
  price: 0.01, // credits a row
  unit: "row",
  quantity: ({ rows }) => rows,
  route: { method: "POST", path: "/tables", body: z.object({ rows: z.int().min(1).max(100_000) }) },
  result: z.object({ bytes: z.int() }),
  files: ["text/csv"],
  retention: 7 * 24 * 3_600_000, // result and files are kept for a week
  run: async ({ rows }, { store }) => {
    const { size } = await store(squares(rows), { contentType: "text/csv" })
    return { bytes: size }
  }
})

/** The file is made while it is stored, so it is never whole in memory. */
async function* squares(rows: number) {
  for (let row = 1; row <= rows; row++) yield new TextEncoder().encode(`${row},${row ** 2}\n`)
}

const folder = process.argv[2] ?? "./data"
const millrace = await createMillrace({ store: `sqlite:${folder}/millrace.db`, operations: [table] }) // files: in ./data/blobs

const account = await millrace.accounts.open({ id: "user-7", email: "ada@example.com", verified: true })
const { data } = await millrace.run(table, { rows: 1_000 }, { account, idempotencyKey: "table-1" })
const { files, status } = await millrace.jobs.wait(table, data.id, { account })
console.log(status, files)

const { filename, stream } = await millrace.jobs.file(table, data.id, { account })
await pipeline(Readable.fromWeb(stream), createWriteStream(`${folder}/${filename}`))
await millrace.close()
