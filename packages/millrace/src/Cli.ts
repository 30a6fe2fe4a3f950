/** The command line: every command. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Money } from "@millrace/core"
import { Effect, Layer, Logger } from "effect"
import { CliConfig, type CliError, CliOutput, Command, GlobalFlag } from "effect/cli"
import { accounts } from "./commands/Accounts.ts"
import { audit } from "./commands/Audit.ts"
import { backup } from "./commands/Backup.ts"
import { balance } from "./commands/Balance.ts"
import { charges } from "./commands/Charges.ts"
import { coupons } from "./commands/Coupons.ts"
import { credits } from "./commands/Credits.ts"
import { doctor } from "./commands/Doctor.ts"
import { events } from "./commands/Events.ts"
import { holds } from "./commands/Holds.ts"
import { journal } from "./commands/Journal.ts"
import { keys } from "./commands/Keys.ts"
import { payments } from "./commands/Payments.ts"
import { prices } from "./commands/Prices.ts"
import { proxy } from "./commands/Proxy.ts"
import { restore } from "./commands/Restore.ts"
import { serve } from "./commands/Serve.ts"
import { webhooks } from "./commands/Webhooks.ts"
import * as Failure from "./Failure.ts"
import * as MoneySetting from "./MoneySetting.ts"
import * as Progress from "./Progress.ts"
import * as StateUrl from "./StateUrl.ts"
import { VERSION } from "./Version.ts"

const millrace = Command.make("millrace").pipe(
  Command.withDescription("A credit ledger for APIs that bill by the call: serve it, administer it, audit it"),
  Command.withSubcommands([
    serve,
    proxy,
    accounts,
    keys,
    credits,
    payments,
    coupons,
    prices,
    holds,
    charges,
    webhooks,
    balance,
    events,
    audit,
    journal,
    backup,
    restore,
    doctor
  ]),
  Command.withGlobalFlags([StateUrl.State]),
  Command.withExamples([
    { command: "millrace serve --demo", description: "Serve on 127.0.0.1:8787, with a demo account" },
    { command: "millrace audit", description: "Replay the log, from another terminal" }
  ])
)

/** An argument in excess may be the value of a flag, and an address may have a password. */
const told = ({ _tag, message }: CliError.CliError): string =>
  _tag === "UnexpectedArgument" || _tag === "UnknownSubcommand" ? message.replaceAll(/:\/\/[^"]*/gu, "://***") : message

/** Prints wrong arguments like every failure: in one line on stderr, which names the help to read. */
const usageErrors = CliOutput.layerPresenter({
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Failure.tell({
          code: "InvalidUsage",
          message: `${event.errors.map(told).join("; ")} (see ${event.commandPath.join(" ")} --help)`
        })
      : CliOutput.defaultPresenter.present(event)
})

/** The flags of every command. Only the server logs, so the log level is a flag of `serve`. */
const builtIns = CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] })

/** In the money that the environment says. */
const inMoney = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(MoneySetting.byEnvironment, (money) => Effect.provideService(effect, Money.Current, money))

/** Runs a command and fails as it fails. */
export const run = (args: ReadonlyArray<string>) =>
  inMoney(
    Effect.suspend(() => Command.runWith(millrace, { version: VERSION })(args)).pipe(Effect.provide(Layer.mergeAll(usageErrors, builtIns)))
  )

/** Runs a command as a process does: prints a failure and sets the exit code. */
export const main = (args: ReadonlyArray<string>): Effect.Effect<void> =>
  inMoney(Effect.catchCause(run(args), Failure.report)).pipe(
    Effect.provide(NodeServices.layer),
    // Stdout has the result alone
    Effect.provideService(Logger.LogToStderr, true),
    Effect.provideService(Progress.Shown, Progress.terminalOf(process.stderr, process.env["TERM"])),
    Effect.catchCause(Failure.report)
  )
