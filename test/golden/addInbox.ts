/**
 * Adds a golden inbox, or a golden claim of an address: a recorded stream and the results of this release. Every later release must give the same results.
 *
 *     node --conditions=@millrace/source test/golden/addInbox.ts <name> < events.jsonl
 *
 * reads the events of one inbox, or of one address, as `add.ts` reads those of an account, and writes `test/golden/inbox/<name>/` or `test/golden/address/<name>/`:
 *
 * - `events.jsonl`, the events with their exact text;
 * - `states.jsonl`, the state after each.
 *
 * Nothing is ever overwritten.
 */
import { readLog } from "../../packages/core/test/ledger/Golden.ts"
import { replay } from "../../packages/core/test/inboxes/Golden.ts"
import { folderOf, given, write } from "./Recording.ts"

const events = given()
// Before anything is written: what cannot be read or does not fit its chain is no golden
const log = readLog(events)
const states = replay(log)
const category = log[0]?.stream.split("-", 1)[0] ?? ""
write(folderOf(category, process.argv[2] ?? ""), { "events.jsonl": events, "states.jsonl": states })
