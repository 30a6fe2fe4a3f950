/** What the doctor finds of a host that is one of several: its address, its port, its store and the other hosts, which are real processes. */
import { type AddressInfo, createServer } from "node:net"
import { Schema } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { millrace } from "../../../test/system/InProcess.ts"
import { undoAfterwards } from "../../../test/system/Leftovers.ts"
import { newDatabase } from "../../../test/system/Networked.ts"
import { type Environment, newStore, openAccount, type Server, serve } from "../../../test/system/Server.ts"

const Diagnosis = Schema.fromJsonString(
  Schema.Struct({
    ok: Schema.Boolean,
    checks: Schema.Array(
      Schema.Struct({ name: Schema.String, ok: Schema.Boolean, detail: Schema.String, advice: Schema.optionalKey(Schema.String) })
    )
  })
)

/** The checks of the cluster, each as one line, and the exit code. */
const examine = async (store: string, env: Environment) => {
  const { code, stdout } = await millrace(["doctor", "--store", store], { env })
  const { checks, ok } = Schema.decodeUnknownSync(Diagnosis)(stdout)
  expect(code).toBe(ok ? 0 : 1)
  const told = checks
    .filter(({ name }) => name === "cluster" || name === "hosts")
    .map(({ advice = "", detail, name, ok }) => `${ok ? "ok" : "WRONG"} ${name}: ${detail} -> ${advice}`)
  return { code, told }
}

/** What it finds of the hosts of a store. A host has its row there a moment after it listens. */
const hostsOf = (store: string, env: Environment = {}) =>
  expect.poll(async () => (await examine(store, { MILLRACE_CLUSTER: "127.0.0.1:0", ...env })).told[1], { timeout: 20_000 })

/** A port that was free, or one on which something listens. */
const portOf = async (listens: boolean): Promise<number> => {
  const server = createServer((socket) => socket.on("error", () => {}).resume())
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()))
  if (listens) undoAfterwards(close)
  else await close()
  return port
}

let store: string
let running: Server
/** The address of the host that runs. */
let its: string

beforeAll(async () => {
  store = newStore().url
  await openAccount(store, 10)
  its = `127.0.0.1:${await portOf(false)}`
  running = await serve(["--store", store, "--cluster", its])
}, 60_000)

afterAll(() => running?.kill())

