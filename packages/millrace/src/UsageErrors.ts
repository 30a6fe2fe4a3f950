/** Prints wrong arguments like every failure: in one line on stderr, which names the help to read. */
import { Layer } from "effect"
import { CliConfig, CliOutput, GlobalFlag } from "effect/cli"
import * as Failure from "./Failure.ts"

const presenter = CliOutput.layerPresenter({
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Failure.tell({
          code: "InvalidUsage",
          message: `${event.errors.map(({ message }) => message).join("; ")} (see ${event.commandPath.join(" ")} --help)`
        })
      : CliOutput.defaultPresenter.present(event)
})

/** The flags of every command. Only the server logs, so the log level is a flag of `serve`. */
const builtIns = CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] })

export const layer = Layer.mergeAll(presenter, builtIns)
