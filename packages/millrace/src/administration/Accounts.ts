/** Acts on accounts, for the command line and for hosts: amounts in credits. */
import { Account, Credits, KeyRing, Ledger, Registration, Vault } from "@millrace/core"
import { type Aggregate, EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Effect, Stream } from "effect"

/** An account as an operator sees it. */
export interface ShownAccount {
  readonly account: string
  readonly status: Account.Account["status"]
  /** Null once the account is erased. */
  readonly email: string | null
  readonly available: number
  readonly held: number
  readonly debt: number
}

export const open = Effect.fnUntraced(function* (
  { email, verified = false }: { readonly email: string; readonly verified?: boolean },
  metadata: Aggregate.Metadata
) {
  const registration = yield* Registration
  const account = yield* registration.open(email, metadata)
  if (verified) yield* registration.verify(account, metadata)
  return account
})

export const show = Effect.fnUntraced(function* (account: string) {
  const { available, debt, held, status } = yield* Ledger.use((ledger) => ledger.balance(account))
  const email = yield* Registration.use((registration) => registration.email(account)).pipe(
    Effect.catchTag("SubjectDestroyed", () => Effect.succeed(null))
  )
  const shown: ShownAccount = {
    account,
    status,
    email,
    available: Credits.toDecimal(available),
    held: Credits.toDecimal(held),
    debt: Credits.toDecimal(debt)
  }
  return shown
})

/** Opens again, closes or suspends an account. */
export const change = (act: "verify" | "suspend" | "reinstate" | "close", account: string, metadata: Aggregate.Metadata) =>
  Effect.map(
    Registration.use((registration) => registration[act](account, metadata)),
    ({ state }) => ({ account, status: state.status })
  )

/**
 * Closes an account, revokes its keys, and destroys what was sealed for it. `note` is given what is destroyed before it is: if this stops
 * halfway, a restore erases the account again.
 */
export const erase = Effect.fnUntraced(function* <E, R>(
  account: string,
  metadata: Aggregate.Metadata,
  note: (subject: string) => Effect.Effect<void, E, R>
) {
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

/** Every account in the log, in the order in which they were opened. */
export const list = Effect.gen(function* () {
  const log = yield* EventStore.EventStore
  const opened = codec.typesOf(["AccountOpened"])
  return yield* Stream.runCollect(
    log.readAll(EventStore.start).pipe(
      Stream.filter(({ stream, type }) => opened.has(type) && StreamName.category(stream) === category),
      Stream.map((event) => ({ account: StreamName.id(event.stream), openedAt: new Date(HashChain.atOf(event)) }))
    )
  )
})
