/**
 * Accounts that people open by themselves. A sign-up opens a *provisional* account, whose address is not proved. The address stays free
 * until a link that was mailed to it is used: then it is claimed for that account, or the account that has it already is found.
 */
import { Aggregate, type EventStore, type StateStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer } from "effect"
import { AccountId, newAccountId } from "../Ids.ts"
import * as Decisions from "../ledger/Decisions.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { ofAccount, Vault, type VaultFailure } from "../vault/Vault.ts"
import { claim, EmailClaim } from "./Claim.ts"
import * as EmailAddress from "./EmailAddress.ts"
import { EMAIL, InvalidEmail, Registration } from "./Registration.ts"

export class SignUps extends Context.Service<
  SignUps,
  {
    /** Opens a provisional account for someone who gives an address, whoever has it. */
    readonly provisional: (
      email: string,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<string, InvalidEmail | VaultFailure | Aggregate.Failure>
    /**
     * The account of an address that was proved, verified. An address without an account goes to this provisional account, if that was
     * opened for it and is unverified, and else to a new account. Of concurrent callers, all get the same account.
     */
    readonly prove: (
      email: string,
      provisional: string | null,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<string, InvalidEmail | Decisions.AccountClosed | VaultFailure | Aggregate.Failure>
    /**
     * Closes and erases a provisional account that was never verified and has no credits. Any other account stays as it is. Abandoning
     * again completes what was interrupted.
     */
    readonly abandon: (
      accountId: string,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<void, StateStore.StateUnavailable | Aggregate.Failure>
    /** Claims whose streams this host cannot read: for `/ready`. */
    readonly refused: () => ReadonlyArray<Aggregate.StreamRefused>
  }
>()("@millrace/core/accounts/SignUps") {
  static readonly layer: Layer.Layer<SignUps, never, Ledger | Vault | Registration | EventStore.EventStore> = Layer.effect(
    SignUps,
    Effect.suspend(() => make)
  )
}

/** An address in its normal form. */
const addressOf = Effect.fnUntraced(function* (email: string) {
  return EmailAddress.normalise(email) ?? (yield* new InvalidEmail())
})

const make = Effect.gen(function* () {
  const ledger = yield* Ledger
  const vault = yield* Vault
  const registration = yield* Registration
  const emails = yield* Aggregate.make(EmailClaim)

  const sealed = (accountId: string, address: string) => vault.seal(ofAccount(accountId), EMAIL, address)

  const provisional: SignUps["Service"]["provisional"] = Effect.fn("SignUps.provisional")(function* (email, metadata) {
    const address = yield* addressOf(email)
    const accountId = yield* newAccountId
    yield* ledger.execute(accountId, Decisions.open({ sealedEmail: yield* sealed(accountId, address) }), metadata)
    return accountId
  })

  /** Whether an account was opened for this address by a sign-up, and nothing became of it yet. */
  const awaits = Effect.fnUntraced(function* (accountId: string, address: string) {
    const { state } = yield* ledger.read(accountId)
    if (state.status !== "opened" || state.verified || state.sealedEmail === "") return false
    return (yield* vault.open(ofAccount(accountId), EMAIL, state.sealedEmail)) === address
  })

  const prove: SignUps["Service"]["prove"] = Effect.fn("SignUps.prove")(function* (email, candidate, metadata) {
    const address = yield* addressOf(email)
    const emailHash = vault.hmac(EMAIL, address)
    let accountId: string | undefined = (yield* emails.read(emailHash)).state.accountId
    if (accountId === undefined) {
      const isWaiting = candidate !== null && (yield* awaits(candidate, address))
      const claimant = isWaiting ? AccountId.make(candidate) : yield* newAccountId
      const { state } = yield* emails.execute(emailHash, claim({ _tag: "EmailClaimed", accountId: claimant }), metadata)
      accountId = state.accountId ?? claimant
    }
    const { status } = (yield* ledger.read(accountId)).state
    // A claim without its account is left by a process that stopped in between
    if (status === "absent")
      yield* ledger.execute(accountId, Decisions.open({ sealedEmail: yield* sealed(accountId, address), emailHash }), metadata)
    yield* Effect.catchTag(registration.verify(accountId, metadata), "AccountNotFound", Effect.die)
    return accountId
  })

  const abandon: SignUps["Service"]["abandon"] = Effect.fn("SignUps.abandon")(function* (accountId, metadata) {
    const { state } = yield* ledger.execute(accountId, Decisions.abandon, metadata)
    if (state.status === "closed" && !state.verified) yield* vault.destroy(ofAccount(accountId))
  })

  return SignUps.of({ provisional, prove, abandon, refused: emails.refused })
})
