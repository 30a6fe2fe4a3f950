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
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { AccountSnapshot } from "@millrace/core"
import { readLog } from "../../packages/core/test/golden/Recorded.ts"
import { replay } from "../../packages/core/test/ledger/Golden.ts"
import { folderOf, given, write } from "./Recording.ts"

const accounts = fileURLToPath(new URL("account", import.meta.url))
const stateFile = `state.v${AccountSnapshot.VERSION}.json`

const add = (name: string): void => {
  const folder = folderOf("account", name)
  if (existsSync(folder)) throw new Error(`${folder} exists already, and is not changed`)
  const events = given()
  // Before anything is written: what cannot be read or does not fit its chain is no golden
  const { balances, postings, state } = replay(readLog(events))
  write(folder, { "events.jsonl": events, "postings.jsonl": postings, "balances.jsonl": balances, [stateFile]: state })
}

const addStates = (): void => {
  for (const name of readdirSync(accounts)) {
    const folder = join(accounts, name)
    if (existsSync(join(folder, stateFile))) continue
    write(folder, { [stateFile]: replay(readLog(readFileSync(join(folder, "events.jsonl"), "utf8"))).state })
  }
}

const [name] = process.argv.slice(2)
if (name === undefined) addStates()
else add(name)
