/** `doctor`: checks this host and its store. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import * as Administration from "../Administration.ts"
import type { Check } from "../Check.ts"
import * as Checks from "../Checks.ts"
import * as ErasureRegister from "../ErasureRegister.ts"
import * as Output from "../Output.ts"
import * as Style from "../Style.ts"

const line = ({ name, ok, detail, advice }: Check): string => {
  const told = `${ok ? Style.good("ok   ") : Style.bad("WRONG")}  ${name.padEnd(11)}  ${Output.printable(detail)}\n`
  return advice === undefined ? told : `${told}${" ".repeat(20)}-> ${Output.printable(advice)}\n`
}

export const doctor = Command.make(
  "doctor",
  {
    store: Administration.store,
    register: ErasureRegister.register,
    backups: Flag.String("backups").pipe(
      Flag.withMetavar("folder"),
      Flag.withDescription("A folder of backups: report keys that should have been deleted"),
      Flag.optional
    ),
    json: Output.json
  },
  ({ json, ...options }) =>
    Effect.gen(function* () {
      const checks = yield* Checks.run(options)
      const ok = checks.every((check) => check.ok)
      yield* Output.exitCode(ok)
      yield* Output.isForPeople(json) ? Output.text(checks.map(line).join("")) : Output.print(json, { ok, checks })
    })
).pipe(
  Command.withShortDescription("Check this host and its store: settings, providers, keys, clock, disk, permissions"),
  Command.withDescription(
    "Check this host and its store: settings, providers, mail, text messages, proxies, other hosts of its cluster, keys, clock, disk, permissions, and whether the files are whole. Changes nothing. Exits with 1 if anything is wrong. The log's content is checked by millrace audit"
  ),
  Administration.withExamples({
    "millrace doctor": "Run as the user of the server, in its environment",
    "millrace doctor --json --backups /backups": "Report to a monitor, including keys of backups that must be deleted"
  })
)
