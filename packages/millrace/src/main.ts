/** The process: what the command line says, until it ends or is told to end. */
import "effect/schema/SchemaJITCompiler/enable"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import * as Cli from "./Cli.ts"
import * as Failure from "./Failure.ts"
import * as Signals from "./Signals.ts"

Cli.run(process.argv.slice(2)).pipe(
  Effect.provide(NodeServices.layer),
  Effect.catchCause(Failure.report),
  // Failures were told in words; a signal interrupts, and everything open closes
  NodeRuntime.runMain({ disableErrorReporting: true, teardown: Signals.teardown })
)
