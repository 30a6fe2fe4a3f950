/** A proxy node within a server, and one in a process of its own: each serves the sessions of the other's host, and both stop cleanly. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import { expect, test, vi } from "vitest"
import { dataOf } from "./Mail.ts"
import { byConnect, nodeOf, Session } from "./ProxyClient.ts"
import { ask, auditOf, call, newStore, openAccount, Process, runProcess, serve } from "./Server.ts"

const Locations = Schema.Struct({ locations: Schema.Array(Schema.Struct({ country: Schema.String, available_nodes: Schema.Int })) })

/** The status of a CONNECT to a private address: 403 shows that the credentials were admitted, and that the address was not. */
const statusOf = (process: Process, login: typeof Session.Type) => byConnect(nodeOf(process).http, login, 80)

test("nodes in two processes serve each other's sessions, are listed while they run, and stop cleanly", { timeout: 60_000 }, async () => {
  const { url: store } = newStore()
  const http = ["--proxy", "127.0.0.1:0", "--store", store]
  const server = await serve([...http, "--proxy-country", "DE"])
  const { key } = await openAccount(store, 10)
  const node = new Process(["proxy", ...http, "--proxy-country", "fr"])
  await node.until(() => node.stdout.includes("\n"))
  expect([nodeOf(server).country, nodeOf(node).country]).toEqual(["DE", "FR"])

  const countries = async () => {
    const { locations } = dataOf(Locations, await call(`${server.url}/api/v1/proxy/locations`, { key }))
    return locations.map(({ country }) => country)
  }
  expect(await countries()).toEqual(["DE", "FR"])
  for (const country of ["DE", "FR"]) {
    const sent = { method: "POST", key, body: JSON.stringify({ country }) }
    const session = dataOf(Session, await call(`${server.url}/api/v1/proxy/sessions`, sent))
    expect([session.country, session.port]).toEqual([country, nodeOf(country === "DE" ? server : node).http])
    for (const process of [server, node]) {
      expect(await statusOf(process, session)).toBe("403")
      expect(await statusOf(process, { ...session, password: "wrong" })).toBe("407")
    }
  }
  expect((await node.stop()).code).toBe(0)
  expect(await countries()).toEqual(["DE"])
  expect((await server.stop()).code).toBe(0)
  expect((await auditOf(store)).ok).toBe(true)
})

const { String: Text, Int } = Schema
const Listed = Schema.Array(
  Schema.Struct({
    ...{ session: Text, account: Text, status: Text, protocol: Text, country: Text },
    ...{ sent: Int, received: Int, connections: Int, expiresAt: Text }
  })
)

test("a node connects through the proxies of a file, and what sessions carried is listed", { timeout: 60_000 }, async () => {
  const { folder, url: store } = newStore()
  const server = await serve(["--proxy", "127.0.0.1:0", "--store", store, "--proxy-country", "DE"])
  const { account, key } = await openAccount(store, 10)
  const open = async (country: string) => {
    const sent = { method: "POST", key, body: JSON.stringify({ country }) }
    return dataOf(Session, await call(`${server.url}/api/v1/proxy/sessions`, sent))
  }
  const { password, username } = await open("DE")
  const file = join(folder, "upstreams")
  const alive = `http://${username}:${password}@127.0.0.1:${nodeOf(server).http} country=fr region=Grand Est exit=203.0.113.7`
  writeFileSync(file, `# Two in France, and one that is dead\n\n${alive}\n${alive}\nsocks5://127.0.0.1:1 country=IT\n`)
  const node = new Process(["proxy", "--proxy", "127.0.0.1:0", "--store", store, "--proxy-upstreams", file])
  await node.until(() => node.stdout.includes("\n"))
  const { locations } = dataOf(Locations, await call(`${server.url}/api/v1/proxy/locations`, { key }))
  expect(locations).toEqual([
    { country: "DE", available_nodes: 1 },
    { country: "FR", available_nodes: 2 },
    { country: "IT", available_nodes: 0 }
  ])
  const session = await open("FR")
  expect(session.port).toBe(nodeOf(node).http)
  expect(await statusOf(node, session)).toBe("403")
  const sessions = await ask(Listed, ["proxy", "sessions", "--open", "--store", store])
  const unused = { account, status: "open", protocol: "http", sent: 0, received: 0, connections: 0 }
  expect(sessions).toMatchObject([
    { ...unused, session: username, country: "DE" },
    { ...unused, session: session.username, country: "FR" }
  ])
  expect((await node.stop()).code).toBe(0)
  expect((await server.stop()).code).toBe(0)
})

test("a file of upstreams is read again; one that is broken is a warning of /ready", { timeout: 60_000 }, async () => {
  const { folder, url: store } = newStore()
  const file = join(folder, "upstreams")
  writeFileSync(file, "http://127.0.0.1:1 country=FR\n")
  const server = await serve(["--proxy", "127.0.0.1:0", "--store", store, "--proxy-upstreams", file])
  const { key } = await openAccount(store, 10)
  const countries = async () => {
    const { locations } = dataOf(Locations, await call(`${server.url}/api/v1/proxy/locations`, { key }))
    return locations.map(({ country }) => country)
  }
  const warnings = async (): Promise<string> => JSON.stringify(await (await fetch(`${server.url}/ready`)).json())
  expect(await countries()).toEqual(["FR"])
  writeFileSync(file, "http://u:canary@127.0.0.1:1 nowhere\n")
  await vi.waitUntil(async () => (await warnings()).includes(`line 1 of ${file}`), { timeout: 30_000, interval: 200 })
  expect(await warnings()).not.toContain("canary")
  expect(await warnings()).toContain('"status":"ready"')
  expect(await countries()).toEqual(["FR"])
  writeFileSync(file, "http://127.0.0.1:1 country=IT\n")
  await vi.waitUntil(async () => !(await warnings()).includes(file), { timeout: 30_000, interval: 200 })
  await vi.waitUntil(async () => String(await countries()) === "IT", { timeout: 10_000, interval: 200 })
  expect((await server.stop()).code).toBe(0)
})

test.each([
  "http://u:canary@h:1",
  "ftp://u:canary@h:1 country=DE",
  "http://u:canary@h:1 country=DE exit=somewhere",
  "u:canary@h:1 country=DE"
])("a line of the file that is no upstream is told by its number alone: %s", async (line) => {
  const { folder, url: store } = newStore()
  const file = join(folder, "upstreams")
  writeFileSync(file, `http://h:1 country=DE\n${line}\n`)
  const { code, stderr } = await runProcess(["serve", "--store", store, "--proxy", "127.0.0.1:0", "--proxy-upstreams", file])
  expect(code).not.toBe(0)
  expect(stderr).toContain("line 2")
  expect(stderr).not.toContain("canary")
})
