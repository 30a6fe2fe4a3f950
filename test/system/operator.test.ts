/** The operator view of the real server: its key, what it reads, and its page in a real browser. */
import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Credits, Decisions, Ledger } from "@millrace/core"
import { Lease } from "@millrace/event-sourcing"
import { SqliteEventStore, SqliteStateStore } from "@millrace/event-store-sqlite"
import { Effect, Exit, Layer, Schema, Scope } from "effect"
import type { Browser } from "playwright-core"
import { beforeAll, describe, expect, test } from "vitest"
import { createMillrace } from "../../packages/millrace/src/index.ts"
import { barriersOn, openBrowser, visit } from "./Browser.ts"
import { millrace } from "./InProcess.ts"
import { undoAfterwards } from "./Leftovers.ts"
import { asking } from "./Mail.ts"
import { call, newStore, openAccount, type Server, serve, temporaryFolder, UNLIMITED } from "./Server.ts"

const KEY = "operator-key-that-nobody-guesses-0123456789"
const OTHERS = 30
/** With the account that calls, and the one whose hold is overdue. */
const ALL = OTHERS + 2

const store = newStore()
let browser: Browser
let server: Server
let account: string
let key: string
/** Nobody calls for it, so nothing but recovery ends its hold. */
let idle: string

/** Reserves credits for a millisecond, and keeps every host from ending the hold. */
const leaveHold = (accountId: string) => {
  const stores = Layer.merge(
    SqliteEventStore.layer({ filename: store.file }),
    SqliteStateStore.layer({ filename: store.file.replace(/\.db$/u, ".state.db") })
  )
  const held = Effect.gen(function* () {
    yield* Effect.forkScoped(Lease.hold("deadlines/holds", { ttl: "1 hour" })(() => Effect.never))
    const call = { reservationId: "res_overdue", requestId: "req_overdue", operation: "grammar.check", quantity: 1, priceVersion: 1 }
    const reserve = Decisions.reserve({ ...call, unitPrice: Credits.of(2_000), lifetime: 1 })
    yield* Ledger.use((ledger) => ledger.execute(accountId, reserve))
  })
  const scope = Scope.makeUnsafe()
  undoAfterwards(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Effect.runPromise(
    Effect.flatMap(Layer.build(Layer.provideMerge(Ledger.layer(), stores)), (services) => Effect.provideContext(held, services)).pipe(
      Scope.provide(scope)
    )
  )
}

beforeAll(async () => {
  const host = await createMillrace({ store: store.url, operations: [], log: {} })
  for (let i = 0; i < OTHERS; i++) await host.accounts.open({ id: `user-${i}` })
  await host.close()
  idle = (await openAccount(store.url, 10)).account
  ;({ account, key } = await openAccount(store.url, 500))
  await leaveHold(idle)
  const file = join(store.folder, "operator.key")
  writeFileSync(file, `${KEY}\n`, { mode: 0o600 })
  const args = ["--store", store.url, "--jobs", "0", "--speech", "espeak", "--blobs", temporaryFolder(), "--log-level", "debug"]
  ;[browser, server] = await Promise.all([openBrowser(), serve([...args, "--operator-key-file", file], { env: UNLIMITED })])
  const accepted = await asking(server, key).send("/audio/tts", { method: "POST", body: JSON.stringify({ text: "Waits" }) })
  expect(accepted.status).toBe(200)
}, 120_000)

const Account = Schema.Struct({
  ...{ account_id: Schema.String, status: Schema.String, opened_at: Schema.String, last_activity_at: Schema.String },
  ...{ available: Schema.NullOr(Schema.Finite), reserved: Schema.NullOr(Schema.Finite), debt: Schema.NullOr(Schema.Finite) }
})
const Accounts = Schema.Struct({ accounts: Schema.Array(Account), next: Schema.NullOr(Schema.Int) })

const asked = (path = "", own: string | undefined = KEY, at: Server = server) => call(`${at.url}/api/v1/operator${path}`, { key: own })

const read = async <A>(path: string, shape: Schema.Codec<A, unknown>): Promise<A> => {
  const { body, status } = await asked(path)
  expect(status).toBe(200)
  return Schema.decodeUnknownSync(Schema.Struct({ data: shape }))(JSON.parse(body)).data
}

describe("what operators read", () => {
  test("accounts come in pages, those that were opened last first, and are found by their ids", async () => {
    const first = await read("/accounts", Accounts)
    const second = await read(`/accounts?before=${first.next}`, Accounts)
    expect([first.accounts.length, second.accounts.length, second.next]).toEqual([25, ALL - 25, null])
    const ids = [...first.accounts, ...second.accounts].map(({ account_id }) => account_id)
    expect(new Set(ids).size).toBe(ALL)
    expect(first.accounts[0]).toMatchObject({ account_id: account, status: "opened", available: 495, reserved: 5, debt: 0 })
    expect((await read(`/accounts?q=${account.slice(-8)}`, Accounts)).accounts.map(({ account_id }) => account_id)).toEqual([account])
    expect((await read("/accounts?q=user-3", Accounts)).accounts.map(({ account_id }) => account_id)).toEqual([ids.at(-4)])
    expect(await read("/accounts?q=nobody", Accounts)).toEqual({ accounts: [], next: null })
    expect((await asked("/accounts?before=-1")).status).toBe(422)
  })

  test("an account that is suspended says so, and its last activity is that", async () => {
    const before = (await read(`/accounts?q=${account}`, Accounts)).accounts[0]
    await millrace(["accounts", "suspend", "--store", store.url, "--account", account])
    const after = (await read(`/accounts?q=${account}`, Accounts)).accounts[0]
    expect([before?.status, after?.status]).toEqual(["opened", "suspended"])
    expect(String(after?.last_activity_at) > String(before?.last_activity_at)).toBe(true)
    await millrace(["accounts", "reinstate", "--store", store.url, "--account", account])
  })

  test("a hold that is overdue names its call, and jobs that wait name the oldest", async () => {
    const { holds, total } = await read("/holds", Schema.Struct({ total: Schema.Int, holds: Schema.Array(Schema.Json) }))
    expect(total).toBe(1)
    expect(holds).toMatchObject([
      { account_id: idle, operation: "grammar.check", request_id: "req_overdue", reservation_id: "res_overdue", amount: 2 }
    ])
    const { jobs } = await read("/jobs", Schema.Struct({ jobs: Schema.Array(Schema.Json) }))
    expect(jobs).toMatchObject([{ operation: "speech.synthesize", waiting: 1, running: 0, oldest: { account_id: account } }])
  })

  test("the state has every projection, and the head is that of an audit", async () => {
    const state = await read(
      "",
      Schema.Struct({
        ready: Schema.Json,
        projections: Schema.Array(Schema.Struct({ name: Schema.String, trouble: Schema.NullOr(Schema.String) })),
        accounts: Schema.Int,
        position: Schema.String
      })
    )
    expect(state).toMatchObject({ ready: { status: "ready", refused: [] }, accounts: ALL })
    expect(state.projections.map(({ trouble }) => trouble)).toEqual(state.projections.map(() => null))
    expect(state.projections.map(({ name }) => name)).toContain("the recovery of holds")
    const head = await read("/head", Schema.Json)
    const { code, stdout } = await millrace(["audit", "--store", store.url, "--json"])
    expect(code).toBe(0)
    expect(head).toEqual(JSON.parse(stdout).head)
    expect(head).toMatchObject({ position: state.position })
  })

  test("it only reads, is kept by nobody, and its key is in no log", async () => {
    for (const method of ["POST", "PUT", "DELETE"])
      expect((await call(`${server.url}/api/v1/operator/accounts`, { method, key: KEY, body: "{}" })).status).toBe(405)
    expect((await asked()).headers["cache-control"]).toBe("private, no-store")
    expect(server.stdout + server.stderr).toContain("/api/v1/operator")
    expect(server.stdout + server.stderr).not.toContain(KEY)
  })
})

describe("the operator's key", () => {
  test("is not that of an account, and wrong ones are throttled like API keys", { timeout: 60_000 }, async () => {
    const own = newStore()
    const guarded = await serve(["--store", own.url], { env: { ...UNLIMITED, MILLRACE_OPERATOR_KEY: KEY } })
    const ofAccount = await openAccount(own.url, 1)
    expect((await asked("", undefined, guarded)).status).toBe(200)
    expect((await call(`${guarded.url}/api/v1/operator`)).status).toBe(401)
    // Whether the input is right is for those who have the key
    expect((await call(`${guarded.url}/api/v1/operator/accounts?before=-1`)).status).toBe(401)
    expect((await asked("", ofAccount.key, guarded)).status).toBe(401)
    expect((await call(`${guarded.url}/api/v1/account/billing`, { key: KEY })).status).toBe(401)
    const statuses: Array<number> = []
    for (let i = 0; i < 30; i++) statuses.push((await asked("/head", `${KEY}${i}`, guarded)).status)
    expect(statuses).toContain(429)
    // The right one is never refused for the failures of others at its address
    expect((await asked("", KEY, guarded)).status).toBe(200)
  })

  test("is off by default: no path, no word of it in the document or the page", { timeout: 60_000 }, async () => {
    const plain = await serve(["--store", newStore().url], { env: UNLIMITED })
    expect((await asked("", KEY, plain)).status).toBe(404)
    expect((await call(`${plain.url}/api/v1/openapi.json`)).body).not.toContain('operator"')
    const { page } = await visit(browser, plain.url)
    await page.goto(`${plain.url}/#/operator`)
    await page.getByRole("heading", { name: "Sign in", level: 1 }).waitFor()
    expect(await page.getByText("Operator").count()).toBe(0)
    await page.context().close()
  })

  test("must be long, in one place, and in a file that nobody else may read; it is never shown", async () => {
    const file = join(temporaryFolder(), "key")
    const refused = async (args: ReadonlyArray<string>, env: Readonly<Record<string, string>>) => {
      const { code, stderr } = await millrace(["serve", "--store", "memory:", "--port", "0", ...args], { env })
      expect(code).toBe(1)
      return JSON.parse(stderr).error.message
    }
    const short = await refused([], { MILLRACE_OPERATOR_KEY: "short-secret" })
    expect(short).toBe(
      "the operator's key, by --operator-key-file or MILLRACE_OPERATOR_KEY, must have at least 32 letters, digits and signs, without spaces"
    )
    writeFileSync(file, "short-secret", { mode: 0o600 })
    expect(await refused(["--operator-key-file", file], {})).toBe(short)
    writeFileSync(file, KEY)
    expect(await refused(["--operator-key-file", file], { MILLRACE_OPERATOR_KEY: KEY })).toContain("are both set")
    chmodSync(file, 0o644)
    expect(await refused(["--operator-key-file", file], {})).toContain("the file of --operator-key-file cannot be used: others may read it")
    const given = createMillrace({ store: "memory:", operations: [], operatorKey: "short-secret" })
    await expect(given).rejects.toThrow("The option operatorKey of createMillrace is another text: give at least 32 letters")
  })
})

describe.each([
  { width: 1280, height: 860, colorScheme: "light" },
  { width: 360, height: 780, colorScheme: "dark" }
] as const)("its page at $width pixels, $colorScheme", ({ colorScheme, height, width }) => {
  test("is reached from the sign-in, keeps the key in memory, and has no barrier", { timeout: 60_000 }, async () => {
    const { page, wrongs } = await visit(browser, server.url, { viewport: { width, height }, colorScheme })
    await page.goto(server.url)
    await page.getByRole("link", { name: "Operator view" }).click()
    await page.getByRole("heading", { name: "Operator view", level: 1 }).waitFor()
    expect(await barriersOn(page)).toEqual([])
    await page.getByLabel("Operator key").fill(`${KEY}-wrong`)
    await page.getByRole("button", { name: "Open" }).click()
    await page.getByRole("alert").getByText("does not take this key").waitFor()
    await page.getByLabel("Operator key").fill(KEY)
    await page.getByRole("button", { name: "Open" }).click()
    await page.getByText("Serves calls").waitFor()
    const kept = "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])"
    expect(await page.evaluate(kept)).not.toContain(KEY)

    await page.getByRole("button", { name: "Read the head" }).click()
    await page.getByRole("region", { name: "the head" }).waitFor()
    const { body } = await asked("/head")
    expect(JSON.parse((await page.getByRole("region", { name: "the head" }).textContent()) ?? "")).toEqual(JSON.parse(body).data)
    for (const [short, name, shows] of [
      ["State", "State", "Recovery of holds"],
      ["Accounts", "Accounts", "Last activity"],
      ["Holds", "Overdue holds", "req_overdue"],
      ["Jobs", "Waiting jobs", "speech.synthesize"]
    ] as const) {
      await page.getByRole("navigation", { name: "Operator pages" }).getByRole("link", { name: short }).click()
      await page.getByRole("heading", { name, level: 1 }).waitFor()
      await page.getByText(shows).first().waitFor()
      expect([name, await barriersOn(page)]).toEqual([name, []])
      expect([name, await page.evaluate("document.documentElement.scrollWidth - innerWidth <= 0")]).toEqual([name, true])
    }
    await page.getByRole("link", { name: "Accounts" }).click()
    await page.getByRole("button", { name: "Earlier accounts" }).click()
    await expect.poll(() => page.getByText("Last activity").count()).toBe(ALL)
    await page.getByLabel("Part of an account's id").fill(account)
    await page.keyboard.press("Enter")
    await expect.poll(() => page.getByText("Last activity").count()).toBe(1)

    await page.reload()
    await page.getByRole("heading", { name: "Operator view", level: 1 }).waitFor()
    expect(wrongs).toEqual([])
    await page.context().close()
  })
})
