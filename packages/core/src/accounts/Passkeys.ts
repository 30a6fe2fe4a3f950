/**
 * The passkeys of accounts: added in a session, used to sign in, listed, removed. What an authenticator signed is checked before, by whoever
 * speaks its protocol: see `RelyingParty` in `@millrace/http`.
 */
import { Aggregate, type EventStore, Projection, type StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Effect, HashMap, Layer, Option, Schema } from "effect"
import * as Decisions from "../ledger/Decisions.ts"
import { Ledger } from "../ledger/Ledger.ts"
import * as Metrics from "../observability/Metrics.ts"
import type { Timestamp } from "../Timestamp.ts"
import { RandomBytes } from "../vault/RandomBytes.ts"
import { ofAccount, Vault, type VaultFailure } from "../vault/Vault.ts"
import * as ByAccount from "./ByAccount.ts"
import * as Passkey from "./Passkey.ts"
import * as PasskeyChallenge from "./PasskeyChallenge.ts"

/** Passkeys of an account at a time. */
export const MOST = 20

/** What is kept of a credential. */
export const Credential = Schema.Struct({
  /** Base64url, as the authenticator names it. */
  credentialId: Schema.String,
  /** A COSE key, base64url. */
  publicKey: Schema.String,
  /** How browsers reach the authenticator, such as `internal` or `usb`. */
  transports: Schema.Array(Schema.String),
  /** The owner's name for it. */
  name: Schema.NullOr(Schema.String)
})
export type Credential = typeof Credential.Type

/** A passkey that can be used. */
export interface FoundPasskey {
  readonly passkeyId: string
  readonly accountId: string
  readonly credential: Credential
}

/** A passkey as its owner sees it in a list. */
export interface ListedPasskey extends Credential {
  readonly passkeyId: string
  readonly addedAt: Timestamp
  /** The last time that it signed in; null if it never did. */
  readonly usedAt: Timestamp | null
}

/** The account has as many passkeys as it may. */
export class TooManyPasskeys extends Schema.TaggedError<TooManyPasskeys>()("TooManyPasskeys", {}) {
  override get message(): string {
    return `An account may have ${MOST} passkeys. Remove one first`
  }
}

type ListFailure = VaultFailure | Projection.ProjectionBehind | Projection.ProjectionStopped | EventStore.StoreUnavailable

