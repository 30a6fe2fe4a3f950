/**
 * A stand-in as a process of its own, so that it can be killed: `NodeProcess.ts [file] [port]`. It prints its port, and keeps the log in
 * the file, if one is named.
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
