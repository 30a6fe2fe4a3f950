/** A server without the settings of mail, text messages and proxies: it listens for calls alone, and says so to who asks for more. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs"
import { expect, test } from "vitest"
import { DOMAIN } from "./Mail.ts"
import { balanceOf, call, newStore, openAccount, problemOf, type Server, serve, UNLIMITED } from "./Server.ts"
import { bring, NUMBER, SETTINGS as SMS, twilioCall } from "./TextMessages.ts"

const LISTENING = "0A"

/** The TCP ports on which a process listens, as Linux tells them. */
const portsOf = ({ child: { pid } }: Server): ReadonlyArray<number> => {
  const links = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`)
    } catch {
      // Closed meanwhile
      return ""
    }
  })
  const inodes = new Set(links.flatMap((link) => /^socket:\[(?<inode>\d+)\]$/u.exec(link)?.groups?.["inode"] ?? []))
  return ["tcp", "tcp6"]
    .flatMap((table) => readFileSync(`/proc/${pid}/net/${table}`, "utf8").split("\n").slice(1))
    .map((line) => line.trim().split(/\s+/u))
    .filter(([, , , state, , , , , , inode = ""]) => state === LISTENING && inodes.has(inode))
    .map(([, local = ""]) => Number.parseInt(local.split(":")[1] ?? "", 16))
    .sort((one, other) => one - other)
}

const onLinux = process.platform === "linux"

test("a server without their settings serves neither mail nor text messages nor proxies, and charges nothing for asking", {
  timeout: 60_000
}, async () => {
  const { url } = newStore()
  const { account, key } = await openAccount(url, 100)
  const server = await serve(["--store", url], { env: UNLIMITED })
  expect(Object.keys(JSON.parse(server.stdout.split("\n", 1)[0] ?? ""))).toEqual(["listening"])
  if (onLinux) expect(portsOf(server)).toEqual([server.port])

  const inbox = "/temp-mail/inboxes/inbox_01JY6W5V8X3M4N7P9Q2R5S8T1V"
  const message = `${inbox}/messages/msg_5f2b1c9e0a7d4e83b6c1f09a2d`
  const wait = { source: "sms", identifier: "example", phone_number: NUMBER, timeout: 15 }
  const rows: ReadonlyArray<readonly [method: string, path: string, body?: unknown]> = [
    ["POST", "/temp-mail/inboxes", {}],
    ["GET", inbox],
    ["GET", `${inbox}/messages`],
    ["GET", message],
    ["GET", `${message}/raw`],
    ["GET", `${message}/attachments/1`],
    ["POST", `${inbox}/rotate`],
    ["DELETE", inbox],
    ["POST", "/verify/wait", wait],
    ["GET", "/proxy/locations"],
    ["POST", "/proxy/sessions", {}]
  ]
  for (const [method, path, body] of rows) {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const answer = await call(`${server.url}/api/v1${path}`, { method, key, ...sent })
    expect([method, path, answer.status, problemOf(answer).code]).toEqual([method, path, 503, "upstream_not_configured"])
  }
  expect((await bring(server, twilioCall("SM1", "482913 is your Example code"))).status).toBe(404)
  expect(await balanceOf(url, account)).toMatchObject({ available: 100, held: 0 })
  expect((await server.stop()).code).toBe(0)
})

test.skipIf(!onLinux)("a server with all their settings listens for each, and for nothing else", { timeout: 60_000 }, async () => {
  const { url } = newStore()
  const mail = ["--mail-domain", DOMAIN, "--smtp", "127.0.0.1:0"]
  const proxy = ["--proxy", "127.0.0.1:0", "--socks", "127.0.0.1:0", "--proxy-country", "DE"]
  const server = await serve(["--store", url, ...mail, ...SMS, ...proxy], { env: UNLIMITED })
  expect(portsOf(server)).toHaveLength(4)
  expect(portsOf(server)).toEqual(expect.arrayContaining([server.port, Number(server.smtp?.split(":").at(-1))]))
  expect((await bring(server, twilioCall("SM1", "482913 is your Example code"))).status).toBe(200)
  expect((await server.stop()).code).toBe(0)
})
