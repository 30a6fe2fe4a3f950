/** The receiver of the guide gets what a host posts, once. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { createMillrace } from "millrace"
import { expect, test } from "vitest"
import { start } from "../../packages/event-store-sqlite/test/Processes.ts"

const path = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url))

test("docs/webhooks.md shows examples/webhook-receiver.js", () => {
  const shown = /```js\n(?<code>\/\/ Receives[\s\S]*?)```/u.exec(readFileSync(path("docs/webhooks.md"), "utf8"))?.groups?.["code"]
  expect(shown).toBe(readFileSync(path("examples/webhook-receiver.js"), "utf8"))
})

test("the receiver takes what is signed with its secret, and nothing else", async () => {
  const millrace = await createMillrace({ store: "memory:", operations: [], webhooks: { allowPrivate: true }, log: {} })
  // The receiver needs the secret, and the webhook the receiver's port
  const { secret, webhook } = await millrace.webhooks.add({ url: "http://127.0.0.1:9", on: ["account.opened", "credits.granted"] })
  const receiver = start("/usr/bin/env", [`WEBHOOK_SECRET=${secret}`, "PORT=0", process.execPath, path("examples/webhook-receiver.js")])
  try {
    await receiver.printed("Listening", 1)
    const url = `http://127.0.0.1:${receiver.lines[0]?.split(" ").at(-1)}`
    await millrace.webhooks.change(webhook, { url })
    expect((await fetch(url, { method: "POST", body: "{}" })).status).toBe(400)
    expect(await millrace.webhooks.test(webhook)).toEqual({ delivered: true, status: 204, error: null })
    const account = await millrace.accounts.open({ id: "user-7", email: "ada@example.com", verified: true })
    await receiver.printed("credits.granted", 1)
    const { lots } = await millrace.balance(account)
    const facts = { account, reference: "user-7", lot: lots[0]?.lot, amount: 200, source: "signup" }
    await receiver.printed("account.opened", 1)
    expect(receiver.lines.slice(1).toSorted()).toEqual([
      `account.opened ${JSON.stringify({ account, reference: "user-7" })}`,
      `credits.granted ${JSON.stringify(facts)}`,
      `webhook.test ${JSON.stringify({ webhook })}`
    ])
  } finally {
    receiver.child.kill()
    await receiver.ended
    await millrace.close()
  }
})
