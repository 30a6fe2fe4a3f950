/** A proxy node within a server, and one in a process of its own: each serves the sessions of the other's host, and both stop cleanly. */
import { Schema } from "effect"
import { expect, test } from "vitest"
import { dataOf } from "./Mail.ts"
import { byConnect, nodeOf, Session } from "./ProxyClient.ts"
import { auditOf, call, newStore, openAccount, Process, serve } from "./Server.ts"

const Locations = Schema.Struct({ locations: Schema.Array(Schema.Struct({ country: Schema.String })) })

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
