/** The process: what the command line says, until it ends or is told to end. */
import "effect/schema/SchemaJITCompiler/enable"
import { NodeRuntime } from "@effect/platform-node"
import * as Cli from "./Cli.ts"
import * as Signals from "./Signals.ts"

// That its reader went away is told to whoever writes; without a listener it would end the process, a server too
process.stdout.on("error", () => {})

// Failures were told in words; a signal interrupts, and everything open closes
NodeRuntime.runMain(Cli.main(process.argv.slice(2)), { disableErrorReporting: true, teardown: Signals.teardown })
