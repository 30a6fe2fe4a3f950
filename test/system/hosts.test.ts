/** Four hosts on one PostgreSQL: whichever of them is called, killed or cut off, an account has one balance and a charge is made once. */
import { Schema } from "effect"
import pg from "pg"
import { afterAll, beforeAll, expect, test } from "vitest"
import { freshSchema, url } from "../../packages/event-store-postgres/test/Postgres.ts"
import { millrace } from "./InProcess.ts"
import { randomOf } from "./Random.ts"
import {
  type Answer,
  auditOf,
  BIN,
  BIN_PRICE,
  balanceOf,
  type Call,
  call,
  clientAgent,
  type Event,
  GRAMMAR,
  Granted,
  header,
  Opened,
  problemOf,
  readLog,
  type Server,
  serve,
  temporaryFolder,
  UNLIMITED
} from "./Server.ts"

const HOSTS = 4
const TTS = "/api/v1/audio/tts"
const TTS_PRICE = 5
const env = { ...UNLIMITED, MILLRACE_MASTER_KEY: "5a".repeat(32) }

let store: string
let blobs: string
let hosts: Array<Server>
let database: pg.Client
const undo: Array<() => Promise<unknown>> = []

const start = () => serve(["--store", store, "--speech", "espeak", "--blobs", blobs], { env })

const clientOf = async (address: string) => {
  const opened = new pg.Client({ connectionString: address })
  await opened.connect()
  return opened
}

beforeAll(async () => {
  const name = freshSchema()
  const server = await clientOf(await url())
  undo.push(() => server.end())
  await server.query(`CREATE DATABASE ${name} ENCODING 'UTF8' TEMPLATE template0`)
  undo.push(() => server.query(`DROP DATABASE ${name} WITH (FORCE)`))
  const address = new URL(await url())
  address.pathname = name
  store = address.href
  blobs = temporaryFolder()
  database = await clientOf(store)
  undo.push(() => database.end())
  // All at once, on a database in which there is nothing yet
  hosts = await Promise.all(Array.from({ length: HOSTS }, start))
  undo.push(() => Promise.all(hosts.map((host) => host.kill())))
}, 60_000)

// Before the server itself is stopped: what was asked for last is done first
afterAll(async () => {
  for (const last of undo.reverse()) await last()
})

/** What a command says that succeeds, given the key that all hosts have. */
const command = async (...args: ReadonlyArray<string>): Promise<unknown> => {
  const { code, stdout, stderr } = await millrace([...args, "--store", store], { env })
  if (code !== 0) throw new Error(`millrace ${args.join(" ")} ended with ${code}: ${stderr}`)
  return JSON.parse(stdout)
}

const grant = async (account: string, credits: number) =>
  Schema.decodeUnknownSync(Granted)(
    await command("credits", "grant", "--account", account, "--amount", String(credits), "--source", "promotion")
  )

/** Opens an account that was not verified. Without credits it has no address either, so that it has no trial. */
const openAccount = async (credits: number) => {
  const name = credits > 0 ? "--email" : "--id"
  const opened = await command("accounts", "open", name, `${crypto.randomUUID()}@example.com`)
  const { account, key } = Schema.decodeUnknownSync(Opened)(opened)
  if (credits > 0) await grant(account, credits)
  return { account, key }
}

/** The same call at each host, one host after the other. */
const atEach = async (path: string, options: Call): Promise<ReadonlyArray<Answer>> => {
  const answers: Array<Answer> = []
  for (const host of hosts) answers.push(await call(`${host.url}${path}`, options))
  return answers
}

const Envelope = Schema.fromJsonString(Schema.Struct({ status: Schema.String, data: Schema.Record(Schema.String, Schema.Unknown) }))
const envelopeOf = ({ body }: Answer) => Schema.decodeUnknownSync(Envelope)(body)

const balances = async (key: string) =>
  (await atEach("/api/v1/account/billing", { key })).map((answer) => {
    const { balance, held } = envelopeOf(answer).data
    return { balance, held }
  })

