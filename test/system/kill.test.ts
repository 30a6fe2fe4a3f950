/** The real server, killed in the middle of its work again and again: what was answered is kept, what was not ends by itself. */
import type { Agent } from "node:http"
import { expect, test } from "vitest"
import {
  type Answer,
  auditOf,
  BIN,
  BIN_PRICE,
  balanceOf,
  call,
  clientAgent,
  type Event,
  GRAMMAR,
  header,
  newStore,
  openAccount,
  readLog,
  type Server,
  serve,
  UNLIMITED
} from "./Server.ts"

const ROUNDS = 6
const CLIENTS = 24
const GRANTED = 100_000

/** Clients that call one server until it dies, and what they were told. */
class Load {
  /** Calls without an idempotency key that were answered. */
  readonly acknowledged: Array<Answer> = []
  /** Calls under a key: the answer, or that there was none. */
  readonly keyed = new Map<string, Answer | undefined>()
  readonly #key: string
  #count = 0
  #awaited: { readonly count: number; readonly reached: () => void } | undefined

  constructor(key: string) {
    this.#key = key
  }

  /** Calls until the connection fails, every other time under an idempotency key of its own. */
  async client(server: Server, round: number, number: number): Promise<void> {
    const agent = clientAgent()
    try {
      for (let i = 0; ; i++) {
        if (i % 2 === 0) this.acknowledged.push(await this.#lookUp(server, agent))
        else {
          const name = `${round}-${number}-${i}`
          this.keyed.set(name, undefined)
          this.keyed.set(name, await this.#lookUp(server, agent, name))
        }
        this.#count++
        if (this.#awaited !== undefined && this.#count >= this.#awaited.count) this.#awaited.reached()
      }
    } catch (error) {
      // The server is gone; anything else is a finding
      if (!(error instanceof Error && "code" in error && typeof error.code === "string" && /^E(?:CONN|PIPE)/u.test(error.code))) throw error
    } finally {
      agent.destroy()
    }
  }

  /** Waits for so many answers more. */
  more(count: number): Promise<void> {
    return new Promise((reached) => {
      this.#awaited = { count: this.#count + count, reached }
    })
  }

  async #lookUp(server: Server, agent: Agent, name?: string): Promise<Answer> {
    const headers = name === undefined ? {} : { "idempotency-key": name }
    const answer = await call(`${server.url}${BIN}`, { key: this.#key, headers }, agent)
    if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.body}`)
    return answer
  }
}

/** What the log says of each reservation. */
interface Fate {
  readonly requestId: unknown
  readonly keyHash: unknown
  readonly expiresAt: string
  readonly amount: number
  readonly ends: Array<string>
  endedAt: string
}

const fatesOf = (events: ReadonlyArray<Event>): ReadonlyMap<unknown, Fate> => {
  const fates = new Map<unknown, Fate>()
  for (const { type, at, data } of events) {
    const { reservationId, requestId, keyHash, expiresAt, amount } = data
    if (type === "CreditReserved") {
      expect(fates.has(reservationId)).toBe(false)
      fates.set(reservationId, { requestId, keyHash, expiresAt: String(expiresAt), amount: Number(amount) / 1000, ends: [], endedAt: "" })
      continue
    }
    const fate = fates.get(reservationId)
    if (fate === undefined) continue
    fate.ends.push(type)
    fate.endedAt = at
  }
  return fates
}

test("after repeated kill -9 under load, every answered charge is recorded once, and no key ran twice", { timeout: 120_000 }, async () => {
  const { url: store } = newStore()
  const { account, key } = await openAccount(store, GRANTED)
  const load = new Load(key)
  const lastWords: Array<string> = []

  /** A key that was answered before the kill replays its bytes; one that was not runs now, unless its hold is still open. */
  const comeAgain = async (server: Server) => {
    const agent = clientAgent()
    const answered = [...load.keyed].filter(([, answer]) => answer !== undefined)
    const sample = answered.filter((_, i) => i % Math.ceil(answered.length / 20) === 0)
    for (const [name, before] of [...sample, ...[...load.keyed].filter(([, answer]) => answer === undefined)]) {
      const again = await call(`${server.url}${BIN}`, { key, headers: { "idempotency-key": name } }, agent)
      if (before === undefined) {
        expect([200, 409]).toContain(again.status)
        if (again.status === 200) load.keyed.set(name, again)
      } else {
        expect([again.status, header(again, "idempotent-replayed")]).toEqual([200, "true"])
        expect(again.body).toBe(before.body)
        expect(header(again, "x-request-id")).toBe(header(before, "x-request-id"))
      }
    }
    agent.destroy()
  }

  for (let round = 0; round < ROUNDS; round++) {
    const server = await serve(["--store", store], { env: UNLIMITED })
    await comeAgain(server)
    const clients = Array.from({ length: CLIENTS }, (_, i) => load.client(server, round, i))
    await load.more(60 + 37 * round)
    // Its checker has yet to be loaded, so that this call is held, and only held, when the end comes
    const cut = call(`${server.url}${GRAMMAR}`, { method: "POST", key, body: JSON.stringify({ text: "An apple." }) }).then(
      ({ status }) => `answered ${status}`,
      () => "cut"
    )
    await load.more(2 * CLIENTS)
    await server.kill()
    await Promise.all(clients)
    lastWords.push(await cut)
  }

  const events = await readLog(store)
  const fates = fatesOf(events)
  const open = [...fates.values()].filter(({ ends }) => ends.length === 0)
  expect(lastWords).toContain("cut")
  expect(open.length).toBeGreaterThan(0)

  // What was answered was charged, once
  const byRequest = Map.groupBy(fates.values(), ({ requestId }) => requestId)
  const answered = [...load.acknowledged, ...[...load.keyed.values()].filter((answer) => answer !== undefined)]
  expect(answered.length).toBeGreaterThan(ROUNDS * 60)
  for (const answer of answered) {
    expect(byRequest.get(header(answer, "x-request-id"))?.map(({ ends }) => ends)).toEqual([["OperationSucceeded"]])
  }
  // However often it was sent, a key ran once
  const byKey = Map.groupBy(
    [...fates.values()].filter(({ keyHash }) => keyHash !== undefined),
    ({ keyHash }) => keyHash
  )
  expect(byKey.size).toBeLessThanOrEqual(load.keyed.size)
  for (const ran of byKey.values()) expect(ran.filter(({ ends }) => ends.includes("OperationSucceeded")).length).toBeLessThanOrEqual(1)
  // Nothing ends twice, and nothing is given back before its time
  for (const { ends, endedAt, expiresAt } of fates.values()) {
    expect(ends.length).toBeLessThanOrEqual(1)
    if (ends[0] === "Refunded") expect(endedAt >= expiresAt).toBe(true)
  }

  await auditOf(store)

  // What the kills left is held until it is due, and comes back then, whoever is running
  const charged = [...fates.values()].filter(({ ends }) => ends.includes("OperationSucceeded")).length * BIN_PRICE
  const held = open.reduce((sum, { amount }) => sum + amount, 0)
  const lastEvent = events.at(-1)?.at ?? ""
  const dueLater = open.filter(({ expiresAt }) => expiresAt > lastEvent).reduce((sum, { amount }) => sum + amount, 0)
  expect(await balanceOf(store, account, "--at", lastEvent)).toMatchObject({ available: GRANTED - charged - dueLater, held: dueLater })
  const due = open.map(({ expiresAt }) => expiresAt).sort()
  expect(await balanceOf(store, account, "--at", due.at(-1) ?? "")).toMatchObject({ available: GRANTED - charged, held: 0, holds: [] })
  expect(held).toBeGreaterThan(0)
})
