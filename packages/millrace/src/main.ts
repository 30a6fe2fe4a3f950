/** The process: runs the command line until it ends or a signal ends it. */
import "effect/schema/SchemaJITCompiler/enable"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Cli from "./Cli.ts"
import * as Signals from "./Signals.ts"

// The writer to a closed output gets the error; without a listener the error would also end the process
process.stdout.on("error", () => {})

// Failures were printed already; a signal interrupts, and every scope closes
NodeRuntime.runMain(Cli.main(process.argv.slice(2)), { disableErrorReporting: true, teardown: Signals.teardown })
