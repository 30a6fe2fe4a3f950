/** Whatever a client does with its connection, the server goes on: it serves the next request, and charges what it answers. */
import { Schema } from "effect"
import { expect, test } from "vitest"
import { headerOf, type RawAnswer, RawSocket } from "./RawSocket.ts"
import { auditOf, call, newStore, openAccount, Process, readLog, serve, UNLIMITED } from "./Server.ts"
import { type Way, ways } from "./SocketWays.ts"

const GRANT = 20
const NAMES = Object.keys(ways(""))

const wayOf = (name: string, key: string): Way => {
  const way = ways(key)[name]
  if (way === undefined) throw new Error(`There is no way "${name}"`)
  return way
}

/** Goes one way to its end, and tells what was answered. */
const go = async (port: number, { sent, statuses = [], ending = "wait" }: Way): Promise<ReadonlyArray<RawAnswer>> => {
  const socket = await RawSocket.open(port)
  for (const bytes of sent) await socket.write(bytes)
  if (ending === "reset") socket.reset()
  if (ending === "leave") socket.leave()
  if (ending === "end") {
    socket.end()
    await socket.answered(Number.POSITIVE_INFINITY)
  }
  if (ending === "wait") await socket.answered(statuses.length)
  socket.leave()
  return socket.answers
}

/** What an account has, once nothing is held for it any more. */
const settled = async (port: number, key: string): Promise<number> => {
  const giveUpAt = performance.now() + 10_000
  for (;;) {
    const { body } = await call(`http://127.0.0.1:${port}/api/v1/account/billing`, { key })
    const { balance, held } = JSON.parse(body).data
    if (held === 0) return balance
    if (performance.now() > giveUpAt) throw new Error(`Still held: ${body}`)
  }
}

const isAlive = async ({ child }: Process, port: number): Promise<boolean> =>
  child.exitCode === null && (await call(`http://127.0.0.1:${port}/health`)).status === 200

/** Credits that answers say they cost. */
const chargedBy = (answers: ReadonlyArray<RawAnswer>): number =>
  answers.reduce((sum, answer) => sum + Number(headerOf(answer, "x-credits-charged") ?? 0), 0)

test("a server answers every use of a connection, charges what it answers, and stays up", { timeout: 300_000 }, async () => {
  const { url: store } = newStore()
  const server = await serve(["--store", store], { env: UNLIMITED })
  const seen = new Map<string, { readonly name: string; readonly charged: number; readonly unseen: number }>()
  for (const name of NAMES) {
    const { account, key } = await openAccount(store, GRANT)
    const way = wayOf(name, key)
    const { mayGoOn = false, statuses, unseen = 0 } = way
    const answers = await go(server.port, way)
    const answered = answers.map(({ status }) => status)
    if (statuses !== undefined) {
      expect([name, ...(mayGoOn ? answered.slice(0, statuses.length) : answered)]).toEqual([name, ...statuses])
    }
    expect([name, await isAlive(server, server.port)]).toEqual([name, true])
    const charged = chargedBy(answers)
    if (unseen === 0 && !mayGoOn) expect([name, await settled(server.port, key)]).toEqual([name, GRANT - charged])
    seen.set(account, { name, charged, unseen: mayGoOn ? GRANT : unseen })
  }
  expect((await server.stop()).code).toBe(0)

  // All that the log says was charged was answered, or may have been missed by a client that did not stay
  const log = await readLog(store)
  for (const [account, { charged, name, unseen }] of seen) {
    const ends = log.filter(({ stream, type }) => stream.includes(account) && type === "OperationSucceeded")
    const total = ends.reduce((sum, { data }) => sum + Number(data["charged"]) / 1_000, 0)
    expect(total, name).toBeGreaterThanOrEqual(charged)
    expect(total, name).toBeLessThanOrEqual(charged + unseen)
  }
  expect(await auditOf(store)).toMatchObject({ ok: true, problems: [] })
})

const Mounted = Schema.fromJsonString(Schema.Struct({ port: Schema.Int, keys: Schema.Array(Schema.String) }))

test("a host that mounts the routes in its own server stays up, and keeps no requests", { timeout: 300_000 }, async () => {
  const host = new Process([String(NAMES.length)], {
    script: new URL("mounted.ts", import.meta.url).pathname,
    nodeArgs: ["--conditions=@millrace/source"]
  })
  await host.until(() => host.stdout.includes("\n"))
  const { keys, port } = Schema.decodeUnknownSync(Mounted)(host.stdout)
  for (const [index, name] of NAMES.entries()) {
    const key = keys[index] ?? ""
    const before = await settled(port, key)
    // The host's own server answers what is no request, in its own way
    const answers = await go(port, wayOf(name, key))
    expect([name, await isAlive(host, port)]).toEqual([name, true])
    expect([name, (await settled(port, key)) <= before - chargedBy(answers)]).toEqual([name, true])
  }
  await host.kill()
})
