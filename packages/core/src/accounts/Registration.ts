/**
 * The life of accounts: opened for an e-mail address, for a host's own id, or for both; verified, suspended, closed, erased. Both names are
 * claimed before the account is opened. A process that stops in between leaves a claim, and the next attempt with the same names completes
 * it.
 *
 * The log holds neither name in clear: the claims' streams are named by HMACs, and the account keeps the names sealed under its own key.
 */
import { Aggregate, type EventStore, type StateStore } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Schema } from "effect"
import * as Credits from "../Credits.ts"
import { type AccountId, newAccountId, signUpLotIdOf } from "../Ids.ts"
import * as Decisions from "../ledger/Decisions.ts"
import { type Committed, Ledger } from "../ledger/Ledger.ts"
import { ofAccount, Vault, type VaultFailure } from "../vault/Vault.ts"
import { claim, EmailClaim, ReferenceClaim } from "./Claim.ts"
import * as EmailAddress from "./EmailAddress.ts"

/** What an account is granted once, when its address is verified: 200 credits. */
export const SIGNUP_CREDITS = Credits.of(200_000)

export interface Options {
  /** Thousandths; {@link SIGNUP_CREDITS} by default. */
  readonly signUpCredits?: Credits.Credits
}

/** The text is no e-mail address. */
export class InvalidEmail extends Schema.TaggedError<InvalidEmail>()("InvalidEmail", {}) {
  override get message(): string {
    return "That is no e-mail address"
  }
}

/** The address has, or had, an account. The error tells nothing more. */
export class EmailTaken extends Schema.TaggedError<EmailTaken>()("EmailTaken", {}) {
  override get message(): string {
    return "The address has an account already"
  }
}

/** A reference is 1 to 200 characters without control characters, and not like the id of an account. */
export class InvalidReference extends Schema.TaggedError<InvalidReference>()("InvalidReference", {}) {
  override get message(): string {
    return "An id of an account has 1 to 200 characters, no control characters among them, and does not begin with acc_"
  }
}

/** The reference has, or had, an account. */
export class ReferenceTaken extends Schema.TaggedError<ReferenceTaken>()("ReferenceTaken", { accountId: Schema.String }) {
  override get message(): string {
    return `The id has an account already: ${this.accountId}`
  }
}

/** The names of an account: at least one. */
export interface Owner {
  readonly email?: string
  /** The host's own id of the account, such as that of its user. */
  readonly reference?: string
}

type Refusal = Decisions.AccountNotFound | Decisions.AccountClosed | Aggregate.Failure
type Act = (accountId: string, metadata?: Aggregate.Metadata) => Effect.Effect<Committed, Refusal>

/** The purpose of seals and HMACs of addresses. */
export const EMAIL = "email"
const REFERENCE = "reference"
/** How many accounts a host remembers by their references. */
const REMEMBERED = 10_000

