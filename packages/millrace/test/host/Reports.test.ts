/** What a host without Effect reads of its store, and the prices of its operations, over restarts on one file. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { lineOf } from "@millrace/audit"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { SqliteEventStore } from "@millrace/event-store-sqlite"
import Database from "better-sqlite3"
import { Effect, Stream } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { z } from "zod"
import { type AuditOptions, type AuditReport, createMillrace, type Host, job, operation, UpstreamUnavailable } from "../../src/index.ts"

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

  it("is published for operations that the host knows, or that are said to be new", async () => {
    await withHost("new prices", 1.5, async (host) => {
      await expect(host.prices.publish({ "greeting.wirte": 9 })).rejects.toMatchObject({
        code: "refused",
        message: expect.stringMatching(/^No operation here is called greeting\.wirte.* the option newOperations/u)
      })
      expect(await priceOf(host)).toEqual({ "greeting.write": 1.5 })
      await host.prices.publish({ "greeting.read": 9 }, { newOperations: true })
      expect(await priceOf(host)).toEqual({ "greeting.write": 1.5, "greeting.read": 9 })
      // It has a price by now
      expect(await host.prices.publish({ "greeting.read": 8 })).toMatchObject({ published: true })
    })
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
      await expect(host.charges.show("no-such-request")).rejects.toThrow("No call of request no-such-request held any credits")
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

  it("is backed up with the files that its host keeps elsewhere", async () => {
    const blobs = join(folder, "files-elsewhere")
    const print = job("report.print", {
      summary: "Print a report",
      price: 1,
      route: { method: "POST", path: "/reports", body: z.object({}) },
      result: z.object({}),
      files: ["text/plain"],
      run: async (_, { store }) => {
        await store(Buffer.from("A report"), { contentType: "text/plain" })
        return {}
      }
    })
    const host = await createMillrace({ store: `sqlite:${join(folder, "filed")}/millrace.db`, blobs, log: {}, operations: [print] })
    const account = await host.accounts.open({ email: "ada@example.com", verified: true })
    const { data } = await host.run(print, {}, { account })
    expect(await host.jobs.wait(print, data.id, { account })).toMatchObject({ status: "succeeded" })
    const to = join(folder, "filed-backup")
    expect(await host.backup({ to })).toMatchObject({ ok: true })
    await host.close()
    expect(readdirSync(join(to, "blobs"))).toEqual(readdirSync(blobs))
    expect(readdirSync(blobs)).toHaveLength(1)
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
    await expect(createMillrace({ store: "mysql://nowhere", operations: [] })).rejects.toThrow(/^Unknown store, by the option store/u)
    await expect(createMillrace({ store, masterKey: "short", operations: [] })).rejects.toMatchObject({ code: "malformed_master_key" })
  })
})

/** The events of a log, in their order. */
const eventsOf = (filename: string) =>
  Effect.runPromise(
    EventStore.EventStore.use(({ readAll }) => Stream.runCollect(readAll(EventStore.start))).pipe(
      Effect.provide(SqliteEventStore.layer({ filename, readOnly: true }))
    )
  )

/** Writes the last event of a stream anew, with other data and the hash that fits. */
const rewrite = async (filename: string, stream: string, change: (data: string) => string): Promise<void> => {
  const events = (await eventsOf(filename)).filter((event) => event.stream === stream)
  const [before, last] = events.slice(-2)
  if (before === undefined || last === undefined) throw new Error(`${stream} has no two events`)
  const { at: _, ...metadata } = HashChain.metadataOf(last)
  const changed = { ...last, data: change(last.data) }
  const sealed = HashChain.seal(
    ...([HashChain.hashOf(before), last.stream, last.revision, changed, HashChain.atOf(last), JSON.stringify(metadata)] as const)
  )
  const db = new Database(filename)
  db.exec("DROP TRIGGER events_are_never_changed")
  db.prepare("UPDATE events SET data = ?, metadata = ? WHERE position = ?").run(sealed.data, sealed.metadata, Number(last.position))
  db.close()
}

/** The report of an audit, and its list of streams. */
const listed = async (host: Host, options: AuditOptions = {}) => {
  const lists: Array<string> = []
  const report = await host.audit({
    ...options,
    writeStreams: async (list) => {
      await Promise.resolve()
      lists.push(list)
    }
  })
  expect(lists).toHaveLength(1)
  return { report, streams: lists.join() }
}

describe("an audit against the head of an earlier one", () => {
  const named = ({ problems }: AuditReport) =>
    problems.filter(({ rule }) => rule === "stream-extends-head").map(({ detail, means, stream }) => [stream, means.account, detail])

  it("names the account of a rewrite: exactly by the list of streams, and by the head alone by its bucket", async () => {
    await withHost("rewritten", 1.5, async (host) => {
      const accounts = [await host.accounts.open({ id: "ada" }), await host.accounts.open({ id: "grace" })]
      for (const account of accounts) await host.credits.grant(account, { amount: 10, source: "promotion" })
      const { report: kept, streams } = await listed(host)
      expect(await host.audit({ against: kept, streams })).toMatchObject({ ok: true, head: kept.head })

      const [ada = ""] = accounts
      await rewrite(join(folder, "rewritten", "millrace.db"), StreamName.make("account", ada), (data) => data.replaceAll("10000", "20000"))
      expect(await host.audit()).toMatchObject({ ok: true })
      const stream = `account-${ada}`
      const exact = await host.audit({ against: kept.head, streams })
      expect(named(exact)).toEqual([[stream, ada, expect.stringContaining("they were written anew: the last hash differs")]])
      const byBucket = await host.audit({ against: kept })
      expect(named(byBucket)).toEqual([[stream, ada, expect.stringContaining("differs, and has this stream alone")]])
    })
  })

  it("reads an export, and takes lists of streams for it too", async () => {
    await withHost("exported", 1.5, async (host) => {
      await host.accounts.open({ id: "ada" })
      const file = join(folder, "export.jsonl.gz")
      const lines = (await eventsOf(join(folder, "exported", "millrace.db"))).map((event) => `${lineOf(event)}\n`)
      writeFileSync(file, gzipSync(lines.join("")))
      await host.accounts.open({ id: "grace" })
      const { report, streams } = await listed(host, { events: file })
      expect(report.events).toBe(lines.length)
      expect(await host.audit({ against: report, streams })).toMatchObject({ ok: true })
      await expect(host.audit({ events: join(folder, "none.jsonl") })).rejects.toThrow(/none\.jsonl.*ENOENT/u)
    })
  })

  it("refuses what is no head and no list of its streams, in words of the option, and rejects with what a host throws", async () => {
    await withHost("refused", 1.5, async (host) => {
      const { report, streams } = await listed(host)
      const { head } = report
      await expect(host.audit({ against: {} as typeof head })).rejects.toThrow("The option against holds no head of an audit: ")
      await expect(host.audit({ streams })).rejects.toThrow(
        "The option streams is read beside the head that proves it: name that by the option against"
      )
      await expect(host.audit({ against: head, streams: "no list" })).rejects.toThrow(
        "The option streams is no list of streams: see the option writeStreams"
      )
      const other = streams.replace("\n0\n", "\n1\n")
      await expect(host.audit({ against: head, streams: other })).rejects.toMatchObject({
        code: "refused",
        message: expect.stringContaining("its SHA-256 is not the head's digest")
      })
      const full = new Error("the disk is full")
      await expect(host.audit({ writeStreams: () => Promise.reject(full) })).rejects.toBe(full)
    })
  })
})
