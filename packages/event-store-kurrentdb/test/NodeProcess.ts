/**
 * Runs a stand-in in a process of its own, so that a test can kill it: `NodeProcess.ts [file] [port]`. It prints its port, and keeps the
 * log in the file, if one is named.
 */

import { Effect } from "effect"
import { KurrentDbStandIn } from "./standin/index.ts"

const [, , file = "", port = "0"] = process.argv

const main = Effect.gen(function* () {
  const node = yield* KurrentDbStandIn.serve({ port: Number(port), ...(file === "" ? {} : { file }) })
  console.log(node.port)
  return yield* Effect.never
})

await Effect.runPromise(Effect.scoped(main))
