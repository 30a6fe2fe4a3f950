/** Acts on accounts. Amounts in credits. */
import { Account, balanceOf, Credits, Decisions, KeyRing, Ledger, type Owner, Registration, Vault } from "@millrace/core"
import { type Aggregate, EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"
import type { Failure } from "../Failure.ts"
import type { Act } from "./Act.ts"

export type Status = Account.Account["status"]

/** An account as an administrator sees it. */
export interface ShownAccount {
  readonly account: string
  readonly status: Status
  /** The host's own id. Null for an account without one, and once the account is erased. */
  readonly id: string | null
  /** Null for an account without an address, and once the account is erased. */
  readonly email: string | null
  readonly available: number
  readonly held: number
  readonly debt: number
  /** A balance below it is told as low. Null for none. */
  readonly threshold: number | null
}

/** When the balance of an account counts as low. Amounts in credits. */
export interface Threshold {
  readonly account: string
  readonly threshold: number | null
  readonly available: number
  readonly held: number
  /** Whether the balance, held credits included, is below the threshold now. */
  readonly low: boolean
}

/** What was destroyed with an account. */
export interface Erased {
  readonly account: string
  readonly destroyed: ReadonlyArray<string>
  readonly keysRevoked: ReadonlyArray<string>
}

/** The names of a new account: at least one. */
export interface Opening {
  /** The host's own id of the account, such as that of its user: 1 to 200 characters. Every act and call takes it in place of `acc_...`. */
  readonly id?: string
  readonly email?: string
  /** The host knows that the address is the owner's: grants the sign-up credits. */
  readonly verified?: boolean
}

/** Opens an account. Opening again with the same `id`, and the same address if any, returns the account that is there. */
export const open = ({ email, id, verified = false }: Opening, metadata: Aggregate.Metadata): Act<string> =>
  Effect.gen(function* () {
    const registration = yield* Registration
    const owner = { ...(email === undefined ? {} : { email }), ...(id === undefined ? {} : { reference: id }) }
    const account = yield* registration.open(owner, metadata).pipe(
      Effect.catchIf(
        (error) => id !== undefined && (error._tag === "ReferenceTaken" || error._tag === "EmailTaken"),
        (taken) => Effect.flatMap(present(owner), (account) => (account === undefined ? Effect.fail(taken) : Effect.succeed(account)))
      )
    )
    if (verified) yield* registration.verify(account, metadata)
    return account
  })

/** The account that has all these names. */
const present = ({ email, reference }: Owner) =>
  Effect.gen(function* () {
    const registration = yield* Registration
    const account = yield* registration.find(reference === undefined ? {} : { reference })
    return email === undefined || account === (yield* registration.find(email)) ? account : undefined
  })

export const show = (name: string): Act<ShownAccount> =>
  Effect.gen(function* () {
    const account = yield* resolve(name)
    const { available, debt, held, status, threshold } = yield* Ledger.use((ledger) => ledger.balance(account))
    const registration = yield* Registration
    const [email = null, id = null] = yield* Effect.all([registration.email(account), registration.reference(account)]).pipe(
      Effect.catchTag("SubjectDestroyed", () => Effect.succeed([null, null]))
    )
    const amounts = { available: Credits.toDecimal(available), held: Credits.toDecimal(held), debt: Credits.toDecimal(debt) }
    return { account, status, id, email, ...amounts, threshold: decimalOf(threshold) }
  })

const decimalOf = (amount: Credits.Credits | null): number | null => (amount === null ? null : Credits.toDecimal(amount))

/** Sets the threshold below which the balance of an account is told as low; null for none. */
export const threshold = (name: string, amount: Credits.Credits | null, metadata: Aggregate.Metadata): Act<Threshold> =>
  Effect.gen(function* () {
    const account = yield* resolve(name)
    const ledger = yield* Ledger
    const { at, state } = yield* ledger.execute(account, Decisions.setBalanceThreshold(amount), metadata)
    const { available, held, threshold } = balanceOf(account, state, at)
    const amounts = { available: Credits.toDecimal(available), held: Credits.toDecimal(held) }
    return { account, threshold: decimalOf(threshold), ...amounts, low: Decisions.asOf(state, at).lowBalance.told }
  })

/** The id of an account that is named by its id or by the host's own. */
export const resolve = (name: string): Act<string> => Registration.use((registration) => registration.resolve(name))

/** Verifies, suspends, reinstates or closes an account. */
export const change = (
  act: "verify" | "suspend" | "reinstate" | "close",
  name: string,
  metadata: Aggregate.Metadata
): Act<{ readonly account: string; readonly status: Status }> =>
  Effect.gen(function* () {
    const registration = yield* Registration
    const account = yield* registration.resolve(name)
    const { state } = yield* registration[act](account, metadata)
    return { account, status: state.status }
  })

/**
 * Closes an account, revokes its keys, and destroys what was sealed for it. `note` gets the names of what is destroyed before it is: if the
 * erasure stops halfway, a restore completes it.
 */
export const erase = (name: string, metadata: Aggregate.Metadata, note: (subject: string) => Effect.Effect<void, Failure>): Act<Erased> =>
  Effect.gen(function* () {
    const account = yield* resolve(name)
    const keys = yield* KeyRing
    // Fails where there is no such account
    yield* Ledger.use((ledger) => ledger.balance(account))
    const subject = Vault.ofAccount(account)
    yield* note(subject)
    yield* Registration.use((registration) => registration.erase(account, metadata))
    const working = (yield* keys.list(account)).filter(({ revokedAt }) => revokedAt === null)
    for (const { keyId } of working) yield* keys.revoke(account, keyId, metadata)
    return { account, destroyed: [subject], keysRevoked: working.map(({ keyId }) => keyId) }
  })

const { category, codec } = Account.Account
const OPENED = codec.typesOf(["AccountOpened"])

/** Every account, in the order in which they were opened. */
export const list: Act<ReadonlyArray<{ readonly account: string; readonly openedAt: Date }>> = Effect.flatMap(
  EventStore.EventStore,
  (log) =>
    Stream.runCollect(
      log.readAll(EventStore.start).pipe(
        Stream.filter(({ stream, type }) => OPENED.has(type) && StreamName.category(stream) === category),
        Stream.map((event) => ({ account: StreamName.id(event.stream), openedAt: new Date(HashChain.atOf(event)) }))
      )
    )
)
