/**
 * The life of accounts: opened for an e-mail address, verified, suspended, closed, erased. An address is claimed before its account is
 * opened. A process that stops in between leaves a claim, and the next attempt with the same address completes it.
 *
 * The log holds no address in clear: the claim's stream is named by an HMAC, and the account keeps the address sealed under its own key.
 */
import { Aggregate, type EventStore, type StateStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Schema } from "effect"
import * as Credits from "../Credits.ts"
import { type AccountId, newAccountId, signUpLotIdOf } from "../Ids.ts"
import * as Decisions from "../ledger/Decisions.ts"
import { type Committed, Ledger } from "../ledger/Ledger.ts"
import { ofAccount, Vault, type VaultFailure } from "../vault/Vault.ts"
import { claim, EmailClaim } from "./Claim.ts"
import * as EmailAddress from "./EmailAddress.ts"

/** What an account is granted once, when its address is verified: 200 credits. */
export const SIGNUP_CREDITS = Credits.of(200_000)

export interface Options {
  /** Thousandths; {@link SIGNUP_CREDITS} by default. */
  readonly signUpCredits?: Credits.Credits
}

/** The text is no e-mail address. */
export class InvalidEmail extends Schema.TaggedError<InvalidEmail>()("InvalidEmail", {}) {}

/** The address has, or had, an account. The error tells nothing more. */
export class EmailTaken extends Schema.TaggedError<EmailTaken>()("EmailTaken", {}) {}

type Refusal = Decisions.AccountNotFound | Decisions.AccountClosed | Aggregate.Failure
type Act = (accountId: string, metadata?: Aggregate.Metadata) => Effect.Effect<Committed, Refusal>

const PURPOSE = "email"

export class Registration extends Context.Service<
  Registration,
  {
    /** Opens an unverified account for an address. Of several concurrent callers, one succeeds and the others fail with `EmailTaken`. */
    readonly open: (
      email: string,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<AccountId, InvalidEmail | EmailTaken | VaultFailure | Aggregate.Failure>
    /** The account of an address, whatever its status; undefined when there is none. */
    readonly find: (email: string) => Effect.Effect<AccountId | undefined, Aggregate.Failure>
    /** The address of an account. */
    readonly email: (accountId: string) => Effect.Effect<string, Decisions.AccountNotFound | VaultFailure | Aggregate.Failure>
    /** Verifies the address: the first time, the account is granted its sign-up credits. */
    readonly verify: Act
    readonly suspend: Act
    readonly reinstate: Act
    readonly close: Act
    /**
     * Closes the account and destroys its vault key: nobody can read its address, labels, replies and jobs any more. Amounts and ids stay,
     * and so does the claim on the address. Erasing again completes an erasure that was interrupted.
     */
    readonly erase: (
      accountId: string,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<void, Decisions.AccountNotFound | StateStore.StateUnavailable | Aggregate.Failure>
    /** Claims whose streams this host cannot read: for `/ready`. */
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
    const { state } = yield* claims.execute(emailHash, claim({ _tag: "EmailClaimed", accountId: id }), metadata)
    const accountId = state.accountId ?? id
    if (accountId !== id) {
      const { status } = (yield* ledger.read(accountId)).state
      if (status !== "absent") return yield* new EmailTaken()
    }
    const sealedEmail = yield* vault.seal(ofAccount(accountId), PURPOSE, address)
    const opened = yield* ledger.execute(accountId, Decisions.open({ sealedEmail, emailHash }), metadata)
    // Of several callers that complete one claim at once, the one whose event was written has opened the account
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
