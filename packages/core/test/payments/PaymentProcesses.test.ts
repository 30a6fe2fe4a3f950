/** Four processes get one payment at once, each for its own account. One account gets the credits. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, type Scope } from "effect"
import { expect, test } from "vitest"
import * as Audit from "../../../audit/src/Audit.ts"
import { schema } from "../../../event-store-postgres/test/Postgres.ts"
import { start } from "../../../event-store-sqlite/test/Processes.ts"
import * as Decisions from "../../src/ledger/Decisions.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { host, type Store } from "../jobs/Worker.ts"

const ACCOUNTS = ["acc_1", "acc_2", "acc_3", "acc_4"]
const ROUNDS = 25

const script = fileURLToPath(new URL("PaymentWorker.ts", import.meta.url))

const worker = (store: Store, account: string) =>
  Effect.acquireRelease(
    Effect.sync(() => start(process.execPath, ["--conditions=@millrace/source", script, JSON.stringify(store), account])),
    ({ child, ended }) =>
      Effect.promise(() => {
        child.kill("SIGKILL")
        return ended
      })
  )

const once = (store: Store) =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    for (const id of ACCOUNTS) yield* ledger.execute(id, Decisions.open({ sealedEmail: "", emailHash: id }))
    const workers = yield* Effect.forEach(ACCOUNTS, (id) => worker(store, id))
    const printed = (text: string, count: number) => Effect.promise(() => Promise.all(workers.map((each) => each.printed(text, count))))
    yield* printed("ready", 1)
    for (let round = 0; round < ROUNDS; round++) {
      for (const { send } of workers) send(`pi_${round}`)
      yield* printed("told", round + 1)
      const told = workers.map(({ lines }) => lines.at(-1))
      expect(told.filter((line) => line === `told pi_${round} granted`)).toHaveLength(1)
      expect(told.filter((line) => line === `told pi_${round} PaymentUsed`)).toHaveLength(3)
    }
    const balances = yield* Effect.forEach(ACCOUNTS, (id) => ledger.balance(id))
    expect(balances.reduce((sum, { available }) => sum + available, 0)).toBe(ROUNDS * 1_000)
    const { problems } = yield* Audit.run()
    expect(problems).toEqual([])
  }).pipe(Effect.provide(host(store)))

const run = (body: Effect.Effect<void, unknown, Scope.Scope>, signal: AbortSignal) => Effect.runPromise(Effect.scoped(body), { signal })

test("four processes grant one payment once, on one SQLite file", { timeout: 120_000 }, ({ signal }) =>
  run(
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "millrace-payments-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
      )
      yield* once({ kind: "sqlite", folder })
    }),
    signal
  )
)

test("four processes grant one payment once, on one PostgreSQL", { timeout: 120_000 }, ({ signal }) =>
  run(
    Effect.flatMap(schema, ({ schema, url }) => once({ kind: "postgres", url, schema })),
    signal
  )
)
