/** The rows of proxies once more: what they answer without a node, and whose a session is. */
import { Effect } from "effect"
import { describe, expect } from "vitest"
import { least } from "./Cases.ts"
import { host, hostWith, testing } from "./Host.ts"
import * as Requests from "./Requests.ts"
import type { Row } from "./Row.ts"
import { rows } from "./Rows.ts"

const ofProxies = rows.filter(({ key }) => key.startsWith("proxy."))

const send = (url: string, row: Row, key: string, input: Readonly<Record<string, unknown>> = least(row).input) =>
  Effect.promise(() => Requests.send(url, row, input, key))

describe.each(ofProxies)("$method $path", (row) => {
  testing(
    "reports a missing node like the catalog, and is free",
    Effect.gen(function* () {
      const { url, open, balance } = yield* hostWith({ isConfigured: false })
      const { accountId, key } = yield* open(10)
      const { body, headers, status } = yield* send(url, row, key)
      expect([status, JSON.parse(body).error.code, headers.has("x-credits-charged")]).toEqual([503, "upstream_not_configured", false])
      expect(yield* balance(accountId)).toMatchObject({ available: 10_000, held: 0 })
      const catalog = yield* Effect.promise(() => fetch(`${url}/api/v1/catalog/capabilities/${row.key}`).then((answer) => answer.json()))
      expect(catalog).toMatchObject({ data: { availability: { available: false } } })
    })
  )
})

const rowOf = (key: string): Row => {
  const row = ofProxies.find((row) => row.key === key)
  if (row === undefined) throw new Error(`There is no row ${key}`)
  return row
}

testing(
  "two calls get two sessions, of one account or of two; a call that is sent again gets the first, and is charged once",
  Effect.gen(function* () {
    const { url, open, balance } = yield* host
    const accounts = [yield* open(10), yield* open(10)]
    const row = rowOf("proxy.createSession")
    const sessions = new Set<string>()
    for (const { key } of [...accounts, ...accounts]) {
      const { data } = JSON.parse((yield* send(url, row, key)).body)
      expect(data.username).toBe(data.session_id)
      sessions.add(data.session_id).add(data.password)
    }
    expect(sessions.size).toBe(8)
    const [{ accountId, key } = { accountId: "", key: "" }] = accounts
    const again = () =>
      fetch(`${url}${row.path}`, { method: "POST", headers: { authorization: `Bearer ${key}`, "idempotency-key": "one" } }).then(
        async (answer) => ({ replayed: answer.headers.get("idempotent-replayed"), data: JSON.parse(await answer.text()).data })
      )
    const first = yield* Effect.promise(again)
    const second = yield* Effect.promise(again)
    expect([first.replayed, second]).toEqual([null, { replayed: "true", data: first.data }])
    expect(yield* balance(accountId)).toMatchObject({ available: 4_000, held: 0 })
  })
)

testing(
  "a place where no node is leaves the list empty, and refuses a session before anything is held",
  Effect.gen(function* () {
    const { url, open, balance } = yield* host
    const { accountId, key } = yield* open(10)
    const { body } = yield* send(url, rowOf("proxy.locations"), key, { country: "IT" })
    expect(JSON.parse(body).data).toEqual({ locations: [] })
    const refused = yield* send(url, rowOf("proxy.createSession"), key, { country: "DE", region: "Saxony" })
    expect([refused.status, JSON.parse(refused.body).error.message]).toEqual([422, expect.stringMatching(/^region: /u)])
    expect(yield* balance(accountId)).toMatchObject({ available: 9_900, held: 0 })
  })
)
