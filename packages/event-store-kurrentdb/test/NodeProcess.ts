/** A stand-in as a process of its own, so that it can be killed: serves the log in a file, on a port, and prints which. */
import { KurrentDbStandIn } from "@millrace/testing/kurrentdb"
import { Effect } from "effect"

const [, , file = "", port = "0"] = process.argv

const main = Effect.gen(function* () {
  const node = yield* KurrentDbStandIn.serve({ ...(file === "" ? {} : { file }), port: Number(port) })
  console.log(node.port)
  return yield* Effect.never
})

await Effect.runPromise(Effect.scoped(main))
