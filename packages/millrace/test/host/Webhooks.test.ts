/** Webhooks of a host, over real sockets: acts of an administrator, receivers that fail in every way, and a process that is killed. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { millrace as command } from "../../../../test/system/InProcess.ts"
import { start } from "../../../event-store-sqlite/test/Processes.ts"
import { createMillrace, type Host } from "../../src/index.ts"
import { closeReceivers, receiver } from "./WebhookReceiver.ts"
import { WORKER } from "./WebhookWorker.ts"

let folder: string
let store: string
let host: Host
const logged: Array<string> = []
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "millrace-webhooks-"))
  store = `sqlite:${folder}/millrace.db`
  const log = (text: string, fields: object) => logged.push(`${text} ${JSON.stringify(fields)}`)
  host = await createMillrace({
    store,
    operations: [],
    webhooks: { allowPrivate: true, deliver: false },
    log: { warn: log, error: log, info: log }
  })
})
afterAll(async () => {
  await host.close()
  closeReceivers()
  rmSync(folder, { recursive: true, force: true })
})

const script = fileURLToPath(new URL("WebhookWorker.ts", import.meta.url))
const worker = () => start(process.execPath, ["--conditions=@millrace/source", script, store])

describe("a receiver that fails", () => {
  it("gets every notice at least once, also from another process after the first was killed", async () => {
    let secret = ""
    const { got, refused, url } = await receiver(
      () => secret,
      (response, { body }, time) => {
        const user = String(body.data["reference"])
        if (user === "user-1" && time <= 2) response.writeHead(500).end()
        else if (user === "user-2" && time === 1) return
        else if (user === "user-3" && time === 1) response.destroy()
        else if (user === "user-4" && time === 1) response.writeHead(503, { "retry-after": "1" }).end()
        else if (user === "user-5" && time === 1) response.writeHead(302, { location: "/elsewhere" }).end()
        else response.writeHead(204).end()
      }
    )
    ;({ secret } = await host.webhooks.add({ url, on: ["account.opened"] }))
    const users = ["user-1", "user-2", "user-3", "user-4", "user-5", "user-6"]
    const first = worker()
    await first.printed("ready", 1)
    for (const id of users.slice(0, 3)) await host.accounts.open({ id })
    await expect.poll(() => got.length, { timeout: 10_000, interval: 5 }).toBeGreaterThan(1)
    first.child.kill("SIGKILL")
    await first.ended
    for (const id of users.slice(3)) await host.accounts.open({ id })
    const second = await createMillrace({ store, operations: [], webhooks: WORKER, log: {} })
    const [webhook] = await host.webhooks.list()
    const waiting = async () => (await host.webhooks.show(webhook?.webhook ?? "")).waiting
    await expect.poll(() => new Set(got.map(({ body }) => body.data["reference"])), { timeout: 15_000 }).toEqual(new Set(users))
    await expect.poll(waiting, { timeout: 15_000 }).toBe(0)
    await second.close()
    const times = users.map((user) => got.filter(({ body }) => body.data["reference"] === user).length)
    for (const [i, least] of [3, 2, 2, 2, 2, 1].entries()) expect(times[i]).toBeGreaterThanOrEqual(least)
    expect(refused).toEqual([])
    expect(await host.webhooks.dead()).toEqual([])
    await host.webhooks.remove(webhook?.webhook ?? "")
  }, 60_000)

  it("is disabled with 410, and the log names neither its address nor a secret", async () => {
    let secret = ""
    const { got, url } = await receiver(
      () => secret,
      (response) => response.writeHead(410).end()
    )
    const added = await host.webhooks.add({ url })
    ;({ secret } = added)
    const delivering = await createMillrace({
      store,
      operations: [],
      webhooks: { allowPrivate: true, ttl: 900 },
      log: { warn: (text, fields) => logged.push(`${text} ${JSON.stringify(fields)}`) }
    })
    try {
      await host.accounts.open({ id: "user-7" })
      const status = async () => (await host.webhooks.show(added.webhook)).status
      await expect.poll(status, { timeout: 10_000 }).toBe("disabled")
      expect(got).toHaveLength(1)
      expect(await host.webhooks.show(added.webhook)).toMatchObject({ reason: "gone", waiting: 1, dead: 0, url })
      const ready = await (await delivering.fetch(new Request("http://localhost/ready"))).json()
      expect(ready).toMatchObject({ status: "ready", webhooks: { leader: true, waiting: 1 } })
    } finally {
      await delivering.close()
    }
    const lines = logged.join("\n")
    expect(lines).toContain("A webhook failed")
    for (const word of ["whsec_", "token", "127.0.0.1"]) expect(lines).not.toContain(word)
    const [delivery] = await host.webhooks.deliveries(added.webhook)
    expect(delivery).toMatchObject({ name: "account.opened", attempts: 1, status: 410, error: "it answered with status 410" })
    await host.webhooks.remove(added.webhook)
    expect(await host.webhooks.list()).toEqual([])
  }, 30_000)
})

describe("the commands", () => {
  const env = { MILLRACE_WEBHOOK_PRIVATE: "yes" }
  const ask = async (...args: ReadonlyArray<string>) => {
    const { code, stderr, stdout } = await command(["webhooks", ...args, "--store", store], { env })
    expect([code, stderr]).toEqual([0, ""])
    return JSON.parse(stdout)
  }
  const refused = async (args: ReadonlyArray<string>, options = { env }) => {
    const { code, stderr } = await command(["webhooks", ...args, "--store", store], options)
    expect(code).toBe(1)
    return JSON.parse(stderr).error.code
  }

  it("add, show, try, change, rotate, disable, enable and remove a webhook", async () => {
    let secret = ""
    const { got, url } = await receiver(
      () => secret,
      (response) => response.writeHead(200).end()
    )
    const account = await host.accounts.open({ id: "user-8" })
    const added = await ask("add", url, "--on", "job.ended,charge.refunded", "--account", "user-8", "--label", "mine")
    ;({ secret } = added)
    expect(added).toEqual({ webhook: expect.stringMatching(/^wh_[0-9A-Z]{26}$/u), secret: expect.stringMatching(/^whsec_/u) })
    const id = added.webhook
    const shown = { webhook: id, url, label: "mine", account, status: "enabled", reason: null, addedAt: expect.any(String) }
    expect(await ask("list")).toEqual([{ ...shown, on: "job.ended charge.refunded" }])
    expect(await ask("test", id)).toEqual({ delivered: true, status: 200, error: null })
    expect(got[0]?.body).toMatchObject({ type: "webhook.test", data: { webhook: id } })
    expect(await ask("change", id, "--on", "all")).toMatchObject({ ...shown, on: null, waiting: 0, dead: 0, behind: false })
    ;({ secret } = await ask("rotate", id, "--overlap", "1"))
    expect(secret).not.toBe(added.secret)
    expect(await ask("test", id)).toMatchObject({ delivered: true })
    expect(await ask("disable", id)).toMatchObject({ status: "disabled", reason: "host" })
    expect(await ask("enable", id, "--skip")).toMatchObject({ status: "enabled", reason: null })
    expect(await ask("deliveries", id)).toEqual([])
    expect(await ask("dead")).toEqual([])
    expect(await ask("resend", "--all", id)).toEqual({ resent: 0 })
    expect(await refused(["resend", `${id}/1.job.ended`])).toBe("DeliveryNotFound")
    expect(await refused(["resend"])).toBe("CommandFailed")
    expect(await ask("remove", id)).toEqual({ webhook: id, removed: true })
    expect(await refused(["show", id])).toBe("WebhookNotFound")
  })

  it("refuse http and unknown notices", async () => {
    expect(await refused(["add", "http://127.0.0.1"], { env: { MILLRACE_WEBHOOK_PRIVATE: "no" } })).toBe("InvalidWebhookUrl")
    expect(await refused(["add", "https://example.com", "--on", "job.begun"])).toBe("UnknownNotice")
  })

  it("leave a log that the audit accepts", async () => {
    expect(await host.audit()).toMatchObject({ ok: true, problems: [] })
  })
})
