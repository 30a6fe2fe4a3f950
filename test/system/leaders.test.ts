/**
 * Four hosts on one PostgreSQL, of which one leads each account. While clients call all of them, leaders are stopped, cut off from the others
 * or from the store, and killed. What was answered is charged once, nothing else is charged, and nothing stays held.
 */

import { FaultProxy } from "@millrace/testing"
import { Effect, Exit, Schema, Scope } from "effect"
import { beforeAll, expect, test } from "vitest"
import { type Change, changed } from "./Changes.ts"
import { millrace } from "./InProcess.ts"
import { undoAfterwards } from "./Leftovers.ts"
import { newDatabase } from "./Networked.ts"
import {
  type Answer,
  Audit,
  Balance,
  BIN,
  BIN_PRICE,
  call,
  clientAgent,
  type Environment,
  type Event,
  eventsOf,
  Granted,
  header,
  Opened,
  problemOf,
  type Server,
  serve,
  UNLIMITED
} from "./Server.ts"

const HOSTS = 4
const ACCOUNTS = 6
const CLIENTS = 9
const GRANTED = 100_000

/** A hold whose host was killed ends after seconds, and not after a minute. */
const SOURCES: ReadonlyArray<Change> = [
  ["work/CallOperation.ts", '"30 seconds"', '"5 seconds"'],
  ["billing/charge/Call.ts", "HOLD_MARGIN = 30_000", "HOLD_MARGIN = 5_000"],
  ["billing/Recovery.ts", '?? "30 seconds"', '?? "1 second"'],
  ["Lease.ts", '?? "15 seconds"', '?? "3 seconds"']
]

const env: Environment = { ...UNLIMITED, MILLRACE_MASTER_KEY: "5a".repeat(32) }

/** Asks until it is so, or fails with the test. */
const eventually = async (isIt: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await isIt())) await new Promise((resolve) => setTimeout(resolve, 50))
}

const command = async <A>(shape: Schema.Codec<A, unknown>, ...args: ReadonlyArray<string>): Promise<A> => {
  const { code, stdout, stderr } = await millrace([...args, "--store", store], { env })
  if (code !== 0) throw new Error(`millrace ${args.join(" ")} ended with ${code}: ${stderr}`)
  return Schema.decodeUnknownSync(Schema.fromJsonString(shape))(stdout)
}

const log = async (): Promise<ReadonlyArray<Event>> => eventsOf((await millrace(["events", "--store", store], { env })).stdout)

/** A host, and what lies between it and the others. */
interface Member {
  readonly server: Server
  /** Between it and the hosts that forward calls to it. */
  readonly links: FaultProxy.FaultProxy
  /** Between it and PostgreSQL. */
  readonly database: FaultProxy.FaultProxy
}