describe("the doctor of a host of a cluster", () => {
  it("says nothing where there is none", async () => {
    expect((await examine(store, {})).told).toEqual([])
  })

  it("finds its free port and the other host, or itself where it runs", { timeout: 30_000 }, async () => {
    await hostsOf(store).toBe(`ok hosts: reached ${its} -> `)
    const free = `127.0.0.1:${await portOf(false)}`
    expect(await examine(store, { MILLRACE_CLUSTER: free })).toEqual({
      code: 0,
      told: [`ok cluster: ${free} is free -> `, `ok hosts: reached ${its} -> `]
    })
    const elsewhere = { MILLRACE_CLUSTER: "10.255.255.1:7400", MILLRACE_CLUSTER_LISTEN: free }
    expect((await examine(store, elsewhere)).told).toEqual([
      `ok cluster: ${free} is free, and the other hosts call 10.255.255.1:7400 -> `,
      `ok hosts: reached ${its} -> hosts of other machines cannot share this SQLite file: use PostgreSQL or KurrentDB`
    ])
    expect(await examine(store, { MILLRACE_CLUSTER: its })).toEqual({
      code: 0,
      told: [`ok cluster: a host with this master key listens on ${its} -> `, "ok hosts: no other host is up -> "]
    })
  })

  it("reports an address that is malformed, public, or of another machine, and an address to listen on alone", {
    timeout: 30_000
  }, async () => {
    const first = async (env: Environment) => {
      const { code, told } = await examine(store, env)
      expect(code).toBe(1)
      return told[0]
    }
    expect(await first({ MILLRACE_CLUSTER: "here" })).toMatch(/^WRONG cluster: MILLRACE_CLUSTER must be an address of this machine/u)
    expect(await first({ MILLRACE_CLUSTER: "203.0.113.9:7400" })).toMatch(/^WRONG cluster: MILLRACE_CLUSTER must be .* private network/u)
    expect(await first({ MILLRACE_CLUSTER: "10.255.255.1:7400" })).toBe(
      "WRONG cluster: 10.255.255.1 is not of this machine -> in a container, set MILLRACE_CLUSTER_LISTEN, such as 0.0.0.0:7400"
    )
    expect(await first({ MILLRACE_CLUSTER_LISTEN: "0.0.0.0:7400" })).toMatch(/^WRONG cluster: .* -> set MILLRACE_CLUSTER: /u)
  })

  it("reports a port that another program uses", { timeout: 30_000 }, async () => {
    const used = `127.0.0.1:${await portOf(true)}`
    const { code, told } = await examine(store, { MILLRACE_CLUSTER: used })
    expect([code, told[0]]).toEqual([
      1,
      `WRONG cluster: ${used} is in use by another program, or by a host with another master key -> choose another port, or end what listens there`
    ])
  })

  it("reports a store in memory, which no other host shares", async () => {
    const { told } = await examine("memory:", { MILLRACE_CLUSTER: "127.0.0.1:0" })
    expect(told[1]).toMatch(/^WRONG hosts: a store in memory is of one process, .* -> name a store that the hosts share/u)
  })

  it("reports another master key than that of the store", { timeout: 30_000 }, async () => {
    const env = { MILLRACE_CLUSTER: "127.0.0.1:0", MILLRACE_MASTER_KEY: "42".repeat(32) }
    expect((await examine(store, env)).told[1]).toMatch(/^WRONG hosts: the master key is not that of the store: /u)
  })

  it("reports hosts that cannot share the store, with which no link opens, or that cannot be reached", { timeout: 60_000 }, async () => {
    // A port that the system gives to nobody
    const [closed, used] = ["127.0.0.1:1", `127.0.0.1:${await portOf(true)}`]
    // Hosts that say to be where they are not
    const at = (address: string) => serve(["--store", store, "--cluster", address, "--cluster-listen", "127.0.0.1:0"])
    const [far, strange, silent] = await Promise.all([at("10.255.255.1:7400"), at(used), at(closed)])
    await hostsOf(store).toBe(
      "WRONG hosts: a SQLite file is for hosts of one machine, and 10.255.255.1:7400 is not here -> use PostgreSQL or KurrentDB"
    )
    await far.stop()
    await hostsOf(store).toBe(
      `WRONG hosts: ${used} does not know this host -> give all hosts the same MILLRACE_MASTER_KEY and release; until then, each runs its calls itself`
    )
    await strange.stop()
    await hostsOf(store).toBe(
      `WRONG hosts: ${closed} cannot be reached from here -> open its port to this host; until then, each runs its calls itself`
    )
    await silent.kill()
    // Its row is still there
    await hostsOf(store).toBe(`ok hosts: reached ${its} -> `)
  })

  it("looks into PostgreSQL, and reports a master key that is missing", { timeout: 60_000 }, async () => {
    const database = await newDatabase()
    const env = { MILLRACE_MASTER_KEY: "5a".repeat(32) }
    const address = `127.0.0.1:${await portOf(false)}`
    const server = await serve(["--store", database, "--cluster", address], { env })
    await hostsOf(database, env).toBe(`ok hosts: reached ${address} -> `)
    expect((await examine(database, { MILLRACE_CLUSTER: "127.0.0.1:0", ...env })).code).toBe(0)
    await hostsOf(database).toMatch(/^WRONG hosts: a store on PostgreSQL or KurrentDB needs MILLRACE_MASTER_KEY, the same for every host/u)
    await hostsOf(database, { MILLRACE_MASTER_KEY: "42".repeat(32) }).toMatch(/^WRONG hosts: the master key is not that of the store: /u)
    await server.kill()
  })
})
