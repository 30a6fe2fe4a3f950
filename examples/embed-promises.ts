/**
 * A plain `node:http` server that bills its own work in code, with promises: what `embed.ts` does with Effect.
 *
 *   npm run embed-promises -w examples
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import { createMillrace, MillraceError, operation } from "millrace"
import { z } from "zod"

/** This host's operation: returns a text in capitals. */
const shout = operation("text.shout", {
  summary: "Shout a text",
  price: 2,
  route: { method: "POST", path: "/shout", body: z.object({ text: z.string().min(1).max(1_000) }) },
  success: z.object({ text: z.string() }),
  run: ({ text }) => ({ text: text.toUpperCase() })
})

const STATUS: Readonly<Record<string, number>> = { unauthorized: 401, insufficient_credits: 402, invalid_input: 422 }

/** Serves `POST /shout` on a free local port until `stop`. Stores its data in `folder`. */
export const start = async (folder: string, masterKey: string) => {
  const millrace = await createMillrace({ store: `sqlite:${folder}/log.db`, masterKey, log: {}, operations: [shout] })
  const server = createServer(async (request, response) => {
    const json = (status: number, body: object, headers = {}) =>
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body))
    try {
      const { account } = await millrace.keys.authenticate(request.headers.authorization?.replace(/^Bearer /u, ""))
      const { balance, data } = await millrace.run(shout, JSON.parse(await text(request)), { account })
      json(200, data, { "x-balance": String(balance) })
    } catch (error) {
      const code = error instanceof MillraceError ? error.code : "internal_error"
      json(STATUS[code] ?? 503, { error: code })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/shout`,
    /** Opens an account with its sign-up credits, and issues a key for it. */
    signUp: async (email: string) => {
      const account = await millrace.accounts.open({ email, verified: true })
      return { account, key: (await millrace.keys.issue(account)).key }
    },
    stop: async () => {
      await new Promise((resolve) => server.close(resolve))
      await millrace.close()
    }
  }
}

if (import.meta.main) {
  const { mkdtempSync } = await import("node:fs")
  const { tmpdir } = await import("node:os")
  const { randomBytes } = await import("node:crypto")
  const host = await start(mkdtempSync(`${tmpdir()}/millrace-embed-`), randomBytes(32).toString("hex"))
  const { key } = await host.signUp("ada@example.com")
  console.log(`curl -i ${host.url} -H 'Authorization: Bearer ${key}' -d '{"text":"hello"}'`)
}
