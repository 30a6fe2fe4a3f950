/**
 * An auditor's program: replays another party's ledger, compares it with the head of the last audit, and recomputes balances from the events
 * alone. It opens the log read-only, and needs no key or password of the operator.
 *
 *   npm run auditor -w examples -- PATH/TO/millrace.db [head.json]
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { Audit, Head, type Report, sentences } from "@millrace/audit"
import { Account, Credits, Decisions, Lots } from "@millrace/core"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { SqliteEventStore } from "@millrace/event-store-sqlite"
import { Effect, Schema, Stream } from "effect"

export interface Findings {
  readonly report: Report
  /** The head of the last audit, if there was one. */
  readonly against: Head | undefined
  /** Decimal credits, by account, from the events alone. */
  readonly balances: ReadonlyMap<string, number>
}

/** Audits a log. If it is correct, stores the head in `headFile` for the next audit. */
export const visit = (filename: string, headFile: string): Promise<Findings> =>
  Effect.gen(function* () {
    const noted = existsSync(headFile) ? Schema.decodeUnknownSync(Head)(JSON.parse(readFileSync(headFile, "utf8"))) : undefined
    const report = yield* Audit.run(noted === undefined ? {} : { against: noted })
    if (report.ok) writeFileSync(headFile, JSON.stringify(report.head))
    return { report, against: noted, balances: yield* balances }
  }).pipe(Effect.provide(SqliteEventStore.layer({ filename, readOnly: true })), Effect.runPromise)

/** The balances: each account's fold, with the expiries that are due by now. */
const balances = Effect.gen(function* () {
  const log = yield* EventStore.EventStore
  const { codec } = Account.Account
  const accounts = new Map<string, Account.Account>()
  yield* Stream.runForEach(log.readAll(EventStore.start), (event) =>
    Effect.sync(() => {
      if (StreamName.category(event.stream) !== Account.Account.category) return
      const id = StreamName.id(event.stream)
      const before = accounts.get(id) ?? Account.initial
      accounts.set(id, Account.Account.evolve(before, codec.decode(event.type, event.data), Date.parse(HashChain.atOf(event))))
    })
  )
  const now = Date.now()
  return new Map(
    [...accounts].map(([id, account]) => [id, Credits.toDecimal(Lots.available(Decisions.asOf(account, now).purse.lots, now))])
  )
})

if (import.meta.main) {
  const [filename, headFile = "head.json"] = process.argv.slice(2)
  if (filename === undefined) throw new Error("Which log? npm run auditor -w examples -- PATH/TO/millrace.db [head.json]")
  const { report, against, balances } = await visit(filename, headFile)
  console.log(sentences(report, { against }).join("\n"))
  console.table([...balances].map(([account, available]) => ({ account, available })))
}
