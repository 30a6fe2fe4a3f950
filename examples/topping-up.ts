/** Granting and topping up: `docs/topping-up.md` explains each step. */
import { createMillrace } from "millrace"

const millrace = await createMillrace({ store: "memory:", operations: [] })
const ada = await millrace.accounts.open({ id: "user-7" })

// A promotion that ends with the year
const expiresAt = new Date(Date.UTC(new Date().getUTCFullYear() + 1, 0, 1))
await millrace.credits.grant(ada, { amount: 100, source: "promotion", expiresAt })

// A top-up. A payment provider repeats its notices: the same payment grants once
const payment = { amount: 1_000, source: "topup", paymentRef: "pay_1" } as const
const { lot } = await millrace.credits.grant(ada, payment)
const { balance } = await millrace.credits.grant(ada, payment)
console.log("after the top-up:", balance)

// 50 credits now and each month. What is left of them expires when the next ones come
const { grant } = await millrace.credits.grant(ada, { amount: 50, source: "promotion", every: "month" })

// Say when the balance is low
const low = Promise.withResolvers<string>()
await millrace.on("credits.low", ({ balance, reference }) => low.resolve(`${reference} has only ${balance} left`))
await millrace.accounts.threshold(ada, 200)

// The payment was disputed: its credits go, and the balance falls below the threshold
await millrace.credits.clawBack(lot, { reason: "chargeback" })
console.log(await low.promise)

await millrace.credits.stop(ada, grant)
console.log("recurring grants:", (await millrace.credits.recurring(ada)).length)
await millrace.close()
