/**
 * The node that tests run against: the one that KURRENTDB_URL (or EVENTSTOREDB_URL) names, else a stand-in of their own. What must hold
 * anywhere asks for an address and does not know which it got; what needs faults asks for a stand-in.
 */

import { Effect, type Scope } from "effect"
import { KurrentDbStandIn } from "./standin/index.ts"

const given = process.env["KURRENTDB_URL"] ?? process.env["EVENTSTOREDB_URL"]

if (given === undefined)
  process.stderr.write(
    "\n!! KurrentDB: NO REAL NODE WAS SEEN. These tests ran against the stand-in only; set KURRENTDB_URL to run them on a node.\n"
  )

/** A stand-in that does what a real node may do, and a test may not assume it does not. */
const contrary = Effect.map(KurrentDbStandIn.serve(), ({ faults, url }) => {
  faults.beforeCaughtUp = 1
  faults.missesOfRevived = 2
  return url
})

/** A connection string. */
export const address: Effect.Effect<string, KurrentDbStandIn.NotServed, Scope.Scope> =
  given === undefined ? contrary : Effect.succeed(given)
