/** How a failed command ends: with one line on stderr, as JSON where stderr is not a terminal, and exit code 1. */
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

/** A command refuses its arguments, or cannot do its work, for the reason in `message`. */
export class CommandFailed extends Error {
  readonly _tag = "CommandFailed"
}

export const fail = (message: string): Effect.Effect<never, CommandFailed> => Effect.fail(new CommandFailed(message))

/** The reader of the output closed it, as `head` does. The command ends without a failure. */
export class ReaderGone extends Error {
  readonly _tag = "ReaderGone"
}

const WORDS: Readonly<Record<string, (failure: never) => string>> = {
  AccountNotFound: () => "there is no such account",
  AccountClosed: () => "the account is closed",
  PaymentUsed: ({ accountId }: { readonly accountId: string }) => `that payment bought credits for ${accountId} already`,
  BalanceTooLarge: ({ limit }: { readonly limit: number }) => `an account may have at most ${limit / 1000} credits`,
  PriceTooHigh: ({ operation, limit }: { readonly operation: string; readonly limit: number }) =>
    `the price of ${operation} may be at most ${limit / 1000} credits for each unit`,
  EmailTaken: () => "the address has an account already",
  InvalidEmail: () => "that is no e-mail address",
  ApiKeyNotFound: ({ keyId }: { readonly keyId: string }) => `the account has no key ${keyId}`,
  ExpiryPast: () => "the expiry lies in the past",
  LotNotFound: ({ lotId }: { readonly lotId: string }) => `there is no lot ${lotId}`,
  LotNotPaid: ({ lotId }: { readonly lotId: string }) => `lot ${lotId} was not paid for, so there is no payment to take back`,
  ReservationNotFound: ({ reservationId }: { readonly reservationId: string }) => `no reservation ${reservationId} was settled`,
  RefundExceedsCharge: ({ refundable }: { readonly refundable: number }) => `at most ${refundable / 1000} credits can be refunded`,
  StoreUnavailable: ({ reason }: { readonly reason: string }) => reason,
  InvalidConnectionString: ({ reason }: { readonly reason: string }) => reason,
  BlobUnavailable: ({ reason }: { readonly reason: string }) => `files of jobs cannot be kept: ${reason}`,
  BinFileError: ({ message }: { readonly message: string }) => `the file of BIN ranges cannot be used: ${message}`,
  StateUnavailable: ({ reason }: { readonly reason: string }) => reason,
  AppendInDoubt: ({ reason }: { readonly reason: string }) =>
    `it is unknown whether this was written; check before trying again: ${reason}`,
  WrongMasterKey: ({ reason }: { readonly reason: string }) => reason,
  MalformedMasterKey: ({ reason }: { readonly reason: string }) => reason,
  StreamRefused: ({ stream, revision, reason }: { readonly stream: string; readonly revision: number; readonly reason: string }) =>
    `stream ${stream} cannot be read at revision ${revision}: ${reason}`,
  UnreadableLog: ({ position, stream, reason }: { readonly position: string; readonly stream: string; readonly reason: string }) =>
    `the event at ${position} in ${stream} cannot be read: ${reason}`,
  Busy: ({ stream }: { readonly stream: string }) => `stream ${stream} is busy, try again`,
  SubjectDestroyed: () => "the sealed data of this account was erased",
  Tampered: () => "the sealed data of this account cannot be opened: it was changed, or belongs to another account"
}

/** A failure as one sentence that says what to do about it, without a stack. */
export const describe = (failure: Failure): string => {
  const words = WORDS[failure._tag]
  return words === undefined ? failure.message || failure._tag : words(failure as never)
}

/** Prints a failure as one line, whatever the message contains. */
export const tell = ({ code, message }: { readonly code: string; readonly message: string }): Effect.Effect<void> =>
  Effect.sync(() => {
    const line = message.replaceAll(/\s*\n\s*/gu, " ")
    process.stderr.write(process.stderr.isTTY ? `millrace: ${line}\n` : `${JSON.stringify({ error: { code, message: line } })}\n`)
  })

/** Prints a failure and sets exit code 1. An interruption by a signal is no failure. */
export const report = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.suspend(() => {
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
      ? tell({ code: error._tag, message: describe(error) })
      : tell({ code: "InternalError", message: `a bug in millrace: ${textOf(error)}` })
  })

const isFailure = (error: unknown): error is Failure =>
  typeof error === "object" && error !== null && "_tag" in error && typeof error._tag === "string"