export class Passkeys extends Context.Service<
  Passkeys,
  {
    /** A challenge for one purpose, base64url. It can be signed for five minutes. */
    readonly challenge: (purpose: PasskeyChallenge.Purpose) => Effect.Effect<string>
    /** A challenge that was given out for this purpose and has not ended. */
    readonly challenged: (
      purpose: PasskeyChallenge.Purpose,
      challenge: string
    ) => Effect.Effect<PasskeyChallenge.Challenge, Passkey.PasskeyRefused>
    /** What names an account to authenticators: 43 characters of base64url that reveal nothing about it. */
    readonly userIdOf: (accountId: string) => string
    readonly add: (
      accountId: string,
      added: Credential & { readonly counter: number },
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<
      ListedPasskey,
      Passkey.PasskeyKnown | TooManyPasskeys | Decisions.AccountNotFound | Decisions.AccountClosed | ListFailure | Aggregate.Failure
    >
    /** The passkey of a credential, to check a signature against. */
    readonly find: (credentialId: string) => Effect.Effect<FoundPasskey, Passkey.PasskeyRefused | VaultFailure | Aggregate.Failure>
    /** Uses a challenge up that the passkey signed: of several uses at once, one succeeds. */
    readonly use: (
      passkeyId: string,
      challenge: PasskeyChallenge.Challenge,
      counter: number,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<void, Passkey.PasskeyRefused | Aggregate.Failure>
    /** The passkeys of an account, oldest first, including those that another process added a moment ago. */
    readonly list: (accountId: string) => Effect.Effect<ReadonlyArray<ListedPasskey>, ListFailure>
    /** Removes a passkey of an account at every host. Sessions that it opened stay. */
    readonly remove: (
      accountId: string,
      passkeyId: string,
      metadata?: Aggregate.Metadata
    ) => Effect.Effect<void, Passkey.PasskeyNotFound | Aggregate.Failure>
    /** Passkeys whose streams this host cannot read, and the status of its list: for `/ready`. */
    readonly refused: () => ReadonlyArray<Aggregate.StreamRefused>
    readonly listStatus: Effect.Effect<Projection.Status>
  }
>()("@millrace/core/accounts/Passkeys") {
  static readonly layer: Layer.Layer<Passkeys, never, Ledger | Vault | EventStore.EventStore | StateStore.StateStore> = Layer.effect(
    Passkeys,
    Effect.suspend(() => make)
  )
}

// the list

const Listed = Schema.Struct({
  accountId: Schema.String,
  sealedCredential: Schema.String,
  addedAt: Schema.Int,
  usedAt: Schema.NullOr(Schema.Int)
})

/** The passkeys by id, and the ids of each account's, oldest first. */
const All = Schema.Struct({
  passkeys: Schema.HashMap(Schema.String, Listed),
  accounts: ByAccount.ByAccount
})
type All = typeof All.Type

export const passkeysByAccount: Projection.Definition<All> = {
  name: "passkeysByAccount",
  version: 1,
  state: All,
  initial: () => ({ passkeys: HashMap.empty(), accounts: ByAccount.empty }),
  ...Projection.of<All, Passkey.PasskeyEvent>(Passkey.Passkey, {
    PasskeyAdded: ({ accountId, sealedCredential }, { at, id }, { accounts, passkeys }) => ({
      passkeys: HashMap.set(passkeys, id, { accountId, sealedCredential, addedAt: at, usedAt: null }),
      accounts: ByAccount.add(accounts, accountId, id)
    }),
    PasskeyUsed: (_, { at, id }, { accounts, passkeys }) => ({
      passkeys: HashMap.modify(passkeys, id, (passkey) => ({ ...passkey, usedAt: at })),
      accounts
    }),
    PasskeyRemoved: (_, { id }, { accounts, passkeys }) => ({
      passkeys: HashMap.remove(passkeys, id),
      accounts: Option.match(HashMap.get(passkeys, id), {
        onNone: () => accounts,
        onSome: ({ accountId }) => ByAccount.remove(accounts, accountId, id)
      })
    })
  })
}

// the service

/** Purposes of the vault: each MAC and each sealed text is for one use. */
const NAME = "passkey"
const CHALLENGE = "passkey.challenge"
const USER = "passkey.user"
const CREDENTIAL = "passkey.credential"

const CredentialText = Schema.fromJsonString(Credential)
const encodeCredential = Schema.encodeSync(CredentialText)
const decodeCredential = Schema.decodeUnknownSync(CredentialText)

const UNKNOWN = Effect.fail(new Passkey.PasskeyRefused({ reason: "unknown" }))

const make = Effect.gen(function* () {
  const ledger = yield* Ledger
  const vault = yield* Vault
  const random = yield* RandomBytes
  const passkeys = yield* Aggregate.make(Passkey.Passkey)
  const listing = yield* Projection.make(passkeysByAccount)
  yield* Metrics.lag("passkeys", listing.status)

  const hmac = (text: string) => vault.hmac(CHALLENGE, text)
  const idOf = (credentialId: string) => vault.hmac(NAME, credentialId)
  const opened = (accountId: string, sealed: string) => Effect.map(vault.open(ofAccount(accountId), CREDENTIAL, sealed), decodeCredential)

  const challenge: Passkeys["Service"]["challenge"] = (purpose) =>
    Effect.map(Clock.currentTimeMillis, (now) => PasskeyChallenge.make(hmac, random, purpose, now))

  const challenged: Passkeys["Service"]["challenged"] = Effect.fnUntraced(function* (purpose, text) {
    const challenge = PasskeyChallenge.read(hmac, purpose, text)
    if (challenge === undefined || challenge.endsAt <= (yield* Clock.currentTimeMillis))
      return yield* new Passkey.PasskeyRefused({ reason: "expired" })
    return challenge
  })

  const list: Passkeys["Service"]["list"] = Effect.fn("Passkeys.list")(function* (accountId) {
    const { state } = yield* listing.caughtUp()
    const ids = ByAccount.idsOf(state.accounts, accountId)
    return yield* Effect.forEach(ids, (passkeyId) => {
      const { addedAt, sealedCredential, usedAt } = HashMap.getUnsafe(state.passkeys, passkeyId)
      return Effect.map(opened(accountId, sealedCredential), (credential): ListedPasskey => ({ ...credential, passkeyId, addedAt, usedAt }))
    })
  })

  /**
   * Removes a new passkey that is one too many, and fails. Of passkeys that are added at once, the first in the log stay, so an account never
   * keeps more than {@link MOST}.
   */
  const withinBound = Effect.fnUntraced(function* (accountId: string, passkeyId: string, metadata: Aggregate.Metadata | undefined) {
    const all = yield* list(accountId)
    const place = all.findIndex((passkey) => passkey.passkeyId === passkeyId)
    const added = all[place]
    if (added === undefined) return yield* Effect.die(new Error("A passkey that was added is in the list"))
    if (place < MOST) return added
    yield* Effect.ignore(passkeys.execute(passkeyId, Passkey.remove(accountId), metadata))
    return yield* new TooManyPasskeys()
  })

  const add: Passkeys["Service"]["add"] = Effect.fn("Passkeys.add")(function* (accountId, { counter, ...credential }, metadata) {
    const { status } = (yield* ledger.read(accountId)).state
    if (status === "absent") return yield* new Decisions.AccountNotFound()
    if (status === "closed") return yield* new Decisions.AccountClosed()
    const passkeyId = idOf(credential.credentialId)
    const sealedCredential = yield* vault.seal(ofAccount(accountId), CREDENTIAL, encodeCredential(credential))
    yield* passkeys.execute(passkeyId, Passkey.add({ accountId, sealedCredential, counter }), metadata)
    return yield* withinBound(accountId, passkeyId, metadata)
  })

  const find: Passkeys["Service"]["find"] = Effect.fn("Passkeys.find")(function* (credentialId) {
    const passkeyId = idOf(credentialId)
    const { state } = yield* passkeys.read(passkeyId)
    if (state.status !== "added") return yield* UNKNOWN
    const credential = yield* Effect.catchTag(opened(state.accountId, state.sealedCredential), "SubjectDestroyed", () => UNKNOWN)
    return { passkeyId, accountId: state.accountId, credential }
  })

  const use: Passkeys["Service"]["use"] = (passkeyId, challenge, counter, metadata) =>
    Effect.asVoid(passkeys.execute(passkeyId, Passkey.use(challenge, counter), metadata))

  const remove: Passkeys["Service"]["remove"] = (accountId, passkeyId, metadata) =>
    Passkey.isId(passkeyId)
      ? Effect.asVoid(passkeys.execute(passkeyId, Passkey.remove(accountId), metadata))
      : Effect.fail(new Passkey.PasskeyNotFound())

  return Passkeys.of({
    challenge,
    challenged,
    userIdOf: (accountId) => vault.hmac(USER, accountId),
    add,
    find,
    use,
    list,
    remove,
    refused: passkeys.refused,
    listStatus: listing.status
  })
})
