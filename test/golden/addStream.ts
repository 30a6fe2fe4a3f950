/**
 * Adds a golden stream: a recorded stream and the results of this release. Every later release must give the same results.
 *
 *     node --conditions=@millrace/source test/golden/addStream.ts <name> < events.jsonl
 *
 * reads the events of one stream that is no account, as `add.ts` reads those of an account, and writes `test/golden/<category>/<name>/`:
 *
 * - `events.jsonl`, the events with their exact text;
 * - `states.jsonl`, the state after each.
 *
 * Nothing is ever overwritten.
 */
import { StreamName } from "@millrace/event-sourcing"
import { readLog, streamOf } from "../../packages/core/test/golden/Recorded.ts"
import { replay } from "../../packages/core/test/golden/Streams.ts"
import { folderOf, given, write } from "./Recording.ts"

const events = given()
// Before anything is written: what cannot be read or does not fit its chain is no golden
const log = readLog(events)
const states = replay(log).map(({ state }) => `${JSON.stringify(state)}\n`)
write(folderOf(StreamName.category(streamOf(log)), process.argv[2] ?? ""), { "events.jsonl": events, "states.jsonl": states.join("") })
