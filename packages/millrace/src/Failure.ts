/** How a failed command ends: with one line on stderr, as JSON where stderr is not a terminal, and exit code 1. */
import { Money } from "@millrace/core"
import { EventCodec } from "@millrace/event-sourcing"
import { Cause, Effect } from "effect"
import { CliError } from "effect/cli"

/** Anything a command may fail with. */
export interface Failure {
  readonly _tag: string
  readonly message?: string
}

/** A thrown value as text. */
export const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** The code of an error of Node, such as `ENOENT`, or what kind of error it is. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error ? String(error.code) : error instanceof Error ? error.name : "an error"

/** A command refuses its arguments, or cannot do its work, for the reason in `message`. */
export class CommandFailed extends Error {
  readonly _tag = "CommandFailed"
}

export const fail = (message: string): Effect.Effect<never, CommandFailed> => Effect.fail(new CommandFailed(message))

/** The reader of the output closed it, as `head` does. The command ends without a failure. */
export class ReaderGone extends Error {
  readonly _tag = "ReaderGone"
}

/** A failure as one sentence, without a stack. It follows the name of the command, so it begins with a small letter. */
export const describe = (failure: Failure, money: Money.Money = Money.STANDARD): string =>
  (Money.sentenceOf(failure, money) || failure._tag).replace(/^[A-Z](?=[a-z]* )/u, (letter) => letter.toLowerCase())

/** Prints a failure as one line, whatever the message contains. */
export const tell = ({ code, message }: { readonly code: string; readonly message: string }): Effect.Effect<void> =>
  Effect.sync(() => {
    const line = message.replaceAll(/\s*\n\s*/gu, " ")
    process.stderr.write(process.stderr.isTTY ? `millrace: ${line}\n` : `${JSON.stringify({ error: { code, message: line } })}\n`)
  })

/** Prints a failure and sets exit code 1. An interruption by a signal is no failure. */
export const report = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.flatMap(Money.Current, (money) => {
    if (Cause.hasInterruptsOnly(cause)) return Effect.void
    const error = Cause.squash(cause)
    if (error instanceof ReaderGone) return Effect.void
    process.exitCode = 1
    // Effect's command line has already printed usage errors
    if (CliError.isCliError(error)) return Effect.void
    if (error instanceof EventCodec.UnreadableEvent) {
      return tell({ code: "UnreadableEvent", message: `an event of the log cannot be read, millrace audit says which: ${error.message}` })
    }
    return isFailure(error)
      ? tell({ code: error._tag, message: describe(error, money) })
      : tell({ code: "InternalError", message: `a bug in millrace: ${textOf(error)}` })
  })

const isFailure = (error: unknown): error is Failure =>
  typeof error === "object" && error !== null && "_tag" in error && typeof error._tag === "string"
