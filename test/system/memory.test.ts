/** What a server keeps in memory of calls that are over: nothing that grows with them. Garbage is collected before each look. */
import { Agent } from "node:http"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { expect, it } from "vitest"
import { BIN, type Call, call, newStore, openAccount, type Server, serve, UNLIMITED } from "./Server.ts"

const WARM_UP = 2_000
const MEASURED = 4_000
const AT_ONCE = 16

/**
 * Bytes for each call. Some things are kept for a time: the outcome of a keyed call for ten minutes, the stream of a job until nobody
 * asked for it for a minute. With the code that V8 compiles meanwhile they come to some 700; a request that is kept adds 2,100.
 */
const MOST = 1_500

const Memory = Schema.fromJsonString(Schema.Struct({ heapUsed: Schema.Int, external: Schema.Int }))

/** Has the server collect its garbage, and say what is left. */
const memoryOf = async (server: Server): Promise<number> => {
  const looks = () => server.stderr.split("\n").filter((line) => line.startsWith('{"heapUsed"') && line.endsWith("}"))
  const before = looks().length
  server.child.kill("SIGUSR2")
  await server.until(() => looks().length > before)
  const { heapUsed, external } = Schema.decodeUnknownSync(Memory)(looks().at(-1))
  return heapUsed + external
}

const json = (body: unknown): Call => ({ method: "POST", body: JSON.stringify(body) })

/** A key in the right form that was never issued. */
const unknownKey = (i: number) => `mr_live_${String(i).padStart(26, "0")}_${"a".repeat(36)}`

/** The calls in turn, and what each answers. Grammar is left out: another thread does the work, and takes longest. */
const CALLS: ReadonlyArray<readonly [path: string, (i: number) => Call, status: ReadonlyArray<number>]> = [
  [BIN, () => ({}), [200]],
  [BIN, (i) => ({ headers: { "idempotency-key": `key-${i}` } }), [200]],
  ["/api/v1/bin/000000", () => ({}), [404]],
  ["/api/v1/account/billing", () => ({}), [200]],
  ["/api/v1/account/limits", () => ({}), [200]],
  ["/api/v1/account/limits", (i) => ({ key: unknownKey(i) }), [401, 429]],
  ["/api/v1/content/prompts/topics?q=a", () => ({}), [200]],
  ["/api/v1/catalog", () => ({}), [200]],
  ["/api/v1/email/validate", () => json({ email: "no address" }), [200]],
  ["/api/v1/email/validation-jobs", (i) => json({ emails: [`no address ${i}`] }), [201]],
  ["/nowhere", () => ({}), [404]]
]

it("grows by less than 1.5 kB for each call", { timeout: 600_000 }, async () => {
  const store = newStore()
  const { key } = await openAccount(store.url, 100_000)
  const probe = fileURLToPath(new URL("MemoryProbe.ts", import.meta.url))
  const server = await serve(["--store", store.url], { env: UNLIMITED, nodeArgs: ["--expose-gc", "--import", probe] })
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })
  let next = 0
  const until = (last: number) =>
    Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (next < last) {
          const i = next++
          const [path, options, expected] = CALLS[i % CALLS.length] ?? [BIN, () => ({}), [200]]
          const { status } = await call(`${server.url}${path}`, { key, ...options(i) }, agent)
          if (!expected.includes(status)) throw new Error(`${path} answered ${status}`)
        }
      })
    )
  await until(WARM_UP)
  const before = await memoryOf(server)
  await until(WARM_UP + MEASURED)
  expect(((await memoryOf(server)) - before) / MEASURED).toBeLessThan(MOST)
  agent.destroy()
  expect((await server.stop()).code).toBe(0)
})
