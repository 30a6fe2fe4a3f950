/**
 * Adds a golden proxy session: a recorded stream and the results of this release. Every later release must give the same results.
 *
 *     node --conditions=@millrace/source test/golden/addProxySession.ts <name> < events.jsonl
 *
 * reads the events of one proxy session, as `add.ts` reads those of an account, and writes `test/golden/proxySession/<name>/`:
 *
 * - `events.jsonl`, the events with their exact text;
 * - `states.jsonl`, the session after each.
 *
 * Nothing is ever overwritten.
 */
import { readLog } from "../../packages/core/test/ledger/Golden.ts"
import { replay } from "../../packages/core/test/proxies/Golden.ts"
import { folderOf, given, write } from "./Recording.ts"

const folder = folderOf("proxySession", process.argv[2] ?? "")
const events = given()
// Before anything is written: what cannot be read or does not fit its chain is no golden
const states = replay(readLog(events))
write(folder, { "events.jsonl": events, "states.jsonl": states })
