// A host in plain JavaScript: Express, zod, two operations and a job. `npm run express -w examples` serves it on port 8787.
import express from "express"
import { createMillrace, InvalidInput, job, operation } from "millrace"
import { z } from "zod"

const greet = operation("greeting.write", {
  summary: "Write a greeting",
  price: 1.5, // credits a call; 1 credit is $0.001
  route: { method: "GET", path: "/greeting/:name", params: z.object({ name: z.string().max(100) }) },
  success: z.object({ greeting: z.string() }),
  run: async ({ name }) => ({ greeting: `Hello, ${name}!` })
})

const divide = operation("math.divide", {
  summary: "Divide two numbers",
  price: 0.1,
  route: { method: "POST", path: "/divide", body: z.object({ dividend: z.number(), divisor: z.number() }) },
  success: z.object({ quotient: z.number() }),
  run: ({ dividend, divisor }) => {
    if (divisor === 0) throw new InvalidInput("divisor", "must not be 0") // refunded
    return { quotient: dividend / divisor }
  }
})

const print = job("report.print", {
  summary: "Print a report",
  price: 0.5,
  unit: "page",
  quantity: ({ pages }) => pages,
  route: { method: "POST", path: "/reports", body: z.object({ pages: z.int().min(1).max(100) }) },
  result: z.object({ pages: z.int() }),
  checkpoint: z.int(),
  files: ["text/plain"],
  run: async ({ pages }, { checkpoint = 0, progress, store }) => {
    // After a crash, another attempt goes on from the last checkpoint
    for (let page = checkpoint; page < pages; page++) await progress((100 * (page + 1)) / pages, page + 1)
    await store("A mill is a thousandth of a dollar.\n".repeat(pages), { contentType: "text/plain" })
    return { pages }
  }
})

export const start = async ({ store = "memory:", port = 8787 } = {}) => {
  const millrace = await createMillrace({ store, operations: [greet, divide, print] })
  const app = express()
  app.use(millrace.handler)
  app.post("/sign-up/:email", async (request, response) => {
    const account = await millrace.accounts.open({ email: request.params.email, verified: true }) // 200 credits
    const { key } = await millrace.keys.issue(account)
    response.json({ account, key })
  })
  const server = app.listen(port, "127.0.0.1")
  await new Promise((resolve) => server.once("listening", resolve))
  const stop = () => new Promise((resolve) => server.close(resolve)).then(millrace.close)
  return { url: `http://127.0.0.1:${server.address().port}`, millrace, stop }
}

if (import.meta.main) console.log(`curl -X POST ${(await start()).url}/sign-up/ada@example.com`)
