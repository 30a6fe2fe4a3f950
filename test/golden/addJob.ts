/**
 * Adds a golden job: a recorded stream and the results of this release. Every later release must give the same results.
 *
 *     node --conditions=@millrace/source test/golden/addJob.ts <name> < events.jsonl
 *
 * reads the events of one job, as `add.ts` reads those of an account, and writes `test/golden/job/<name>/`:
 *
 * - `events.jsonl`, the events with their exact text;
 * - `states.jsonl`, the job after each.
 *
 * Nothing is ever overwritten.
 */
import { readLog } from "../../packages/core/test/ledger/Golden.ts"
import { replay } from "../../packages/core/test/jobs/Golden.ts"
import { folderOf, given, write } from "./Recording.ts"

const folder = folderOf("job", process.argv[2] ?? "")
const events = given()
// Before anything is written: what cannot be read or does not fit its chain is no golden
const states = replay(readLog(events))
write(folder, { "events.jsonl": events, "states.jsonl": states })
