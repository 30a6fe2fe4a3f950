/** A process that delivers the webhooks of a store until it is killed: `node WebhookWorker.ts <store>`. Prints `ready`. */
import { createMillrace } from "../../src/index.ts"

/** Receivers are tried again soon, and another process takes over soon. */
export const WORKER = { allowPrivate: true, pauses: Array.from({ length: 8 }, () => 100), timeLimit: 500, ttl: 900, drain: 0 }

const [store] = process.argv.slice(2)
if (import.meta.main && store !== undefined) {
  await createMillrace({ store, operations: [], webhooks: WORKER, log: {} })
  console.log("ready")
}
