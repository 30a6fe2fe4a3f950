/**
 * The node that tests run against: the one in KURRENTDB_URL (or EVENTSTOREDB_URL), else a stand-in. Tests that pass at any node take only
 * its address; tests that need faults start a stand-in.
 */

import { Effect, type Scope } from "effect"
import { KurrentDbStandIn } from "./standin/index.ts"

const given = process.env["KURRENTDB_URL"] ?? process.env["EVENTSTOREDB_URL"]

if (given === undefined)
  process.stderr.write(
    "\n!! KurrentDB: NO REAL NODE WAS SEEN. These tests ran against the stand-in only; set KURRENTDB_URL to run them on a node.\n"
  )

/** A stand-in with the behaviour that a real node may show, so that no test assumes otherwise. */
const contrary = Effect.map(KurrentDbStandIn.serve(), ({ faults, url }) => {
  faults.beforeCaughtUp = 1
  faults.missesOfRevived = 2
  return url
})

/** A connection string. */
export const address: Effect.Effect<string, KurrentDbStandIn.NotServed, Scope.Scope> =
  given === undefined ? contrary : Effect.succeed(given)
