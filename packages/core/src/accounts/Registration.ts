/**
 * Accounts as they come and go: opened for an address, verified, suspended, closed, erased. An address is claimed before its account
 * is opened; whoever is stopped in between leaves a claim that the next attempt with the same address finishes.
 *
 * The log never holds an address: its stream is named by an HMAC, and the account keeps it sealed under the account's own key.
 */
import { Aggregate, type EventStore, type StateStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Schema } from "effect"
import * as Credits from "../Credits.ts"
import { type AccountId, newAccountId, signUpLotIdOf } from "../Ids.ts"
import * as Decisions from "../ledger/Decisions.ts"
import { type Committed, Ledger } from "../ledger/Ledger.ts"
import { ofAccount, Vault, type VaultFailure } from "../vault/Vault.ts"
import * as EmailAddress from "./EmailAddress.ts"
import { claim, EmailClaim } from "./EmailClaim.ts"

/** What an account gets, once, when its address is verified: 200 credits. */
export const SIGNUP_CREDITS = Credits.of(200_000)

export interface Options {
  /** Thousandths; {@link SIGNUP_CREDITS} unless the host is more or less generous. */
  readonly signUpCredits?: Credits.Credits
}

/** It is no e-mail address. */
export class InvalidEmail extends Schema.TaggedError<InvalidEmail>()("InvalidEmail", {}) {}

/** The address has an account, or had one: nothing else is told. */
export class EmailTaken extends Schema.TaggedError<EmailTaken>()("EmailTaken", {}) {}

type Refusal = Decisions.AccountNotFound | Decisions.AccountClosed | Aggregate.Failure
type Act = (accountId: string, metadata?: Aggregate.Metadata) => Effect.Effect<Committed, Refusal>

const PURPOSE = "email"

export class Registration extends Context.Service<
  Registration,
  {
    /** A new account for this address, not yet verified. However many ask at once, one of them gets it. */
    readonly open: (
      email: string,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<AccountId, InvalidEmail | EmailTaken | VaultFailure | Aggregate.Failure>
    /** The account of an address, whatever became of it. */
    readonly find: (email: string) => Effect.Effect<AccountId | undefined, Aggregate.Failure>
    /** The address of an account. */
    readonly email: (accountId: string) => Effect.Effect<string, Decisions.AccountNotFound | VaultFailure | Aggregate.Failure>
    /** The first time, the account gets its sign-up credits; again: nothing. */
    readonly verify: Act
    readonly suspend: Act
    readonly reinstate: Act
    readonly close: Act
    /**
     * Closes the account and destroys its key: its address, labels, replies and jobs cannot be read any more, by anyone. Amounts and
     * ids stay, and so does the claim on the address. Asked again, it makes sure.
     */
    readonly erase: (
      accountId: string,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<void, Decisions.AccountNotFound | StateStore.StateUnavailable | Aggregate.Failure>
    /** Claims that this host refuses to read at present, for `/ready`. */
    readonly refused: () => ReadonlyArray<Aggregate.StreamRefused>
  }
>()("@millrace/core/accounts/Registration") {
  static readonly layer = (options: Options = {}): Layer.Layer<Registration, never, Ledger | Vault | EventStore.EventStore> =>
    Layer.effect(Registration, make(options))
}

const make = Effect.fnUntraced(function* ({ signUpCredits = SIGNUP_CREDITS }: Options) {
  const ledger = yield* Ledger
  const vault = yield* Vault
  const claims = yield* Aggregate.make(EmailClaim)

  const open = Effect.fn("Registration.open")(function* (email: string, metadata?: Aggregate.Metadata) {
    const address = EmailAddress.normalise(email)
    if (address === undefined) return yield* new InvalidEmail()
    const emailHash = vault.hmac(PURPOSE, address)
    const id = yield* newAccountId
    const { state } = yield* claims.execute(emailHash, claim(id), metadata)
    const accountId = state.accountId ?? id
    if (accountId !== id) {
      const { status } = (yield* ledger.read(accountId)).state
      if (status !== "absent") return yield* new EmailTaken()
    }
    const sealedEmail = yield* vault.seal(ofAccount(accountId), PURPOSE, address)
    const opened = yield* ledger.execute(accountId, Decisions.open({ sealedEmail, emailHash }), metadata)
    // Of those who finish one claim at once, the one whose event stands has opened it
    if (opened.events.length === 0) return yield* new EmailTaken()
    return accountId
  })

  const find = Effect.fn("Registration.find")(function* (email: string) {
    const address = EmailAddress.normalise(email)
    if (address === undefined) return undefined
    const { accountId } = (yield* claims.read(vault.hmac(PURPOSE, address))).state
    if (accountId === undefined) return undefined
    return (yield* ledger.read(accountId)).state.status === "absent" ? undefined : accountId
  })

  const email = Effect.fn("Registration.email")(function* (accountId: string) {
    const { status, sealedEmail } = (yield* ledger.read(accountId)).state
    if (status === "absent") return yield* new Decisions.AccountNotFound()
    return yield* vault.open(ofAccount(accountId), PURPOSE, sealedEmail)
  })

  const close: Act = (accountId, metadata) => ledger.execute(accountId, Decisions.close, metadata)

  return Registration.of({
    open,
    find,
    email,
    verify: (accountId, metadata) => ledger.execute(accountId, Decisions.verify(signUpCredits, signUpLotIdOf(accountId)), metadata),
    suspend: (accountId, metadata) => ledger.execute(accountId, Decisions.suspend, metadata),
    reinstate: (accountId, metadata) => ledger.execute(accountId, Decisions.reinstate, metadata),
    close,
    erase: Effect.fn("Registration.erase")(function* (accountId: string, metadata?: Aggregate.Metadata) {
      yield* Effect.catchTag(close(accountId, metadata), "AccountClosed", () => Effect.void)
      yield* vault.destroy(ofAccount(accountId))
    }),
    refused: claims.refused
  })
})