test("64 clients on four hosts race for an account's last credits: exactly the affordable number succeed", {
  timeout: 60_000
}, async () => {
  const affordable = 20
  const { account, key } = await openAccount(affordable * BIN_PRICE + 0.499)

  const answers = await Promise.all(hosts.flatMap(({ url }) => Array.from({ length: 64 / HOSTS }, () => call(`${url}${BIN}`, { key }))))

  const charged = answers.filter(({ status }) => status === 200)
  const refused = answers.filter(({ status }) => status !== 200)
  expect(new Set(refused.map((answer) => problemOf(answer).code))).toEqual(new Set(["insufficient_credits"]))
  expect([charged.length, refused.length]).toEqual([affordable, 64 - affordable])
  expect(new Set(charged.map((answer) => header(answer, "x-request-id"))).size).toBe(affordable)
  expect(await balances(key)).toEqual(hosts.map(() => ({ balance: 0.499, held: 0 })))
  expect(await balanceOf(store, account)).toMatchObject({ available: 0.499, held: 0, debt: 0, holds: [] })
})

test("the next call at each host sees what the command line granted and revoked", { timeout: 60_000 }, async () => {
  const { account, key } = await openAccount(0)
  // Each host has account and key in memory from now on
  for (const answer of await atEach(BIN, { key })) expect(problemOf(answer).code).toBe("insufficient_credits")
  for (const host of hosts) {
    await grant(account, BIN_PRICE)
    const answer = await call(`${host.url}${BIN}`, { key })
    expect([answer.status, answer.headers["x-credits-balance"]]).toEqual([200, "0"])
  }
  await grant(account, 100)
  const left = (await atEach(BIN, { key })).map((answer) => Number(header(answer, "x-credits-balance")))
  expect(left).toEqual(hosts.map((_, i) => 100 - (i + 1) * BIN_PRICE))

  const keyId = /^mr_live_(?<keyId>[^_]+)_/u.exec(key)?.groups?.["keyId"] ?? ""
  await command("keys", "revoke", "--account", account, "--key", keyId)
  for (const answer of await atEach(BIN, { key })) expect([answer.status, problemOf(answer).code]).toEqual([401, "unauthorized"])
  expect(await balanceOf(store, account)).toMatchObject({ available: 100 - HOSTS * BIN_PRICE, held: 0 })
})

test("a job that one host accepted is run by another, answered alike by all, and charged once", { timeout: 60_000 }, async () => {
  const { account, key } = await openAccount(100)
  const jobs = await Promise.all(
    hosts.map(async (host, i) => {
      const options = {
        method: "POST",
        key,
        headers: { "idempotency-key": `spoken-${i}` },
        body: JSON.stringify({ text: `This is host number ${i}.` })
      }
      const accepted = await call(`${host.url}${TTS}`, options)
      expect([accepted.status, accepted.body]).toEqual([200, expect.stringContaining('"pending"')])
      return { options, accepted, job: String(envelopeOf(accepted).data["id"]) }
    })
  )
  const other = (i: number) => hosts[(i + 1) % HOSTS]?.url ?? ""
  for (const [i, { accepted, job, options }] of jobs.entries()) {
    // Another host waits for its end, all four then tell the same
    while (envelopeOf(await call(`${other(i)}${TTS}/${job}`, { key, headers: { prefer: "wait=20" } })).status === "pending");
    const read = (await atEach(`${TTS}/${job}`, { key })).map((answer) => envelopeOf(answer).data)
    expect(read).toEqual(
      hosts.map(() => ({ job_id: job, status: "completed", download_url: `${TTS}/${job}/artifact`, parts: 1, error: null }))
    )
    const files = await atEach(`${TTS}/${job}/artifact`, { key })
    expect(files.map(({ status, headers }) => [status, headers["content-type"]])).toEqual(hosts.map(() => [200, "audio/mpeg"]))
    expect(files[0]?.body.length).toBeGreaterThan(1_000)
    expect(new Set(files.map(({ body }) => body)).size).toBe(1)
    const again = await call(`${other(i)}${TTS}`, options)
    expect([again.body, header(again, "idempotent-replayed")]).toEqual([accepted.body, "true"])
  }

  const events = await readLog(store)
  for (const { job } of jobs) {
    const types = events.filter(({ stream }) => stream === `job-${job}`).map(({ type }) => type)
    expect(types.filter((type) => type !== "JobProgressed" && type !== "JobLeaseExtended")).toEqual([
      "JobAccepted",
      "JobStarted",
      "JobSucceeded"
    ])
  }
  const spent = 100 - HOSTS * TTS_PRICE
  expect(await balances(key)).toEqual(hosts.map(() => ({ balance: spent, held: 0 })))
  expect(await balanceOf(store, account)).toMatchObject({ available: spent, held: 0, holds: [] })
})

// chaos

const SEED = 20_261_121
const ROUNDS = 2
const CLIENTS = 4
const ACCOUNTS = 3
const GRANTED = 10_000

