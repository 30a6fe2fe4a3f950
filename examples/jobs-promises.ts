/** A queue of paid work without HTTP, with promises: what `jobs.ts` does with Effect. `npm run jobs-promises -w examples` */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createMillrace, job } from "millrace"
import { z } from "zod"

const count = job("text.count", {
  summary: "Count the words of a book, chapter by chapter",
  price: 0.5,
  unit: "chapter",
  quantity: ({ chapters }) => chapters.length,
  route: { method: "POST", path: "/counts", body: z.object({ chapters: z.array(z.string()).min(1) }) },
  result: z.object({ words: z.int() }),
  checkpoint: z.object({ done: z.int(), words: z.int() }),
  run: async ({ chapters }, { checkpoint, progress }) => {
    let { done, words } = checkpoint ?? { done: 0, words: 0 } // after a crash: from where it was
    for (const chapter of chapters.slice(done)) {
      words += chapter.match(/\S+/gu)?.length ?? 0
      await progress((100 * ++done) / chapters.length, { done, words })
    }
    return { words }
  }
})

const millrace = await createMillrace({ store: `sqlite:${mkdtempSync(join(tmpdir(), "millrace-jobs-"))}/log.db`, operations: [count] })
const account = await millrace.accounts.open({ email: "ada@example.com", verified: true }) // grants 200 credits

const book = { chapters: ["It was the best of times,", "it was the worst of times."] }
const accepted = await millrace.run(count, book, { account, idempotencyKey: "order-1" }) // asked again: the same job
console.log("accepted:", accepted.charged, accepted.balance) // nothing is charged yet, a credit is held
const { percent, result, status } = await millrace.jobs.wait(count, accepted.data.id, { account })
console.log(status, percent, result?.words)
await millrace.close()
