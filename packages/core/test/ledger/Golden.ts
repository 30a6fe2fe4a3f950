/** Recorded accounts and the states they lead to, as text that must stay the same in every release. See `test/golden/add.ts`. */
import { Account, AccountSnapshot, Decisions, Lots, Postings, toIso } from "@millrace/core"
import { Schema } from "effect"
import { decodeWith, type RecordedLog } from "../golden/Recorded.ts"

const { codec } = Account.Account
const encodeState = Schema.encodeSync(AccountSnapshot.accountSnapshots.state)

export const decodeLog = (log: RecordedLog) => decodeWith(codec, log)

/** The results of replaying a log, as text. `state` depends on the version of the fold, the others do not. */
export const replay = (log: RecordedLog): { readonly state: string; readonly postings: string; readonly balances: string } => {
  const postings: Array<string> = []
  const balances: Array<string> = []
  let account = Account.initial
  for (const { id: accountId, line, at, event } of decodeLog(log)) {
    const entries = Postings.postings(accountId, account, event)
    if (entries.length > 0) postings.push(JSON.stringify({ revision: line.revision, type: line.type, postings: entries }))
    account = Account.Account.evolve(account, event, at)
    const { purse, status } = Decisions.asOf(account, at)
    const { debts, holds, lots } = purse
    const left = Object.fromEntries(lots.map(({ lotId, left, held, claimed }) => [lotId, [left, held, claimed]]))
    const sums = { available: Lots.available(lots, at), held: Lots.held(lots), debt: Lots.total(debts) }
    const open = [...holds].map(([reservationId]) => reservationId).sort()
    balances.push(JSON.stringify({ revision: line.revision, at: toIso(at), status, ...sums, lots: left, holds: open }))
  }
  return { state: `${JSON.stringify(sorted(encodeState(account)), null, 1)}\n`, postings: text(postings), balances: text(balances) }
}

const text = (lines: ReadonlyArray<string>): string => lines.map((line) => `${line}\n`).join("")

/** Sorts fields by name, and maps (arrays of pairs) by key, so that the text is deterministic. */
const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) {
    const all = value.map(sorted)
    return all.every(isPair) ? all.sort(([a], [b]) => (a < b ? -1 : 1)) : all
  }
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, value]) => [name, sorted(value)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1))
  )
}

const isPair = (value: unknown): value is [string, unknown] => Array.isArray(value) && value.length === 2 && typeof value[0] === "string"