const oneOf = <A>(items: ReadonlyArray<A>, random: () => number): A => {
  const item = items[Math.floor(random() * items.length)]
  if (item === undefined) throw new Error("There is none to choose from")
  return item
}

/** A call under an idempotency key of its own, and what came of it so far. */
interface Keyed {
  readonly key: string
  readonly name: string
  answer: Answer | undefined
}

/** Answered before anything was charged, as they say. */
const FREE = ["store_unavailable", "busy", "shutting_down"]

/** Clients that call any of the hosts, and come again with the same idempotency key where they got no answer, or none to keep. */
class Load {
  readonly calls: Array<Keyed> = []
  /** Requests that were told to have cost nothing. */
  readonly free: Array<string> = []
  /** Answers that neither a host nor a store out of reach explain. */
  readonly strange: Array<string> = []
  readonly #keys: ReadonlyArray<string>
  #isOver = false
  #count = 0
  #awaited: { readonly count: number; readonly reached: () => void } | undefined

  constructor(keys: ReadonlyArray<string>) {
    this.#keys = keys
  }

  end(): void {
    this.#isOver = true
  }

  /** Waits for so many charges more. */
  more(count: number): Promise<void> {
    return new Promise((reached) => {
      this.#awaited = { count: this.#count + count, reached }
    })
  }