export class Registration extends Context.Service<
  Registration,
  {
    /**
     * Opens an unverified account for an address, or for an owner's names. Of several concurrent callers with the same names, one succeeds
     * and the others fail.
     */
    readonly open: (
      owner: string | Owner,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<AccountId, InvalidEmail | EmailTaken | InvalidReference | ReferenceTaken | VaultFailure | Aggregate.Failure>
    /** The account of an address or of a reference, whatever its status; undefined when there is none. */
    readonly find: (name: string | Owner) => Effect.Effect<AccountId | undefined, Aggregate.Failure>
    /** The id of an account that is named by its id or by its reference. */
    readonly resolve: (name: string) => Effect.Effect<string, Decisions.AccountNotFound | Aggregate.Failure>
    /** The address of an account; undefined if it has none. */
    readonly email: (accountId: string) => Effect.Effect<string | undefined, Decisions.AccountNotFound | VaultFailure | Aggregate.Failure>
    /** The reference of an account; undefined if it has none. */
    readonly reference: (
      accountId: string
    ) => Effect.Effect<string | undefined, Decisions.AccountNotFound | VaultFailure | Aggregate.Failure>
    /** Verifies the address: the first time, the account is granted its sign-up credits. */
    readonly verify: Act
    readonly suspend: Act
    readonly reinstate: Act
    readonly close: Act
    /**
     * Closes the account and destroys its vault key: nobody can read its address, labels, replies, jobs and inboxes any more. Amounts and ids stay,
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

const ID = /^acc_[0-9A-HJKMNP-TV-Z]{26}$/u
const PRINTABLE = /^[^\p{Cc}]{1,200}$/u

const isReference = (text: string): boolean => PRINTABLE.test(text) && text.isWellFormed() && !text.startsWith("acc_")

/** The names of an owner in the form in which they are compared. */
const normalised = Effect.fnUntraced(function* (owner: string | Owner) {
  const { email, reference } = typeof owner === "string" ? { email: owner } : owner
  const address = email === undefined ? undefined : EmailAddress.normalise(email)
  if (address === undefined && (email !== undefined || reference === undefined)) return yield* new InvalidEmail()
  if (reference !== undefined && !isReference(reference)) return yield* new InvalidReference()
  return { address, reference }
})

/** Callers in JavaScript may give a number. */
const texted = (name: string): string => {
  if (typeof name === "string") return name
  throw new TypeError(`An account is named by a text, acc_... or the host's own id such as String(user.id); it is ${String(name)}`)
}

const make = Effect.fnUntraced(function* ({ signUpCredits = SIGNUP_CREDITS }: Options) {
  const ledger = yield* Ledger
  const vault = yield* Vault
  const emails = yield* Aggregate.make(EmailClaim)
  const references = yield* Aggregate.make(ReferenceClaim)
  /** A claim stands for ever, so what was found once stays true. */
  const known = new Map<string, string>()

  const isOpened = (accountId: string) => Effect.map(ledger.read(accountId), ({ state }) => state.status !== "absent")

  const open = Effect.fn("Registration.open")(function* (owner: string | Owner, metadata?: Aggregate.Metadata) {
    const { address, reference } = yield* normalised(owner)
    const emailHash = address === undefined ? undefined : vault.hmac(EMAIL, address)
    const referenceHash = reference === undefined ? undefined : vault.hmac(REFERENCE, reference)
    let accountId = yield* newAccountId
    if (emailHash !== undefined) {
      // Before the reference is claimed: a refusal then leaves nothing behind
      const { state } = yield* emails.read(emailHash)
      accountId = state.accountId ?? accountId
      if (yield* isOpened(accountId)) return yield* new EmailTaken()
    }
    if (referenceHash !== undefined) {
      const { state } = yield* references.execute(referenceHash, claim({ _tag: "ReferenceClaimed", accountId }), metadata)
      accountId = state.accountId ?? accountId
      if (yield* isOpened(accountId)) return yield* new ReferenceTaken({ accountId })
    }
    if (emailHash !== undefined) {
      const { state } = yield* emails.execute(emailHash, claim({ _tag: "EmailClaimed", accountId }), metadata)
      const owner = state.accountId ?? accountId
      if (owner !== accountId && (referenceHash !== undefined || (yield* isOpened(owner)))) return yield* new EmailTaken()
      accountId = owner
    }
    const sealed = {
      ...(address === undefined ? {} : { sealedEmail: yield* vault.seal(ofAccount(accountId), EMAIL, address) }),
      ...(emailHash === undefined ? {} : { emailHash }),
      ...(reference === undefined ? {} : { sealedReference: yield* vault.seal(ofAccount(accountId), REFERENCE, reference) }),
      ...(referenceHash === undefined ? {} : { referenceHash })
    }
    const opened = yield* ledger.execute(accountId, Decisions.open(sealed), metadata)
    // Of several callers that complete one claim at once, the one whose event was written has opened the account
    if (opened.events.length > 0) return accountId
    return yield* reference === undefined ? new EmailTaken() : new ReferenceTaken({ accountId })
  })

  const find = Effect.fn("Registration.find")(function* (owner: string | Owner) {
    const names = yield* Effect.option(normalised(owner))
    if (names._tag === "None") return undefined
    const { address, reference } = names.value
    const { state } =
      reference === undefined
        ? yield* emails.read(vault.hmac(EMAIL, address ?? ""))
        : yield* references.read(vault.hmac(REFERENCE, reference))
    const { accountId } = state
    return accountId !== undefined && (yield* isOpened(accountId)) ? accountId : undefined
  })

  const resolve = Effect.fnUntraced(function* (name: string) {
    const before = known.get(texted(name))
    if (ID.test(name) || before !== undefined) return before ?? name
    const accountId = yield* find({ reference: name })
    if (accountId === undefined) return yield* new Decisions.AccountNotFound()
    if (known.size >= REMEMBERED) known.clear()
    known.set(name, accountId)
    return accountId
  })

  const opened = (purpose: string, of: "sealedEmail" | "sealedReference") =>
    Effect.fnUntraced(function* (accountId: string) {
      const { [of]: sealed = "", status } = (yield* ledger.read(accountId)).state
      if (status === "absent") return yield* new Decisions.AccountNotFound()
      return sealed === "" ? undefined : yield* vault.open(ofAccount(accountId), purpose, sealed)
    })

  const close: Act = (accountId, metadata) => ledger.execute(accountId, Decisions.close, metadata)

  return Registration.of({
    open,
    find,
    resolve,
    email: opened(EMAIL, "sealedEmail"),
    reference: opened(REFERENCE, "sealedReference"),
    verify: (accountId, metadata) => ledger.execute(accountId, Decisions.verify(signUpCredits, signUpLotIdOf(accountId)), metadata),
    suspend: (accountId, metadata) => ledger.execute(accountId, Decisions.suspend, metadata),
    reinstate: (accountId, metadata) => ledger.execute(accountId, Decisions.reinstate, metadata),
    close,
    erase: Effect.fn("Registration.erase")(function* (accountId: string, metadata?: Aggregate.Metadata) {
      yield* Effect.catchTag(close(accountId, metadata), "AccountClosed", () => Effect.void)
      yield* vault.destroy(ofAccount(accountId))
    }),
    refused: () => [...emails.refused(), ...references.refused()]
  })
})
