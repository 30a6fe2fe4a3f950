/** What the doctor finds: nothing where all is well, what is wrong by its name where it is not; it changes nothing. */
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import Database from "better-sqlite3"
import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { millrace } from "../../../test/system/InProcess.ts"
import { type Environment, newStore, openAccount, serve } from "../../../test/system/Server.ts"

const Diagnosis = Schema.Struct({
  ok: Schema.Boolean,
  checks: Schema.Array(
    Schema.Struct({ name: Schema.String, ok: Schema.Boolean, detail: Schema.String, advice: Schema.optionalKey(Schema.String) })
  )
})

const examine = async (url: string, env: Environment = {}) => {
  const { code, stdout, stderr } = await millrace(["doctor", "--store", url], { env })
  expect(stderr).toBe("")
  const { ok, checks } = Schema.decodeUnknownSync(Diagnosis, { onExcessProperty: "error" })(JSON.parse(stdout))
  expect([code, ok]).toEqual(checks.every((check) => check.ok) ? [0, true] : [1, false])
  return { wrong: checks.filter((check) => !check.ok), of: (name: string) => checks.find((check) => check.name === name), stdout }
}

const made = async () => {
  const store = newStore()
  const { account } = await openAccount(store.url, 10)
  return { ...store, account, masterKey: join(store.folder, "master.key"), state: join(store.folder, "millrace.state.db") }
}

