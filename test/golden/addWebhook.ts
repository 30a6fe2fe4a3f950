/**
 * Adds a golden webhook: a recorded stream and the results of this release. Every later release must give the same results.
 *
 *     node --conditions=@millrace/source test/golden/addWebhook.ts <name> < events.jsonl
 *
 * reads the events of one webhook, as `add.ts` reads those of an account, and writes `test/golden/webhook/<name>/`:
 *
 * - `events.jsonl`, the events with their exact text;
 * - `states.jsonl`, the webhook after each.
 *
 * Nothing is ever overwritten.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { replay } from "../../packages/core/test/webhooks/Golden.ts"
import { readLog } from "../../packages/core/test/ledger/Golden.ts"

const [name = ""] = process.argv.slice(2)
if (!/^[a-z0-9-]+$/u.test(name)) throw new Error(`The name must have lower-case letters, digits and hyphens only: ${JSON.stringify(name)}`)
const folder = join(fileURLToPath(new URL("webhook", import.meta.url)), name)

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value))
const events = readFileSync(0, "utf8")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => {
    const { stream, revision, id, type, data, metadata } = JSON.parse(line)
    return `${JSON.stringify({ stream, revision, id, type, data: textOf(data), metadata: textOf(metadata) })}\n`
  })
  .join("")
// Before anything is written: what cannot be read or does not fit its chain is no golden
const states = replay(readLog(events))
mkdirSync(folder, { recursive: true })
for (const [file, text] of [
  ["events.jsonl", events],
  ["states.jsonl", states]
] as const) {
  writeFileSync(join(folder, file), text, { flag: "wx" })
  console.log(join(folder, file))
}
