/** A server that is told to stop while mail comes in, callers wait and tunnels are live: each ends as the pages say, and it ends with 0. */
import { once } from "node:events"
import { expect, test } from "vitest"
import { type Change, changed } from "./Changes.ts"
import { asking, DOMAIN, dataOf, INBOXES, Messages, SmtpClient } from "./Mail.ts"
import { byConnect, bySocks, echoed, nodeOf, opened, Session, startEcho, TO_LOOPBACK } from "./ProxyClient.ts"
import { auditOf, balanceOf, call, newStore, openAccount, problemOf, readLog, serve, UNLIMITED } from "./Server.ts"
import { NUMBER, SETTINGS as SMS } from "./TextMessages.ts"

/** A tenth of the time that calls get, and less of that for mail: nobody here needs more. */
const SOON: ReadonlyArray<Change> = [
  ["WebHandler.ts", 'drainWithin = "30 seconds"', 'drainWithin = "3 seconds"'],
  ["mail/SmtpServer.ts", 'limits.drain ?? "10 seconds"', 'limits.drain ?? "2 seconds"']
]

test("mail in DATA, waits and tunnels end as they should when the server stops, and nobody pays for what they did not get", {
  timeout: 120_000
}, async () => {
  const { url } = newStore()
  const { account, key } = await openAccount(url, 100)
  const mail = ["--mail-domain", DOMAIN, "--smtp", "127.0.0.1:0", "--dns-servers", "127.0.0.1:1"]
  const proxy = ["--proxy", "127.0.0.1:0", "--socks", "127.0.0.1:0", "--proxy-exits", "127.0.0.1", "--proxy-country", "DE"]
  const server = await serve(["--store", url, ...mail, ...SMS, ...proxy], changed([TO_LOOPBACK, ...SOON], { env: UNLIMITED }))
  const { create, get } = asking(server, key)
  const { address, inbox_id } = await create()

  const session = dataOf(Session, await call(`${server.url}/api/v1/proxy/sessions`, { method: "POST", key, body: "{}" }))
  const echo = await startEcho()
  const { http, socks } = nodeOf(server)
  const tunnels = [opened(await byConnect(http, session, echo)), opened(await bySocks(socks, session, echo))]
  for (const tunnel of tunnels) expect(await echoed(tunnel, "hello")).toBe("hello")

  const [sending, stuck, idle] = await Promise.all([SmtpClient.open(server), SmtpClient.open(server), SmtpClient.open(server)])
  for (const client of [sending, stuck]) expect(await client.begin(address)).toBe("354")
  stuck.write("Subject: Never ends\r\n\r\n")

  const body = JSON.stringify({ source: "sms", identifier: "example", phone_number: NUMBER, timeout: 60 })
  const verifying = call(`${server.url}/api/v1/verify/wait`, { method: "POST", key, body })
  const listing = get(Messages, `${INBOXES}/${inbox_id}/messages`, { headers: { prefer: "wait=60" } })
  // Both wait: their prices are held
  while ((await balanceOf(url, account)).held < 5.1) await new Promise((resolve) => setTimeout(resolve, 50))

  const closed = tunnels.map((tunnel) => once(tunnel, "close"))
  const began = Date.now()
  const ended = server.stop()
  await Promise.all(closed)
  // A message that is on its way is taken, and a caller who waits for it gets it
  expect(await sending.ask("Subject: In time\r\n\r\nHello\r\n.")).toBe("250")
  expect((await listing).messages).toMatchObject([{ subject: "In time" }])
  const verified = await verifying
  expect([verified.status, problemOf(verified).code]).toEqual([503, "shutting_down"])
  expect(await idle.answer()).toMatch(/^421 /u)
  expect(await stuck.answer()).toBeUndefined()
  expect((await ended).code).toBe(0)
  // 3 seconds for calls, 2 for mail; a busy machine is slower
  expect(Date.now() - began).toBeGreaterThanOrEqual(5_000)
  expect(Date.now() - began).toBeLessThan(30_000)

  // The inbox, the session and the list
  expect(await balanceOf(url, account)).toMatchObject({ available: 100 - 1 - 2 - 0.1, held: 0, holds: [] })
  const types = (await readLog(url)).map(({ type }) => type)
  expect(types.filter((type) => type === "MessageReceived")).toHaveLength(1)
  expect(types).toContain("ProxyTrafficCounted")
  expect(await auditOf(url)).toMatchObject({ ok: true, problems: [] })
})
