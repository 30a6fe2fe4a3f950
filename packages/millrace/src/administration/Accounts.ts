/** Acts on accounts. Amounts in credits. */
import { Account, Credits, KeyRing, Ledger, Registration, Vault } from "@millrace/core"
import { type Aggregate, EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"
import type { Failure } from "../Failure.ts"
import type { Act } from "./Act.ts"

export type Status = Account.Account["status"]

/** An account as an administrator sees it. */
export interface ShownAccount {
  readonly account: string
  readonly status: Status
  /** Null once the account is erased. */
  readonly email: string | null
  readonly available: number
  readonly held: number
  readonly debt: number
}

/** What was destroyed with an account. */
export interface Erased {
  readonly account: string
  readonly destroyed: ReadonlyArray<string>
  readonly keysRevoked: ReadonlyArray<string>
}

export const open = (
  { email, verified = false }: { readonly email: string; readonly verified?: boolean },
  metadata: Aggregate.Metadata
): Act<string> =>
  Effect.gen(function* () {
    const registration = yield* Registration
    const account = yield* registration.open(email, metadata)
    if (verified) yield* registration.verify(account, metadata)
    return account
  })

export const show = (account: string): Act<ShownAccount> =>
  Effect.gen(function* () {
    const { available, debt, held, status } = yield* Ledger.use((ledger) => ledger.balance(account))
    const email = yield* Registration.use((registration) => registration.email(account)).pipe(
      Effect.catchTag("SubjectDestroyed", () => Effect.succeed(null))
    )
    const amounts = { available: Credits.toDecimal(available), held: Credits.toDecimal(held), debt: Credits.toDecimal(debt) }
    return { account, status, email, ...amounts }
  })

/** Verifies, suspends, reinstates or closes an account. */
export const change = (
  act: "verify" | "suspend" | "reinstate" | "close",
  account: string,
  metadata: Aggregate.Metadata
): Act<{ readonly account: string; readonly status: Status }> =>
  Effect.map(
    Registration.use((registration) => registration[act](account, metadata)),
    ({ state }) => ({ account, status: state.status })
  )

/**
 * Closes an account, revokes its keys, and destroys what was sealed for it. `note` gets the names of what is destroyed before it is: if the
 * erasure stops halfway, a restore completes it.
 */
export const erase = (
  account: string,
  metadata: Aggregate.Metadata,
  note: (subject: string) => Effect.Effect<void, Failure>
): Act<Erased> =>
  Effect.gen(function* () {
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
