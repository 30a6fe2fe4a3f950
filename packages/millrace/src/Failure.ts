/** What went wrong, in words: one line on stderr, as JSON where nobody reads along. The exit code is 1. */
import { EventCodec } from "@millrace/event-sourcing"
import { Cause, Effect } from "effect"
import { CliError } from "effect/cli"

/** Anything a command may fail with. */
interface Failure {
  readonly _tag: string
  readonly message?: string
}

/** Fails a command for a reason that it found itself. */
export class CommandFailed extends Error {
  readonly _tag = "CommandFailed"
}

/** Whoever read the output, as `head` does, has had enough: no failure, but there is nothing left to do. */
export class ReaderGone extends Error {
  readonly _tag = "ReaderGone"
}

const WORDS: Readonly<Record<string, (failure: never) => string>> = {
  AccountNotFound: () => "there is no such account",
  AccountClosed: () => "the account is closed",
  BalanceTooLarge: ({ limit }: { readonly limit: number }) => `an account may have at most ${limit / 1000} credits`,
  EmailTaken: () => "the address has an account already",
  InvalidEmail: () => "that is no e-mail address",
  ApiKeyNotFound: ({ keyId }: { readonly keyId: string }) => `the account has no key ${keyId}`,
  ExpiryPast: () => "the expiry lies in the past",
  LotNotFound: ({ lotId }: { readonly lotId: string }) => `there is no lot ${lotId}`,
  LotNotPaid: ({ lotId }: { readonly lotId: string }) => `nobody paid for lot ${lotId}, so there is no payment to take back`,
  ReservationNotFound: ({ reservationId }: { readonly reservationId: string }) => `no reservation ${reservationId} was settled`,
  RefundExceedsCharge: ({ refundable }: { readonly refundable: number }) => `at most ${refundable / 1000} credits can be given back`,
  StoreUnavailable: ({ reason }: { readonly reason: string }) => reason,
  InvalidConnectionString: ({ reason }: { readonly reason: string }) => reason,
  StateUnavailable: ({ reason }: { readonly reason: string }) => reason,
  AppendInDoubt: ({ reason }: { readonly reason: string }) => `whether it was written is not known, look before trying again: ${reason}`,
  WrongMasterKey: ({ reason }: { readonly reason: string }) => reason,
  MalformedMasterKey: ({ reason }: { readonly reason: string }) => reason,
  StreamRefused: ({ stream, revision, reason }: { readonly stream: string; readonly revision: number; readonly reason: string }) =>
    `stream ${stream} cannot be read at revision ${revision}: ${reason}`,
  UnreadableLog: ({ position, stream, reason }: { readonly position: string; readonly stream: string; readonly reason: string }) =>
    `the event at ${position} in ${stream} cannot be read: ${reason}`,
  Busy: ({ stream }: { readonly stream: string }) => `stream ${stream} is busy, try again`,
  SubjectDestroyed: () => "what this account had sealed was erased",
  Tampered: () => "what is sealed for this account does not open: it was changed, or belongs elsewhere"
}

/** A failure in words that name what to do about it, without a stack. */
export const describe = (failure: Failure): string => {
  const words = WORDS[failure._tag]
  return words === undefined ? failure.message || failure._tag : words(failure as never)
}

/** One line, whatever is in it. */
export const tell = ({ code, message }: { readonly code: string; readonly message: string }): Effect.Effect<void> =>
  Effect.sync(() => {
    const line = message.replaceAll(/\s*\n\s*/gu, " ")
    process.stderr.write(process.stderr.isTTY ? `millrace: ${line}\n` : `${JSON.stringify({ error: { code, message: line } })}\n`)
  })

/** Prints a failure and has the process exit with 1. Interruption, by a signal, is none. */
export const report = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (Cause.hasInterruptsOnly(cause)) return Effect.void
    const error = Cause.squash(cause)
    if (error instanceof ReaderGone) return Effect.void
    process.exitCode = 1
    // The command line has said already what is wrong with its words
    if (CliError.isCliError(error)) return Effect.void
    if (error instanceof EventCodec.UnreadableEvent) {
      return tell({ code: "UnreadableEvent", message: `an event of the log cannot be read, millrace audit says which: ${error.message}` })
    }
    return isFailure(error)
      ? tell({ code: error._tag, message: describe(error) })
      : tell({ code: "InternalError", message: `a fault of millrace itself: ${error instanceof Error ? error.message : String(error)}` })
  })

const isFailure = (error: unknown): error is Failure =>
  typeof error === "object" && error !== null && "_tag" in error && typeof error._tag === "string"
