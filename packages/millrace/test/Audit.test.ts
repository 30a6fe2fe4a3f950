/** `audit` and `journal` for auditors: sentences, heads, lists of streams, exports, rules, and refusals. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { statements } from "@millrace/audit"
import { MasterKey, Vault } from "@millrace/core"
import { SqliteStateStore } from "@millrace/event-store-sqlite"
import Database from "better-sqlite3"
import { Effect, Layer, Redacted, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { millrace } from "../../../test/system/InProcess.ts"
import { Audit, ask, Issued, newStore, openAccount } from "../../../test/system/Server.ts"

const made = async () => {
  const store = newStore()
  const { account } = await openAccount(store.url, 10)
  const at = (...args: ReadonlyArray<string>) => [...args, "--store", store.url]
  return { ...store, account, at, path: (name: string) => join(store.folder, name) }
}
const reportOf = (stdout: string) => Schema.decodeUnknownSync(Audit, { onExcessProperty: "error" })(JSON.parse(stdout))
const refusal = async (args: ReadonlyArray<string>) => {
  const { code, stdout, stderr } = await millrace(args)
  expect([code, stdout]).toEqual([1, ""])
  return JSON.parse(stderr).error.message
}

describe("an audit", () => {
  it("is JSON where it is piped, and sentences by --text, in the money of the host", async () => {
    const { at, url } = await made()
    expect(reportOf((await millrace(at("audit"))).stdout)).toMatchObject({ ok: true, accounts: 1, apiKeys: { issued: 1, revoked: 0 } })
    const { code, stdout } = await millrace(at("audit", "--text"))
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^Checked \d+ events in \d+ streams, from .*All is well: .*\n$/su)])
    const db = new Database(url.slice("sqlite:".length))
    db.exec(`DROP TRIGGER events_are_never_changed; UPDATE events SET data = replace(data, '10000', '20000')`)
    db.close()
    const wrong = await millrace(at("audit", "--text", "--credit-name", "token/tokens", "--credit-value", "0.5 EUR"))
    expect(wrong.code).toBe(1)
    expect(wrong.stdout).toMatch(/Something is wrong: \d+ findings?/u)
    expect(wrong.stdout).toContain("The event says that 20 tokens (10 EUR) were granted. The last proven balance of the account is")
  })

  it("names the account that was cut off, by the head alone and by the list of streams, whose SHA-256 is the digest", async () => {
    const { account, at, path, url } = await made()
    const { stdout } = await millrace(at("audit", "--write-streams", path("streams.txt")))
    writeFileSync(path("head.json"), stdout)
    const against = ["--against", path("head.json")]
    expect((await millrace(at("audit", ...against, "--streams", path("streams.txt")))).code).toBe(0)
    const { buckets: _, ...old } = JSON.parse(stdout).head
    writeFileSync(path("old.json"), JSON.stringify(old))
    expect((await millrace(at("audit", "--against", path("old.json")))).code).toBe(0)

    const db = new Database(url.slice("sqlite:".length))
    db.exec("DROP TRIGGER events_are_never_changed; DROP TRIGGER events_are_never_removed")
    db.exec(
      `DELETE FROM events WHERE position = (SELECT max(position) FROM events WHERE stream = (SELECT stream FROM events WHERE type = 'CreditsGranted' LIMIT 1))`
    )
    db.close()
    for (const more of [[], ["--streams", path("streams.txt")]]) {
      const { code, stdout } = await millrace(at("audit", ...against, ...more))
      const named = reportOf(stdout).problems.filter(({ rule }) => rule === "stream-extends-head")
      expect([code, named.map(({ stream, means }) => [stream, means.account])]).toEqual([1, [[`account-${account}`, account]]])
    }
  })

  it("finds an event that occurs twice in the file, which the store alone does not keep out", async () => {
    const { at, url } = await made()
    const db = new Database(url.slice("sqlite:".length))
    db.exec(`INSERT INTO events SELECT (SELECT max(position) + 1 FROM events), stream, revision, id, type, data, metadata
      FROM events WHERE type = 'CreditsGranted' LIMIT 1`)
    db.close()
    const { code, stdout } = await millrace(at("audit"))
    expect([code, new Set(reportOf(stdout).problems.map(({ rule }) => rule))]).toEqual([
      1,
      new Set(["event-id-is-unique", "revision-follows"])
    ])
  })

  it("refuses a list of streams that is not of the head", async () => {
    const { at, path } = await made()
    const { stdout } = await millrace(at("audit", "--write-streams", path("streams.txt")))
    writeFileSync(path("head.json"), stdout)
    expect(await refusal(at("audit", "--streams", path("streams.txt")))).toMatch(/name that by --against/u)
    const list = readFileSync(path("streams.txt"), "utf8")
    writeFileSync(path("other.txt"), list.replace("\n0\n", "\n1\n"))
    const against = ["--against", path("head.json"), "--streams"]
    expect(await refusal(at("audit", ...against, path("other.txt")))).toMatch(/its SHA-256 is not the head's digest/u)
    expect(await refusal(at("audit", ...against, path("head.json")))).toMatch(/is no list of streams/u)
  })

  it("reads an export without the store, plain or by gzip", async () => {
    const { at, path } = await made()
    const events = await millrace(at("events"))
    writeFileSync(path("export.jsonl"), events.stdout)
    writeFileSync(path("export.jsonl.gz"), gzipSync(events.stdout))
    const { head } = reportOf((await millrace(at("audit"))).stdout)
    for (const name of ["export.jsonl", "export.jsonl.gz"]) {
      const { code, stdout } = await millrace(["audit", "--events", path(name), "--store", "sqlite:/nowhere/at.all"])
      expect([code, reportOf(stdout).head, reportOf(stdout).keys]).toEqual([0, head, null])
    }
    writeFileSync(path("export.jsonl"), events.stdout.split("\n").toSpliced(2, 1).join("\n"))
    const cut = await millrace(["audit", "--events", path("export.jsonl")])
    expect([cut.code, reportOf(cut.stdout).problems]).toEqual([
      1,
      expect.arrayContaining([expect.objectContaining({ line: 3, rule: "position-follows" })])
    ])
    expect(await refusal(["audit", "--events", path("none.jsonl")])).toMatch(/none\.jsonl.*ENOENT/u)
  })

  it("lists its rules, without a store", async () => {
    const args = ["audit", "--rules", "--store", "sqlite:/nowhere/at.all"]
    expect(JSON.parse((await millrace(args)).stdout)).toEqual(statements)
    const { stdout } = await millrace([...args, "--text"])
    expect(stdout).toContain(
      "link-holds\n  The hash of each event covers the event and the hash before it, so no event was changed.\n  Tenet 1:"
    )
  })
})

describe("keys that were destroyed", () => {
  it("are counted alike by doctor and audit: of erased accounts, of purged jobs, and others", async () => {
    const { account, at, path } = await made()
    const { account: kept } = await openAccount(`sqlite:${path("millrace.db")}`, 10, "grace@example.com")
    const { keyId } = await ask(Issued, at("keys", "issue", "--account", kept))
    await millrace(at("keys", "revoke", "--account", kept, "--key", keyId))
    expect((await millrace(at("accounts", "erase", "--account", account, "--confirm", account))).code).toBe(0)
    const masterKey = MasterKey.layer(Redacted.make(readFileSync(path("master.key"), "utf8").trim()))
    const vault = Vault.Vault.layer.pipe(Layer.provide([SqliteStateStore.layer({ filename: path("millrace.state.db") }), masterKey]))
    await Effect.runPromise(
      Vault.Vault.use((vault) =>
        Effect.gen(function* () {
          for (const id of ["job_1", "job_2", "job_3"]) yield* vault.seal(Vault.ofJob(id, kept), "input", "text")
          yield* Effect.forEach(["job_1", "job_2"], (id) => vault.destroy(Vault.ofJob(id, kept)))
          yield* vault.destroy("note:1")
        })
      ).pipe(Effect.provide(vault))
    )
    const said = "2 keys, and 4 were destroyed: of 1 erased account, 2 purged jobs, 1 other subject"
    const doctor = JSON.parse((await millrace(at("doctor"))).stdout).checks
    expect(doctor).toContainEqual(expect.objectContaining({ name: "master key", ok: true, detail: expect.stringContaining(said) }))
    const report = reportOf((await millrace(at("audit"))).stdout)
    expect(report.keys).toEqual({ present: 2, destroyed: 4, erasedAccounts: 1, purgedJobs: 2, others: 1 })
    expect(report.apiKeys.issued - report.apiKeys.revoked).toBe(1)
    expect((await millrace(at("audit", "--text"))).stdout).toContain(said)
  })
})

describe("a journal", () => {
  it("is refused of a log that does not verify, with where and what to do, and is written if told so", async () => {
    const { at, url } = await made()
    const db = new Database(url.slice("sqlite:".length))
    db.exec(`DROP TRIGGER events_are_never_changed; UPDATE events SET data = replace(data, '10000', '20000')`)
    db.close()
    const refused = await millrace(at("journal", "--format", "csv"))
    expect([refused.code, JSON.parse(refused.stderr).error]).toEqual([
      1,
      {
        code: "UnverifiedLog",
        message: expect.stringMatching(/^the event at \d{16} in account-acc_\w+ does not verify: its hash .*millrace audit .*--unverified/u)
      }
    ])
    const written = await millrace(at("journal", "--format", "hledger", "--unverified", "--credit-value", "2 EUR"))
    expect([written.code, written.stdout]).toEqual([
      0,
      expect.stringMatching(/; NOT VERIFIED.*\nP 1970-01-01 CREDIT 2 EUR\n.*20\.000 CREDIT/su)
    ])
  })
})
