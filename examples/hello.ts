import { createMillrace, operation } from "millrace"
import { z } from "zod"

const greet = operation("greeting.write", {
  summary: "Write a greeting",
  price: 1.5, // credits a call; 1 credit is $0.001
  route: { method: "GET", path: "/greeting/:name", params: z.object({ name: z.string() }) },
  success: z.object({ greeting: z.string() }),
  run: async ({ name }) => ({ greeting: `Hello, ${name}!` })
})

const millrace = await createMillrace({ store: "memory:", operations: [greet] })

const account = await millrace.accounts.open({ id: "user-7", email: "ada@example.com", verified: true }) // 200 credits
const first = await millrace.run(greet, { name: "Ada" }, { account, idempotencyKey: "greeting-1" })
const again = await millrace.run(greet, { name: "Ada" }, { account, idempotencyKey: "greeting-1" })
console.log(first.data.greeting, first.charged, first.balance, "replayed:", again.replayed, again.charged)
await millrace.close()