/** A proxy until the end of the file. */
const proxyTo = async (port: number): Promise<FaultProxy.FaultProxy> => {
  const scope = await Effect.runPromise(Scope.make())
  undoAfterwards(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Effect.runPromise(Scope.provide(FaultProxy.make(port), scope))
}

/** A proxy before a port that is free, and the port. */
const proxyToNew = async (): Promise<readonly [FaultProxy.FaultProxy, number]> => {
  const scope = await Effect.runPromise(Scope.make())
  const { port } = await Effect.runPromise(Scope.provide(FaultProxy.make(1), scope))
  const proxy = await proxyTo(port)
  await Effect.runPromise(Scope.close(scope, Exit.void))
  return [proxy, port]
}

let store: string
let members: ReadonlyArray<Member>
let accounts: ReadonlyArray<typeof Opened.Type>

const startMember = async (): Promise<Member> => {
  const [links, port] = await proxyToNew()
  const url = new URL(store)
  const database = await proxyTo(Number(url.port))
  url.port = `${database.port}`
  const cluster = ["--cluster", `127.0.0.1:${links.port}`, "--cluster-listen", `127.0.0.1:${port}`]
  const server = await serve(["--store", url.href, "--dns-servers", "127.0.0.1:1", ...cluster], changed(SOURCES, { env }))
  return { server, links, database }
}

const Ready = Schema.fromJsonString(
  Schema.Struct({ cluster: Schema.Struct({ shards: Schema.Int, hosts: Schema.Int, unreachable: Schema.Int }) })
)
const clusterAt = async ({ server }: Member) => Schema.decodeUnknownSync(Ready)((await call(`${server.url}/ready`)).body).cluster
const seesAll = async (member: Member) => (await clusterAt(member)).hosts === members.length - 1

beforeAll(async () => {
  store = await newDatabase()
  const first = await startMember()
  members = [first, ...(await Promise.all(Array.from({ length: HOSTS - 1 }, startMember)))]
  const opened = []
  for (let n = 0; n < ACCOUNTS; n++) {
    const account = await command(Opened, "accounts", "open", "--email", `${n}@example.com`)
    await command(Granted, "credits", "grant", "--account", account.account, "--amount", String(GRANTED), "--source", "promotion")
    opened.push(account)
  }
  accounts = opened
}, 120_000)

// the load

/** What clients were told. */
interface Told {
  /** The request ids of calls without a key that were answered with their data, and of those that were refused. */
  readonly charged: Set<string>
  readonly free: Set<string>
  /** Keys, each with its account, whose call was not answered with its data yet; and how many were. */
  readonly open: Map<string, string>
  keyed: number
  /** Answers by status and code; calls whose connection broke. */
  readonly codes: Map<string, number>
}

/** Which hosts the clients call. */
let called: ReadonlyArray<Member> = []
let isOver = false

const random = <A>(of: ReadonlyArray<A>): A => of[Math.floor(Math.random() * of.length)] as A

const ask = async (agent: ReturnType<typeof clientAgent>, key: string, name?: string): Promise<Answer | undefined> => {
  const { server } = random(called)
  const headers = name === undefined ? {} : { "idempotency-key": name }
  try {
    return await call(`${server.url}${BIN}`, { key, headers }, agent)
  } catch {
    // Its host was killed
    return undefined
  }
}

const codeOf = (answer: Answer | undefined): string => {
  if (answer === undefined) return "cut"
  return answer.status === 200 ? "200" : `${answer.status} ${problemOf(answer).code}`
}

const note = ({ codes }: Told, answer: Answer | undefined) => {
  const code = codeOf(answer)
  codes.set(code, (codes.get(code) ?? 0) + 1)
}

const client = async (told: Told, number: number): Promise<void> => {
  const agent = clientAgent()
  for (let i = 0; !isOver; i++) {
    const { key } = random(accounts)
    const name = i % 2 === 0 ? undefined : `${number}-${i}`
    if (name !== undefined) told.open.set(name, key)
    const answer = await ask(agent, key, name)
    note(told, answer)
    if (answer === undefined) continue
    if (name === undefined) (answer.status === 200 ? told.charged : told.free).add(header(answer, "x-request-id"))
    else if (answer.status === 200 && told.open.delete(name)) told.keyed++
  }
  agent.destroy()
}

/** Until each host answers calls of each account again. */
const allServe = async (hosts: ReadonlyArray<Member>) => {
  const served = async (member: Member) => {
    const answers = await Promise.all(
      accounts.map(({ key }) => call(`${member.server.url}${BIN}`, { key, headers: { "idempotency-key": "probe" } }))
    )
    return answers.every(({ status }) => status === 200)
  }
  for (const host of hosts) await eventually(() => served(host))
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

/** The net charges of the log, by request. */
const chargesOf = (events: ReadonlyArray<Event>): ReadonlyMap<string, ReadonlyArray<string>> => {
  const ends = new Map<unknown, { readonly request: string; readonly ends: Array<string> }>()
  for (const { data, type } of events) {
    if (type === "CreditReserved") ends.set(data["reservationId"], { request: String(data["requestId"]), ends: [] })
    else ends.get(data["reservationId"])?.ends.push(type)
  }
  return new Map([...ends.values()].map(({ ends, request }) => [request, ends]))
}

const isCharged = (ends: ReadonlyArray<string> | undefined) => ends?.join() === "OperationSucceeded"

test("a leader is stopped, cut off and killed under load: each answered call is charged once, and no other", {
  timeout: 240_000
}, async () => {
  for (const member of members) await eventually(() => seesAll(member))
  const shards = await Promise.all(members.map(clusterAt))
  expect(shards.reduce((sum, { shards }) => sum + shards, 0)).toBe(256)

  const told: Told = { charged: new Set(), free: new Set(), open: new Map(), keyed: 0, codes: new Map() }
  called = members
  const clients = Array.from({ length: CLIENTS }, (_, n) => client(told, n))
  const [one, other, third, fourth] = members
  if (one === undefined || other === undefined || third === undefined || fourth === undefined) throw new Error("There are four")
  await pause(1_500)

  // It stops, as a virtual machine does that is moved
  called = [one, other, fourth]
  await pause(500)
  third.server.child.kill("SIGSTOP")
  await allServe(called)
  await pause(1_500)
  third.server.child.kill("SIGCONT")
  await allServe(members)
  called = members

  // Its links are cut, and the store is not
  other.links.set({ up: { _tag: "blackHole" }, down: { _tag: "blackHole" } })
  await pause(1_000)
  await allServe(members)
  await pause(1_500)
  other.links.set()

  // The store is cut off from it, and its links are not
  called = [one, third, fourth]
  other.database.set({ up: { _tag: "blackHole" }, down: { _tag: "blackHole" } })
  await pause(1_000)
  await allServe(called)
  await pause(1_500)
  other.database.set()
  other.database.reset()
  await allServe(members)
  called = members
  for (const member of members) await eventually(() => seesAll(member))

  // It is killed
  await pause(1_000)
  called = [other, third, fourth]
  await one.server.kill()
  await allServe(called)
  await pause(1_500)

  isOver = true
  await Promise.all(clients)

  // Each call under a key comes to its one end
  const agent = clientAgent()
  for (const [name, key] of told.open) {
    await eventually(async () => {
      const answer = await ask(agent, key, name)
      if (answer?.status === 200) return true
      expect(codeOf(answer)).toMatch(/^(?:409|503) /u)
      return false
    })
    told.keyed++
  }
  agent.destroy()

  const balances = () => Promise.all(accounts.map(({ account }) => command(Balance, "balance", "--account", account)))
  await eventually(async () => (await balances()).every(({ held }) => held === 0))
  const audit = await command(Audit, "audit")
  expect(audit.problems).toEqual([])

  const charges = chargesOf(await log())
  for (const request of told.charged) expect([request, charges.get(request)]).toEqual([request, ["OperationSucceeded"]])
  // What was promised to be free is freed by the sweep at the latest
  await eventually(async () => {
    const now = chargesOf(await log())
    return [...told.free].every((request) => !isCharged(now.get(request)))
  })
  const net = [...chargesOf(await log()).values()].filter(isCharged).length
  const cut = told.codes.get("cut") ?? 0
  const answered = told.charged.size + told.keyed + ACCOUNTS
  expect(net).toBeGreaterThanOrEqual(answered)
  expect(net).toBeLessThanOrEqual(answered + cut)
  const left = (await balances()).reduce((sum, { available }) => sum + available, 0)
  expect(left).toBeCloseTo(ACCOUNTS * GRANTED - net * BIN_PRICE, 3)
  expect(told.charged.size).toBeGreaterThan(50)
})
