/**
 * Adds a golden message or wait: a recorded stream and the results of this release. Every later release must give the same results.
 *
 *     node --conditions=@millrace/source test/golden/addVerification.ts <name> < events.jsonl
 *
 * reads the events of one stream `sms-` or `verification-`, as `add.ts` reads those of an account, and writes
 * `test/golden/verification/<name>/`:
 *
 * - `events.jsonl`, the events with their exact text;
 * - `states.jsonl`, the state after each.
 *
 * Nothing is ever overwritten.
 */
import { readLog } from "../../packages/core/test/ledger/Golden.ts"
import { replay } from "../../packages/core/test/verification/Golden.ts"
import { folderOf, given, write } from "./Recording.ts"

const folder = folderOf("verification", process.argv[2] ?? "")
const events = given()
// Before anything is written: what cannot be read or does not fit its chain is no golden
const states = replay(readLog(events))
write(folder, { "events.jsonl": events, "states.jsonl": states })
