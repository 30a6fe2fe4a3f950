/** What a fresh project runs with the packed packages: an operation, an account, a charge. */
import { createMillrace, operation } from "millrace"
import { z } from "zod"

const greet = operation("greeting.write", {
  summary: "Write a greeting",
  price: 1.5,
  route: { method: "GET", path: "/greeting/:name", params: z.object({ name: z.string() }) },
  success: z.object({ greeting: z.string() }),
  run: async ({ name }) => ({ greeting: `Hello, ${name}!` })
})

const millrace = await createMillrace({ store: "sqlite:./data/millrace.db", operations: [greet] })
const account = await millrace.accounts.open({ email: `ada+${process.version}@example.com`, verified: true })
const { balance, data } = await millrace.run(greet, { name: "Ada" }, { account })
await millrace.close()
const greeting: string = data.greeting
if (greeting !== "Hello, Ada!" || balance !== 198.5) throw new Error(`${greeting} ${balance}`)
console.log(`${process.version}: ${greeting}`)
