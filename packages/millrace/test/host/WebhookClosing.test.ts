/** A host that closes while it delivers, over real sockets: what a receiver is told is finished, or told again by the next host. */
import { mkdtempSync, rmSync } from "node:fs"
import type { ServerResponse } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { createMillrace, type Host } from "../../src/index.ts"
import { closeReceivers, type Got, receiver } from "./WebhookReceiver.ts"

let folder: string
let store: string
let host: Host
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "millrace-closing-"))
  store = `sqlite:${folder}/millrace.db`
  host = await createMillrace({ store, operations: [], webhooks: { allowPrivate: true, deliver: false }, log: {} })
})
afterAll(async () => {
  await host.close()
  closeReceivers()
  rmSync(folder, { recursive: true, force: true })
})

describe("a host that closes", () => {
  /** Delivers from a process that others relieve soon. */
  const deliverer = (drain: number) => createMillrace({ store, operations: [], webhooks: { allowPrivate: true, ttl: 900, drain }, log: {} })
  /** Its runtime takes no more work once it shuts down. */
  const isClosing = (closing: Host) =>
    closing.webhooks.list().then(
      () => false,
      () => true
    )
  /** A receiver that answers, except for the first attempt to tell of one account. */
  const patient = async (held: string) => {
    let secret = ""
    const responses: Array<ServerResponse> = []
    const to = await receiver(
      () => secret,
      (response, { body }, time) =>
        void (body.data["reference"] === held && time === 1 ? responses.push(response) : response.writeHead(204).end())
    )
    const added = await host.webhooks.add({ url: to.url, on: ["account.opened"] })
    secret = added.secret
    return { ...to, responses, webhook: added.webhook }
  }
  /** How often each account was told of. */
  const counts = (got: ReadonlyArray<Got>) =>
    Object.fromEntries([...Map.groupBy(got, ({ body }) => String(body.data["reference"]))].map(([user, all]) => [user, all.length]))

  it("waits for the answer to what it has sent; what happens meanwhile is told by the next", async () => {
    const { got, refused, responses, webhook } = await patient("closing-1")
    const first = await deliverer(30_000)
    await host.accounts.open({ id: "closing-1" })
    await expect.poll(() => responses.length, { timeout: 10_000, interval: 5 }).toBe(1)
    let closed = false
    const closing = first.close().then(() => {
      closed = true
    })
    await expect.poll(() => isClosing(first), { timeout: 10_000, interval: 5 }).toBe(true)
    const others = ["closing-2", "closing-3", "closing-4"]
    for (const id of others) await host.accounts.open({ id })
    expect([closed, responses[0]?.closed]).toEqual([false, false])
    responses[0]?.writeHead(204).end()
    await closing

    const next = await deliverer(0)
    await expect.poll(() => Object.keys(counts(got)).sort(), { timeout: 10_000 }).toEqual(["closing-1", ...others])
    await expect.poll(async () => (await host.webhooks.show(webhook)).waiting, { timeout: 10_000 }).toBe(0)
    await next.close()
    expect(counts(got)).toEqual({ "closing-1": 1, "closing-2": 1, "closing-3": 1, "closing-4": 1 })
    expect([refused, await host.webhooks.dead(webhook)]).toEqual([[], []])
    await host.webhooks.remove(webhook)
  }, 30_000)

  it("cuts off what is not answered within its patience, and the next sends it again", async () => {
    const { got, responses, webhook } = await patient("late-1")
    const first = await deliverer(1)
    await host.accounts.open({ id: "late-1" })
    await expect.poll(() => responses.length, { timeout: 10_000, interval: 5 }).toBe(1)
    await first.close()
    await expect.poll(() => responses[0]?.closed, { timeout: 10_000 }).toBe(true)
    // An attempt that failed by itself would be counted, and repeated after a pause
    expect(await host.webhooks.deliveries(webhook)).toMatchObject([{ name: "account.opened", attempts: 0 }])

    const next = await deliverer(0)
    await expect.poll(() => got.length, { timeout: 10_000 }).toBe(2)
    await expect.poll(async () => (await host.webhooks.show(webhook)).waiting, { timeout: 10_000 }).toBe(0)
    await next.close()
    expect(counts(got)).toEqual({ "late-1": 2 })
    expect(got[1]).toEqual(got[0])
    expect(await host.webhooks.dead(webhook)).toEqual([])
    await host.webhooks.remove(webhook)
  }, 30_000)
})