  async client(number: number): Promise<void> {
    const random = randomOf(SEED + number)
    const agent = clientAgent()
    for (let i = 0; !this.#isOver; i++) {
      const keyed: Keyed = { key: oneOf(this.#keys, random), name: `${number}-${i}`, answer: undefined }
      this.calls.push(keyed)
      for (;;) {
        const answer = await this.send(keyed, oneOf(hosts, random), agent)
        if (answer?.status === 200) {
          this.#count++
          if (this.#awaited !== undefined && this.#count >= this.#awaited.count) this.#awaited.reached()
          if (random() < 0.2) await this.replay(keyed, oneOf(hosts, random), agent)
        }
        // One whose host died in the middle of it is held until its hold is due
        if (this.#isOver || answer?.status === 200 || answer?.status === 409) break
      }
    }
    agent.destroy()
  }

  /** Nothing where the connection broke. */
  async send(keyed: Keyed, { url }: Server, agent = clientAgent()): Promise<Answer | undefined> {
    const headers = { "idempotency-key": keyed.name }
    const answer = await call(`${url}${BIN}`, { key: keyed.key, headers }, agent).catch((error: unknown) => {
      if (error instanceof Error && "code" in error && typeof error.code === "string" && /^E(?:CONN|PIPE)/u.test(error.code))
        return undefined
      throw error
    })
    if (answer?.status === 200) keyed.answer ??= answer
    else if (answer !== undefined) {
      const { code } = problemOf(answer)
      if (FREE.includes(code)) this.free.push(header(answer, "x-request-id"))
      else if (code !== "outcome_unknown" && code !== "idempotency_key_in_use") this.strange.push(`${answer.status} ${answer.body}`)
    }
    return answer
  }

  /** What was answered is answered again, byte for byte, wherever it is asked for. */
  async replay(keyed: Keyed, host: Server, agent = clientAgent()): Promise<boolean> {
    const again = await this.send(keyed, host, agent)
    if (again?.status !== 200 || keyed.answer === undefined) return false
    expect(header(again, "idempotent-replayed")).toBe("true")
    expect([again.body, header(again, "x-request-id")]).toEqual([keyed.answer.body, header(keyed.answer, "x-request-id")])
    return true
  }
}

/** As far as they say what became of a hold. */
interface Fate {
  readonly stream: string
  readonly requestId: unknown
  readonly keyHash: unknown
  readonly expiresAt: string
  readonly amount: number
  readonly ends: Array<string>
}

const fatesOf = (events: ReadonlyArray<Event>): ReadonlyArray<Fate> => {
  const fates = new Map<unknown, Fate>()
  for (const { type, stream, data } of events) {
    const { reservationId, requestId, keyHash, expiresAt, amount } = data
    if (type === "CreditReserved") {
      expect(fates.has(reservationId)).toBe(false)
      fates.set(reservationId, { stream, requestId, keyHash, expiresAt: String(expiresAt), amount: Number(amount) / 1000, ends: [] })
    } else if (stream.startsWith("account-")) fates.get(reservationId)?.ends.push(type)
  }
  return [...fates.values()]
}

const Holds = Schema.Array(Schema.Struct({ account: Schema.String, overdue: Schema.Boolean }))

test("hosts that are killed and disconnected at random under load lose nothing and charge nothing twice", {
  timeout: 90_000
}, async () => {
  const random = randomOf(SEED)
  const accounts = await Promise.all(Array.from({ length: ACCOUNTS }, () => openAccount(GRANTED)))
  const slow = await openAccount(GRANTED)
  const load = new Load(accounts.map(({ key }) => key))
  const clients = Promise.all(Array.from({ length: CLIENTS }, (_, i) => load.client(i)))
  const cutOff = async () => {
    const { rowCount } = await database.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`
    )
    expect(rowCount).toBeGreaterThan(0)
  }
  const lastWords: Array<string> = []
  for (let round = 0; round < ROUNDS; round++) {
    await load.more(15 + 30 * random())
    await cutOff()
    await load.more(15 + 30 * random())
    const victim = Math.floor(random() * HOSTS)
    const host = hosts[victim]
    if (host === undefined) throw new Error("There are four")
    // Its checker has yet to be loaded, so that this call is held, and only held, when the end comes
    const cut = call(`${host.url}${GRAMMAR}`, { method: "POST", key: slow.key, body: JSON.stringify({ text: "An apple." }) }).then(
      ({ status }) => `answered ${status}`,
      () => "cut"
    )
    await load.more(4 * CLIENTS)
    await host.kill()
    lastWords.push(await cut)
    await load.more(15 + 30 * random())
    if (random() < 0.5) await cutOff()
    hosts[victim] = await start()
  }
  await load.more(CLIENTS)
  load.end()
  await clients

  // Of what was answered each host knows; what was not runs now, unless it is held in the name of a host that died
  expect(load.strange).toEqual([])
  const answered = load.calls.filter(({ answer }) => answer !== undefined)
  const open = load.calls.filter(({ answer }) => answer === undefined)
  for (const keyed of answered.filter((_, i) => i % Math.ceil(answered.length / 40) === 0)) {
    expect(await load.replay(keyed, oneOf(hosts, random))).toBe(true)
  }
  let inUse = 0
  for (const keyed of open) {
    const answer = await load.send(keyed, oneOf(hosts, random))
    expect([200, 409]).toContain(answer?.status)
    if (answer?.status === 409) inUse++
  }

  // What was acknowledged is there, once; what was told to have cost nothing did
  const fates = fatesOf(await readLog(store))
  const succeeded = ({ ends }: Fate) => ends.includes("OperationSucceeded")
  const byRequest = Map.groupBy(fates, ({ requestId }) => requestId)
  for (const { answer } of load.calls) {
    if (answer === undefined) continue
    expect(byRequest.get(header(answer, "x-request-id"))?.map(({ ends }) => ends)).toEqual([["OperationSucceeded"]])
  }
  for (const request of load.free) expect(byRequest.get(request)?.some(succeeded) ?? false).toBe(false)
  for (const { ends } of fates) expect(ends.length).toBeLessThanOrEqual(1)
  const byKey = Map.groupBy(
    fates.filter(({ keyHash }) => keyHash !== undefined),
    ({ keyHash, stream }) => `${stream} ${String(keyHash)}`
  )
  for (const ran of byKey.values()) expect(ran.filter(succeeded).length).toBeLessThanOrEqual(1)
  const unfinished = fates.filter(({ ends }) => ends.length === 0)
  expect(lastWords).toContain("cut")
  expect(unfinished.filter(({ keyHash }) => keyHash !== undefined).length).toBeGreaterThanOrEqual(inUse)

  // Held is only what a host left that died, and that only until it is due
  const holds = Schema.decodeUnknownSync(Holds)(await command("holds", "list"))
  expect(holds.map(({ account }) => account)).toContain(slow.account)
  expect(holds.filter(({ overdue }) => overdue)).toEqual([])
  const due = unfinished.map(({ expiresAt }) => expiresAt).sort()
  for (const { account, key } of [...accounts, slow]) {
    const charged = fates.filter((fate) => fate.stream === `account-${account}` && succeeded(fate))
    const available = GRANTED - charged.reduce((sum, { amount }) => sum + amount, 0)
    expect(await balanceOf(store, account, "--at", due.at(-1) ?? "")).toMatchObject({ available, held: 0, holds: [] })
    expect(new Set((await balances(key)).map(({ balance, held }) => Number(balance) + Number(held)))).toEqual(new Set([available]))
  }
  expect(await auditOf(store)).toMatchObject({ ok: true, problems: [] })
})
