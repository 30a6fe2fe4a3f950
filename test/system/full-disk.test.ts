/** Servers whose disk is really full, or read-only: they say that they are not ready, and are ready again by themselves. */
import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { chmodSync, closeSync, mkdirSync, openSync, rmSync, statSync, symlinkSync, writeSync } from "node:fs"
import { join } from "node:path"
import { Effect, Exit, Schema, Scope } from "effect"
import pg from "pg"
import { afterAll, describe, expect, it } from "vitest"
import { KurrentDbStandIn } from "../../packages/event-store-kurrentdb/test/standin/index.ts"
import * as Postgres from "../../packages/event-store-postgres/test/Postgres.ts"
import { startServer } from "../../packages/event-store-postgres/test/PostgresServer.ts"
import { millrace } from "./InProcess.ts"
import { auditOf, Balance, BIN, call, newStore, Opened, openAccount, type Server, serve, temporaryFolder, UNLIMITED } from "./Server.ts"

const Ready = Schema.fromJsonString(Schema.Struct({ status: Schema.String, reasons: Schema.Array(Schema.String) }))

const readyOf = async ({ url }: Server) => {
  const { status, body } = await call(`${url}/ready`)
  return { code: status, ...Schema.decodeUnknownSync(Ready)(body) }
}

/** Asks until the server says so, or for ten seconds. */
const untilReady = async (server: Server, isReady: boolean, because?: string) => {
  const giveUpAt = performance.now() + 10_000
  for (;;) {
    const ready = await readyOf(server)
    if ((ready.code === 200) === isReady && (because === undefined || ready.reasons.includes(because))) return ready
    if (performance.now() > giveUpAt) throw new Error(`It is still ${JSON.stringify(ready)}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const undo: Array<() => unknown> = []
afterAll(async () => {
  for (const one of undo.reverse()) await one()
})

/** A disk of its own in memory; undefined where this user may not mount one. */
const mountDisk = (options: string): string | undefined => {
  const parent = temporaryFolder()
  const folder = join(parent, "disk")
  // PostgreSQL runs as another user
  chmodSync(parent, 0o755)
  mkdirSync(folder)
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", options, "millrace-test", folder], { stdio: "ignore" })
  } catch {
    return undefined
  }
  undo.push(() => execFileSync("umount", ["--lazy", folder], { stdio: "ignore" }))
  return folder
}

const mayMount = mountDisk("size=64k") !== undefined
if (!mayMount) process.stderr.write("\n!! NO DISK WAS FILLED: only root may mount one. The tests of full disks did not run.\n")

/** Fills a disk to its last byte. */
const fill = (folder: string): void => {
  const file = openSync(join(folder, "filler"), "w")
  const block = Buffer.alloc(4_096, 1)
  try {
    for (;;) writeSync(file, block)
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error
  } finally {
    closeSync(file)
  }
}

const empty = (folder: string): void => rmSync(join(folder, "filler"))

const FULL = [
  ["the event store", "log"],
  ["the state store", "state"]
] as const

describe.skipIf(!mayMount)("a full disk", () => {
  it.each(FULL)("is reported under %s in SQLite", { timeout: 60_000 }, async (name, full) => {
    const disks = { log: mountDisk("size=8m") ?? "", state: mountDisk("size=8m") ?? "" }
    symlinkSync(join(disks.state, "state.db"), join(disks.log, "millrace.state.db"))
    const store = `sqlite:${join(disks.log, "millrace.db")}`
    const { key } = await openAccount(store, 100)
    const server = await serve(["--store", store], { env: { ...UNLIMITED, MILLRACE_BLOBS: temporaryFolder() } })
    undo.push(() => server.kill())
    expect(await untilReady(server, true)).toEqual({ code: 200, status: "ready", reasons: [] })

    fill(disks[full])
    const told = await untilReady(server, false, `${name} takes no writes: is its disk full, or read-only?`)
    expect(told).toMatchObject({ code: 503, status: "not_ready" })
    if (full === "log") expect((await call(`${server.url}${BIN}`, { key })).status).toBe(503)

    empty(disks[full])
    expect(await untilReady(server, true)).toMatchObject({ reasons: [] })
    expect((await call(`${server.url}${BIN}`, { key })).status).toBe(200)
    expect((await server.stop()).code).toBe(0)
    expect(await auditOf(store)).toMatchObject({ ok: true, problems: [] })
  })

  it("is reported under PostgreSQL, by the append that failed, and counts nothing twice", { timeout: 60_000 }, async () => {
    const admin = await client(await Postgres.url())
    const { rows } = await admin.query<{ folder: string }>("SELECT current_setting('data_directory') AS folder")
    const { uid, gid } = statSync(rows[0]?.folder ?? "")
    const disk = mountDisk(`size=32m,uid=${uid},gid=${gid},mode=700`) ?? ""
    const space = join(disk, "space")
    mkdirSync(space)
    execFileSync("chown", [`${uid}:${gid}`, space])
    const name = `full_${randomBytes(4).toString("hex")}`
    await admin.query(`CREATE TABLESPACE ${name} LOCATION '${space}'`)
    await admin.query(`CREATE DATABASE ${name} TABLESPACE ${name}`)
    undo.push(async () => {
      await admin.query(`DROP DATABASE ${name} WITH (FORCE)`)
      await admin.query(`DROP TABLESPACE ${name}`)
      await admin.end()
    })
    const env = environmentOf(Object.assign(new URL(await Postgres.url()), { pathname: `/${name}` }).href)
    const { account, key, server } = await started(env)
    const charged = async () => {
      const { headers, status } = await call(`${server.url}${BIN}`, { key })
      return { status, credits: Number(headers["x-credits-charged"] ?? 0) }
    }
    let spent = 0
    const untilRefused = async () => {
      for (let calls = 0; calls < 2_000; calls++) {
        const { credits, status } = await charged()
        spent += credits
        if (status !== 200) return status
      }
      throw new Error("The disk is not full")
    }

    fill(disk)
    // What is free within the files is used up first. Calls fail while they hold, and while they settle
    expect(await Promise.all(Array.from({ length: 8 }, untilRefused))).toEqual(Array(8).fill(503))
    expect((await untilReady(server, false)).reasons).not.toEqual([])

    empty(disk)
    await untilReady(server, true)
    const after = await charged()
    expect(after.status).toBe(200)
    spent += after.credits
    // What was answered was charged, once, and nothing else: a call that failed is made free in the background
    await untilBalanced(env, account, GRANTED - spent)
    expect((await server.stop()).code).toBe(0)
    const audit = await millrace(["audit"], { env })
    expect([audit.code, JSON.parse(audit.stdout)]).toMatchObject([0, { ok: true, problems: [] }])
  })
})

const client = async (url: string): Promise<pg.Client> => {
  const db = new pg.Client({ connectionString: url })
  db.on("error", () => {})
  await db.connect()
  return db
}

const environmentOf = (store: string) => ({
  ...UNLIMITED,
  MILLRACE_STORE: store,
  MILLRACE_MASTER_KEY: randomBytes(32).toString("hex"),
  MILLRACE_BLOBS: temporaryFolder()
})

const GRANTED = 10_000

/** Waits until an account has these credits and none is held, for half a minute at most. */
const untilBalanced = async (env: Readonly<Record<string, string>>, account: string, available: number): Promise<void> => {
  const giveUpAt = performance.now() + 30_000
  for (;;) {
    const { stdout } = await millrace(["balance", "--account", account], { env })
    const balance = Schema.decodeUnknownSync(Schema.fromJsonString(Balance))(stdout)
    if (balance.held === 0 && balance.available === available) return
    if (performance.now() > giveUpAt) expect(balance).toMatchObject({ held: 0, available })
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** A server that is ready, and an account of many credits with its key. */
const started = async (env: Readonly<Record<string, string>>) => {
  const server = await serve([], { env })
  undo.push(() => server.kill())
  const opened = await millrace(["accounts", "open", "--email", "ada@example.com"], { env })
  const { account, key } = Schema.decodeUnknownSync(Schema.fromJsonString(Opened))(opened.stdout)
  const granted = await millrace(["credits", "grant", "--account", account, "--amount", String(GRANTED), "--source", "promotion"], { env })
  expect(granted.code).toBe(0)
  await untilReady(server, true)
  return { server, account, key }
}

describe("a read-only store", () => {
  it("is reported if PostgreSQL becomes read-only", { timeout: 60_000 }, async () => {
    // One of its own: the setting is the server's, and other tests write to the shared one
    const postgres = await startServer()
    undo.push(() => postgres.remove())
    const admin = await client(postgres.url)
    undo.push(() => admin.end())
    const { server, key } = await started(environmentOf(postgres.url))
    const set = async (to: "on" | "off") => {
      await admin.query(`ALTER SYSTEM SET default_transaction_read_only = ${to}`)
      await admin.query("SELECT pg_reload_conf()")
    }
    await set("on")
    await untilReady(server, false, "the event store takes no writes: is its disk full, or read-only?")
    await set("off")
    await untilReady(server, true)
    expect((await call(`${server.url}${BIN}`, { key })).status).toBe(200)
    expect((await server.stop()).code).toBe(0)
  })

  it("is reported if KurrentDB refuses appends", { timeout: 60_000 }, async () => {
    const scope = await Effect.runPromise(Scope.make())
    undo.push(() => Effect.runPromise(Scope.close(scope, Exit.void)))
    const node = await Effect.runPromise(Scope.provide(KurrentDbStandIn.serve(), scope))
    const { server, key } = await started({ ...environmentOf(node.url), MILLRACE_STATE: newStore().url })
    node.faults.append = () => ({ code: UNAVAILABLE, details: "no space left on device" })
    await untilReady(server, false, "the event store takes no writes: is its disk full, or read-only?")
    node.faults.calm()
    await untilReady(server, true)
    expect((await call(`${server.url}${BIN}`, { key })).status).toBe(200)
    expect((await server.stop()).code).toBe(0)
  })
})

/** Of gRPC. */
const UNAVAILABLE = 14
