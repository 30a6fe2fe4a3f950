/** Many clients at once against real servers: no credit is spent twice, no key runs twice, and what others write counts at once. */
import { expect, test } from "vitest"
import {
  type Answer,
  auditOf,
  BIN,
  BIN_PRICE,
  balanceOf,
  call,
  clientAgent,
  grant,
  header,
  newStore,
  openAccount,
  problemOf,
  readLog,
  runProcess,
  serve,
  UNLIMITED
} from "./Server.ts"

const CLIENTS = 64

const statuses = (answers: ReadonlyArray<Answer>): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

test("64 clients race for the last credits: exactly the affordable number succeed", { timeout: 60_000 }, async () => {
  const { url: store } = newStore()
  const affordable = 20
  const { account, key } = await openAccount(store, affordable * BIN_PRICE + 0.499)
  const server = await serve(["--store", store], { env: UNLIMITED })

  const answers = await Promise.all(Array.from({ length: CLIENTS }, () => call(`${server.url}${BIN}`, { key })))

  expect(statuses(answers)).toEqual({ 200: affordable, 402: CLIENTS - affordable })
  for (const answer of answers.filter(({ status }) => status === 402)) expect(problemOf(answer).code).toBe("insufficient_credits")
  const charged = answers.filter(({ status }) => status === 200).map((answer) => header(answer, "x-request-id"))
  expect(new Set(charged).size).toBe(affordable)
  expect(await balanceOf(store, account)).toMatchObject({ available: 0.499, held: 0, debt: 0, holds: [] })
  await auditOf(store)
})

test("64 calls under one idempotency key run once, and all get the same reply", { timeout: 60_000 }, async () => {
  const { url: store } = newStore()
  const { account, key } = await openAccount(store, 100)
  const server = await serve(["--store", store], { env: UNLIMITED })
  const headers = { "idempotency-key": "one-and-the-same" }

  let left = CLIENTS
  const replies: Array<Answer> = []
  while (left > 0) {
    const answers = await Promise.all(Array.from({ length: left }, () => call(`${server.url}${BIN}`, { key, headers })))
    const done = answers.filter(({ status }) => status === 200)
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      expect([answer.status, problemOf(answer).code]).toEqual([409, "idempotency_key_in_use"])
    }
    replies.push(...done)
    left -= done.length
  }

  expect(new Set(replies.map(({ body }) => body)).size).toBe(1)
  expect(new Set(replies.map((reply) => header(reply, "x-request-id"))).size).toBe(1)
  expect(replies.filter(({ headers }) => headers["idempotent-replayed"] === undefined)).toHaveLength(1)
  const other = await call(`${server.url}/api/v1/bin/51234567`, { key, headers })
  expect([other.status, problemOf(other).code]).toEqual([422, "idempotency_key_reused"])
  const events = await readLog(store)
  expect(events.filter(({ type }) => type === "CreditReserved")).toHaveLength(1)
  expect(events.filter(({ type }) => type === "OperationSucceeded")).toHaveLength(1)
  expect(await balanceOf(store, account)).toMatchObject({ available: 100 - BIN_PRICE, held: 0 })
})

test("the next call sees what another process granted, suspended and revoked", { timeout: 60_000 }, async () => {
  const { url: store } = newStore()
  const { account, key } = await openAccount(store, 0)
  const server = await serve(["--store", store], { env: UNLIMITED })
  const next = () => call(`${server.url}${BIN}`, { key })
  const administer = async (...args: ReadonlyArray<string>) => {
    const { code, stderr } = await runProcess([...args, "--store", store, "--account", account, "--by", "ada", "--reason", "ticket 12"])
    expect([code, stderr]).toEqual([0, ""])
  }

  expect(problemOf(await next()).code).toBe("insufficient_credits")
  await grant(store, account, 1)
  expect(header(await next(), "x-credits-balance")).toBe("0.5")
  await administer("accounts", "suspend")
  expect(problemOf(await next()).code).toBe("account_suspended")
  await administer("accounts", "reinstate")
  expect(header(await next(), "x-credits-balance")).toBe("0")
  const keyId = /^mr_live_(?<keyId>[^_]+)_/u.exec(key)?.groups?.["keyId"] ?? ""
  await administer("keys", "revoke", "--key", keyId)
  const refused = await next()
  expect([refused.status, problemOf(refused).code]).toEqual([401, "unauthorized"])

  const administered = (await readLog(store)).filter(({ metadata }) => metadata["actor"] === "ada")
  expect(administered.map(({ type, metadata }) => [type, metadata["reason"]])).toEqual([
    ["AccountSuspended", "ticket 12"],
    ["AccountReinstated", "ticket 12"],
    ["ApiKeyRevoked", "ticket 12"]
  ])
})

test("two servers on one file bill one account correctly, and neither refunds a call that the other runs", {
  timeout: 60_000
}, async () => {
  const { url: store } = newStore()
  const { account, key } = await openAccount(store, 1_000)
  const [first, second] = await Promise.all([serve(["--store", store], { env: UNLIMITED }), serve(["--store", store], { env: UNLIMITED })])
  // The first call of a server to its grammar checker takes as long as that takes to load: it is held all the while
  const slow = call(`${first.url}/api/v1/grammar/check`, { method: "POST", key, body: JSON.stringify({ text: "I has a apple." }) })

  const each = 40
  const lookups = [first, second].flatMap(({ url }) =>
    Array.from({ length: 16 }, async () => {
      const agent = clientAgent()
      const answers: Array<Answer> = []
      for (let i = 0; i < each; i++) answers.push(await call(`${url}${BIN}`, { key }, agent))
      agent.destroy()
      return answers
    })
  )
  const answers = (await Promise.all(lookups)).flat()
  const checked = await slow

  expect(statuses(answers)).toEqual({ 200: 2 * 16 * each })
  expect([checked.status, header(checked, "x-credits-charged")]).toEqual([200, "1"])
  expect(await balanceOf(store, account)).toMatchObject({ available: 1_000 - 2 * 16 * each * BIN_PRICE - 1, held: 0, holds: [] })
  const events = await readLog(store)
  expect(events.filter(({ type }) => type === "Refunded")).toEqual([])
  const ended = events.filter(({ type }) => type === "OperationSucceeded").map(({ data }) => data["reservationId"])
  expect(new Set(ended).size).toBe(2 * 16 * each + 1)
  expect(ended).toHaveLength(2 * 16 * each + 1)
  const requests = events.filter(({ type }) => type === "CreditReserved").map(({ data }) => data["requestId"])
  expect(new Set(requests)).toEqual(new Set([...answers, checked].map((answer) => header(answer, "x-request-id"))))
  for (const server of [first, second]) expect((await server.stop()).code).toBe(0)
  await auditOf(store)
})
