/**
 * Adds a golden account: a recorded stream and the results of this release. Every later release must give the same results.
 *
 *     node --conditions=@millrace/source test/golden/add.ts <name> < events.jsonl
 *
 * reads the events of one account, one JSON object a line with `stream`, `revision`, `id`, `type`, `data` and `metadata` as the
 * command line prints them, and writes `test/golden/account/<name>/`:
 *
 * - `events.jsonl`, the events with their exact text;
 * - `postings.jsonl`, the postings of each;
 * - `balances.jsonl`, the balances after each;
 * - `state.v<n>.json`, the state at the end by version n of the fold, its maps sorted.
 *
 *     node --conditions=@millrace/source test/golden/add.ts
 *
 * without a name adds to each golden account its state by a new version of the fold, after `AccountSnapshot.VERSION` changed.
 *
 * Nothing is ever overwritten: if a release gives another result than a golden, the release is wrong.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { AccountSnapshot } from "@millrace/core"
import { readLog, replay } from "../../packages/core/test/ledger/Golden.ts"

const accounts = fileURLToPath(new URL("account", import.meta.url))
const stateFile = `state.v${AccountSnapshot.VERSION}.json`

const write = (path: string, text: string): void => {
  writeFileSync(path, text, { flag: "wx" })
  console.log(path)
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value))

const add = (name: string): void => {
  const folder = join(accounts, name)
  if (!/^[a-z0-9-]+$/u.test(name)) throw new Error(`The name must have lower-case letters, digits and hyphens only: ${JSON.stringify(name)}`)
  if (existsSync(folder)) throw new Error(`${folder} exists already, and is not changed`)
  const events = readFileSync(0, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const { stream, revision, id, type, data, metadata } = JSON.parse(line)
      return `${JSON.stringify({ stream, revision, id, type, data: textOf(data), metadata: textOf(metadata) })}\n`
    })
    .join("")
  // Before anything is written: what cannot be read or does not fit its chain is no golden
  const { state, postings, balances } = replay(readLog(events))
  mkdirSync(folder, { recursive: true })
  write(join(folder, "events.jsonl"), events)
  write(join(folder, "postings.jsonl"), postings)
  write(join(folder, "balances.jsonl"), balances)
  write(join(folder, stateFile), state)
}

const addStates = (): void => {
  for (const name of readdirSync(accounts)) {
    const path = join(accounts, name, stateFile)
    if (!existsSync(path)) write(path, replay(readLog(readFileSync(join(accounts, name, "events.jsonl"), "utf8"))).state)
  }
}

const [name] = process.argv.slice(2)
if (name === undefined) addStates()
else add(name)
