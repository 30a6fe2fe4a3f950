/** What a host without Effect reads of its store, and the prices of its operations, over restarts on one file. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { z } from "zod"
import { createMillrace, type Host, operation, UpstreamUnavailable } from "../../src/index.ts"

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "millrace-host-"))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const greet = (price: number) =>
  operation("greeting.write", {
    summary: "Write a greeting",
    price,
    route: { method: "GET", path: "/greeting/:name", params: z.object({ name: z.string() }) },
    success: z.object({ greeting: z.string() }),
    run: ({ name }) => {
      if (name === "down") throw new UpstreamUnavailable("the greeter is out of words")
      return { greeting: `Hello, ${name}!` }
    }
  })

const withHost = async <A>(
  name: string,
  price: number,
  use: (host: Host, operation: ReturnType<typeof greet>) => Promise<A>
): Promise<A> => {
  const own = greet(price)
  const host = await createMillrace({ store: `sqlite:${join(folder, name)}/millrace.db`, log: {}, operations: [own] })
  try {
    return await use(host, own)
  } finally {
    await host.close()
  }
}

describe("the price of an operation", () => {
  const priceOf = async (host: Host) => (await host.prices.list({ at: new Date() }))[0]?.prices

  it("is that of the code until one is published over it, and again once the code changes", async () => {
    await withHost("prices", 1.5, async (host) => {
      expect(await priceOf(host)).toEqual({ "greeting.write": 1.5 })
      expect(await host.prices.publish({ "greeting.write": 9 }, { by: "ada" })).toMatchObject({
        published: true,
        changes: [{ operation: "greeting.write", from: 1.5, to: 9 }]
      })
    })
    await withHost("prices", 1.5, async (host) => expect(await priceOf(host)).toEqual({ "greeting.write": 9 }))
    await withHost("prices", 2, async (host) => expect(await priceOf(host)).toEqual({ "greeting.write": 2 }))
    await withHost("prices", 2, async (host) => expect(await host.prices.list()).toHaveLength(3))
  })
})

describe("a store", () => {
  it("tells what a call held and why it failed, what is held, and what happened to an account", async () => {
    await withHost("store", 1.5, async (host, own) => {
      const account = await host.accounts.open({ id: "user-7" })
      await host.credits.grant("user-7", { amount: 10, source: "promotion", by: "ada", reason: "welcome" })
      const { requestId } = await host.run(own, { name: "Ada" }, { account })
      await expect(host.run(own, { name: "down" }, { account, requestId: "request-down" })).rejects.toMatchObject({
        code: "upstream_unavailable"
      })

      expect(await host.charges.show(requestId)).toMatchObject([
        { account, operation: "greeting.write", outcome: "charged", price: { unitPrice: 1.5 }, ends: [{ amount: 1.5 }] }
      ])
      const [failed] = await host.charges.show("request-down")
      expect(failed).toMatchObject({
        outcome: "refunded",
        ends: [{ reason: "service_error", failure: expect.stringContaining("out of words") }]
      })
      await expect(host.charges.show("no-such-request")).rejects.toThrow("no call of request no-such-request held any credits")
      expect(await host.holds.list()).toEqual([])
      expect((await host.history("user-7")).map(({ type }) => type)).toEqual([
        ...["AccountOpened", "CreditsGranted", "CreditReserved", "OperationSucceeded", "CreditReserved", "Refunded"]
      ])
      expect((await host.history("user-7"))[1]).toMatchObject({ metadata: { actor: "ada", reason: "welcome" } })
    })
  })

  it("is audited, exported as a journal, and backed up while it is served", async () => {
    await withHost("store", 1.5, async (host) => {
      const first = await host.audit()
      expect(first).toMatchObject({ ok: true, accounts: 1, problems: [] })
      expect(await host.audit({ against: first.head })).toMatchObject({ ok: true })
      let journal = ""
      for await (const text of host.journal("hledger")) journal += text
      expect(journal).toContain("income:operations:greeting.write")
      const to = join(folder, "backup")
      expect(await host.backup({ to })).toMatchObject({ backup: to, ok: true, masterKey: false })
      expect(JSON.parse(readFileSync(join(to, "manifest.json"), "utf8"))).toMatchObject({ problems: 0 })
    })
  })

  it("is backed up with the master key that its host gave", async () => {
    const store = `sqlite:${join(folder, "keyed")}/millrace.db`
    const host = await createMillrace({ store, masterKey: "5a".repeat(32), log: {}, operations: [] })
    expect(await host.backup({ to: join(folder, "keyed-backup"), withMasterKey: true })).toMatchObject({ ok: true, masterKey: true })
    await host.close()
    expect(readFileSync(join(folder, "keyed-backup", "keys", "master.key"), "utf8").trim()).toBe("5a".repeat(32))
  })

  it("has no address of an erased account, which the register names", async () => {
    await withHost("store", 1.5, async (host) => {
      const account = await host.accounts.open({ id: "user-8", email: "canary@example.com" })
      const { key } = await host.keys.issue(account)
      expect(await host.accounts.erase("user-8", { by: "ada", reason: "ticket 12" })).toMatchObject({
        account,
        destroyed: [`account:${account}`]
      })
      expect(await host.accounts.show(account)).toMatchObject({ status: "closed", email: null, id: null })
      await expect(host.keys.authenticate(key)).rejects.toMatchObject({ code: "unauthorized" })
      expect(existsSync(join(folder, "store", "erasures.jsonl"))).toBe(true)
      expect((await host.accounts.list()).map(({ account }) => account)).toContain(account)
    })
  })

  it("cannot be opened without its master key, and says so", async () => {
    const store = `sqlite:${join(folder, "store")}/millrace.db`
    await expect(createMillrace({ store, masterKey: "0".repeat(64), log: {}, operations: [] })).rejects.toMatchObject({
      code: "wrong_master_key",
      message: expect.stringContaining("The master key is not that of the store")
    })
    await expect(createMillrace({ store: "mysql://nowhere", operations: [] })).rejects.toThrow(/unknown store "mysql:\/\/nowhere"/u)
    await expect(createMillrace({ store, masterKey: "short", operations: [] })).rejects.toMatchObject({ code: "malformed_master_key" })
  })
})
