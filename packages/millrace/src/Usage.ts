/** What is wrong with the words of a command is told like every failure: in one line on stderr, with where to read on. */
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

/** What every command takes beside its own flags. Logs are the server's, and so is their level. */
const builtIns = CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] })

export const layer = Layer.mergeAll(presenter, builtIns)