describe("a healthy host", () => {
  it("is reported with details of each check, beside its server", { timeout: 60_000 }, async () => {
    const { url, file, masterKey, state, account } = await made()
    const before = [readFileSync(file), readFileSync(state)]
    const { wrong, of } = await examine(url, { MILLRACE_RATE_LIMIT: "5/5", MILLRACE_LOG_LEVEL: "" })
    expect(wrong).toEqual([])
    expect(of("node")?.detail).toBe(process.version)
    expect(of("settings")?.detail).toBe("by environment: MILLRACE_RATE_LIMIT")
    expect(of("store")?.detail).toBe(file)
    expect(of("sqlite")?.detail).toMatch(/^SQLite 3\.\d+\.\d+; both files are whole .*synchronous FULL/u)
    expect(of("master key")?.detail).toBe(`${masterKey} opens the vault, which has 1 key, and 0 were destroyed`)
    expect(of("disk")?.detail).toMatch(/ MiB free under /u)
    expect(of("clock")?.detail).toMatch(/newest event is [\d.]+ s old by this host's clock/u)
    expect(of("upstreams")?.detail).toMatch(/^(\d+) of \d+ operations have their provider$/u)
    expect(of("erasures")?.detail).toMatch(/no erasure is registered/u)
    expect([readFileSync(file), readFileSync(state)]).toEqual(before)

    const server = await serve(["--store", url])
    expect((await examine(url)).wrong).toEqual([])
    await server.stop()
    expect((await millrace(["accounts", "erase", "--store", url, "--account", account, "--confirm", account])).code).toBe(0)
    const after = await examine(url)
    expect(after.of("master key")?.detail).toMatch(/which has 0 keys, and 1 was destroyed: of 1 erased account$/u)
    expect(after.of("erasures")?.detail).toMatch(/^1 in .*erasures\.jsonl/u)
  })

  it("reveals no secret", async () => {
    const { url, masterKey } = await made()
    const key = readFileSync(masterKey, "utf8").trim()
    const { wrong, of, stdout } = await examine(url, { MILLRACE_MASTER_KEY: key })
    expect(wrong).toEqual([])
    expect(of("settings")?.detail).toBe("by environment: MILLRACE_MASTER_KEY")
    expect(stdout).not.toContain(key)
  })
})

describe("doctor says of operations without a provider", () => {
  it("what to set for each", { timeout: 60_000 }, async () => {
    const { url } = await made()
    const adviceOf = async (env: Environment = {}) => (await examine(url, env)).of("upstreams")?.advice ?? ""
    const without = await adviceOf()
    expect(without).toContain("leads.search: MILLRACE_MAP_SEARCH")
    expect(without).toMatch(/image\.generate, image\.edit: MILLRACE_IMAGES/u)
    // What needs nothing is not named
    expect(without).not.toMatch(/codeHost|storeCatalog|bin\.lookup/u)
    expect(await adviceOf({ MILLRACE_CODE_HOST: "off" })).toMatch(/codeHost\.user, .*: MILLRACE_CODE_HOST other than off/u)
    expect(await adviceOf({ MILLRACE_MAP_SEARCH: "places", MILLRACE_MAP_SEARCH_KEY: "AIza" })).not.toContain("leads.search")
    const osm = { MILLRACE_MAP_SEARCH: "osm:https://nominatim.example", MILLRACE_OVERPASS: "https://overpass.example/api" }
    expect(await adviceOf({ ...osm, MILLRACE_MAP_SEARCH_CONTACT: "ops@host.example" })).not.toContain("leads.search")
    const { wrong } = await examine(url, osm)
    expect(wrong.map(({ detail }) => detail)).toEqual([expect.stringContaining("MILLRACE_MAP_SEARCH_CONTACT")])
    const alone = await examine(url, { MILLRACE_OVERPASS: "https://overpass.example/api" })
    expect(alone.wrong.map(({ detail }) => detail)).toEqual([expect.stringContaining("MILLRACE_MAP_SEARCH to osm:URL")])
    const keyless = await examine(url, { MILLRACE_MAP_SEARCH: "places" })
    expect(keyless.wrong.map(({ detail }) => detail)).toEqual([expect.stringContaining("MILLRACE_MAP_SEARCH_KEY")])
  })
})

describe("doctor reports", () => {
  const wrongOf = async (url: string, env: Environment = {}) =>
    (await examine(url, env)).wrong.map(({ name, detail, advice }) => [name, `${detail} -> ${advice ?? ""}`])

  it("a missing store, and makes none", async () => {
    const { folder, file, url } = newStore()
    expect(await wrongOf(url)).toEqual([
      ["store", expect.stringMatching(new RegExp(`there is no store at ${file} -> millrace serve makes one`, "u"))]
    ])
    expect(readdirSync(folder)).toEqual([])
    expect(await wrongOf("mysql://host/db")).toEqual([["store", expect.stringContaining("unknown store")]])
    expect(await wrongOf("postgres://host/db")).toEqual([["store", expect.stringContaining("PostgreSQL at host:5432/db: no such host")]])
    const half = await made()
    renameSync(half.state, `${half.state}.away`)
    expect(await wrongOf(half.url)).toEqual([["store", expect.stringContaining("millrace.state.db is missing")]])
    expect(existsSync(half.state)).toBe(false)
  })

  it("a master key that others may read, that is missing, or that opens nothing", async () => {
    const { url, masterKey } = await made()
    chmodSync(masterKey, 0o644)
    expect(await wrongOf(url)).toEqual([
      ["permissions", expect.stringMatching(/has mode 644: others may read it -> chmod 600/u)],
      ["master key", expect.stringContaining("others may read it")]
    ])
    renameSync(masterKey, `${masterKey}.away`)
    expect(await wrongOf(url)).toEqual([["master key", expect.stringContaining("it is missing: set MILLRACE_MASTER_KEY")]])
    const others = await wrongOf(url, { MILLRACE_MASTER_KEY: "42".repeat(32) })
    expect(others).toEqual([["master key", expect.stringContaining("another master key")]])
    expect(await wrongOf(url, { MILLRACE_MASTER_KEY: "short" })).toEqual([["master key", expect.stringContaining("64 hexadecimal digits")]])
  })

  it("a file that is damaged or has the wrong journal mode", async () => {
    const spoilt = await made()
    const bytes = readFileSync(spoilt.file)
    writeFileSync(spoilt.file, bytes.fill(0xa5, 4_096, bytes.length))
    expect(await wrongOf(spoilt.url)).toContainEqual(["sqlite", expect.stringContaining(spoilt.file)])
    const rollback = await made()
    const db = new Database(rollback.state)
    db.exec("PRAGMA journal_mode = DELETE")
    db.close()
    expect(await wrongOf(rollback.url)).toEqual([["sqlite", expect.stringContaining("journal_mode delete")]])
  })

  it("a clock that is behind the log", async () => {
    const { url, file } = await made()
    const db = new Database(file)
    db.exec(`DROP TRIGGER events_are_never_changed;
      UPDATE events SET metadata = replace(metadata, '"at":"20', '"at":"21') WHERE position = (SELECT max(position) FROM events)`)
    db.close()
    expect(await wrongOf(url)).toEqual([["clock", expect.stringMatching(/is \d+(?:\.\d+)? s ahead of this host's clock -> .*NTP/u)]])
  })

  it("an unreadable provider file, and an invalid address of a provider", async () => {
    const { url } = await made()
    expect(await wrongOf(url, { MILLRACE_DNS_SERVERS: "dns.example.com" })).toEqual([
      ["upstreams", expect.stringContaining("MILLRACE_DNS_SERVERS must list IP addresses of name servers: dns.example.com")]
    ])
    expect(await wrongOf(url, { MILLRACE_BIN_FILE: "/nowhere/bins.csv" })).toEqual([
      ["upstreams", expect.stringContaining("/nowhere/bins.csv")]
    ])
  })

  it("keys in backups that are past their time, until they are deleted", async () => {
    const { url, folder } = await made()
    const backups = join(folder, "backups")
    const examined = async () => {
      const { stdout } = await millrace(["doctor", "--store", url, "--backups", backups])
      const { checks } = Schema.decodeUnknownSync(Diagnosis)(JSON.parse(stdout))
      return checks.find(({ name }) => name === "backups")
    }
    expect(await examined()).toMatchObject({ ok: false, detail: expect.stringContaining("cannot be read") })
    for (const name of ["old", "new"]) expect((await millrace(["backup", "--store", url, "--to", join(backups, name)])).code).toBe(0)
    expect(await examined()).toMatchObject({ ok: true })
    const manifest = join(backups, "old", "manifest.json")
    writeFileSync(manifest, readFileSync(manifest, "utf8").replace(/"deleteBy":"[^"]+"/u, '"deleteBy":"2026-01-01T00:00:00.000Z"'))
    expect(await examined()).toMatchObject({ ok: false, detail: `keys are past their time: ${join(backups, "old", "keys")}` })
    rmSync(join(backups, "old", "keys"), { recursive: true })
    expect(await examined()).toMatchObject({ ok: true })
  })

  it("a malformed register", async () => {
    const { url, folder } = await made()
    const register = join(folder, "erased.jsonl")
    writeFileSync(register, "grace\n")
    expect(await wrongOf(url, { MILLRACE_ERASURES: register })).toEqual([["erasures", expect.stringContaining("see its line 1")]])
  })
})
