/** The operations that come with Millrace, beside a host's own: `npm run standard -w examples`. */
import { createMillrace, standard } from "millrace"

const millrace = await createMillrace({ store: "memory:", standard: ["bin.lookup", "topics"] })
const account = await millrace.accounts.open({ email: "ada@example.com", verified: true }) // 200 credits

const { data, charged } = await millrace.run(standard.bin.lookup, { bin: "45717360" }, { account })
console.log(data.scheme, charged)
await millrace.close()
