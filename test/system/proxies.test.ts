/** A proxy node within a server, and one in a process of its own: each serves the sessions of the other's host, and both stop cleanly. */
import { writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { Schema } from "effect"
import { expect, test } from "vitest"
import { ask, auditOf, call, newStore, openAccount, Process, runProcess, serve } from "./Server.ts"

const Endpoint = Schema.Struct({ protocol: Schema.String, port: Schema.Int })
const Announced = Schema.fromJsonString(
  Schema.Struct({ proxy: Schema.Struct({ country: Schema.String, endpoints: Schema.Array(Endpoint) }) })
)
const Session = Schema.fromJsonString(
  Schema.Struct({ data: Schema.Struct({ username: Schema.String, password: Schema.String, country: Schema.String, port: Schema.Int }) })
)
const Locations = Schema.fromJsonString(
  Schema.Struct({
    data: Schema.Struct({ locations: Schema.Array(Schema.Struct({ country: Schema.String, available_nodes: Schema.Int })) })
  })
)

/** The node that a process says it serves. */
const nodeOf = ({ stdout }: Process) => Schema.decodeUnknownSync(Announced)(stdout.split("\n", 1)[0] ?? "").proxy

const portOf = (process: Process): number => nodeOf(process).endpoints.find(({ protocol }) => protocol === "http")?.port ?? 0

interface Login {
  readonly username: string
  readonly password: string
}

/** The status of a CONNECT to a private address: 403 shows that the credentials were admitted, and that the address was not. */
const statusOf = (port: number, { password, username }: Login): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1")
    const auth = Buffer.from(`${username}:${password}`).toString("base64")
    socket.write(`CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1:80\r\nProxy-Authorization: Basic ${auth}\r\n\r\n`)
    socket.once("error", reject).once("data", (answer) => {
      socket.destroy()
      resolve(answer.toString().split(" ")[1] ?? "")
    })
  })

test("nodes in two processes serve each other's sessions, are listed while they run, and stop cleanly", { timeout: 60_000 }, async () => {
  const { url: store } = newStore()
  const http = ["--proxy", "127.0.0.1:0", "--store", store]
  const server = await serve([...http, "--proxy-country", "DE"])
  const { key } = await openAccount(store, 10)
  const node = new Process(["proxy", ...http, "--proxy-country", "fr"])
  await node.until(() => node.stdout.includes("\n"))
  expect([nodeOf(server).country, nodeOf(node).country]).toEqual(["DE", "FR"])

  const countries = async () => {
    const { body } = await call(`${server.url}/api/v1/proxy/locations`, { key })
    return Schema.decodeUnknownSync(Locations)(body).data.locations.map(({ country }) => country)
  }
  expect(await countries()).toEqual(["DE", "FR"])
  for (const country of ["DE", "FR"]) {
    const { body } = await call(`${server.url}/api/v1/proxy/sessions`, { method: "POST", key, body: JSON.stringify({ country }) })
    const { data } = Schema.decodeUnknownSync(Session)(body)
    expect([data.country, data.port]).toEqual([country, portOf(country === "DE" ? server : node)])
    for (const process of [server, node]) {
      expect(await statusOf(portOf(process), data)).toBe("403")
      expect(await statusOf(portOf(process), { ...data, password: "wrong" })).toBe("407")
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
    const { body } = await call(`${server.url}/api/v1/proxy/sessions`, { method: "POST", key, body: JSON.stringify({ country }) })
    return Schema.decodeUnknownSync(Session)(body).data
  }
  const { password, username } = await open("DE")
  const file = join(folder, "upstreams")
  const alive = `http://${username}:${password}@127.0.0.1:${portOf(server)} country=fr region=Grand Est exit=203.0.113.7`
  writeFileSync(file, `# Two in France, and one that is dead\n\n${alive}\n${alive}\nsocks5://127.0.0.1:1 country=IT\n`)
  const node = new Process(["proxy", "--proxy", "127.0.0.1:0", "--store", store, "--proxy-upstreams", file])
  await node.until(() => node.stdout.includes("\n"))
  const { body } = await call(`${server.url}/api/v1/proxy/locations`, { key })
  expect(Schema.decodeUnknownSync(Locations)(body).data.locations).toEqual([
    { country: "DE", available_nodes: 1 },
    { country: "FR", available_nodes: 2 },
    { country: "IT", available_nodes: 0 }
  ])
  const session = await open("FR")
  expect(session.port).toBe(portOf(node))
  expect(await statusOf(portOf(node), session)).toBe("403")
  const sessions = await ask(Listed, ["proxy", "sessions", "--open", "--store", store])
  const unused = { account, status: "open", protocol: "http", sent: 0, received: 0, connections: 0 }
  expect(sessions).toMatchObject([
    { ...unused, session: username, country: "DE" },
    { ...unused, session: session.username, country: "FR" }
  ])
  expect((await node.stop()).code).toBe(0)
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
