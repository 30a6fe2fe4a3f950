import { operation } from "millrace"
import { z } from "zod"

/** Each operation is priced, documented at /docs, and in the catalog. If its work throws, the call costs nothing. */
export const greet = operation("greeting.write", {
  summary: "Write a greeting",
  price: 1.5, // credits a call; 1 credit is $0.001
  route: { method: "GET", path: "/greeting/:name", params: z.object({ name: z.string().max(100) }) },
  success: z.object({ greeting: z.string() }),
  run: async ({ name }) => ({ greeting: `Hello, ${name}!` })
})
