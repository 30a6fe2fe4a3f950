/** Addresses of inboxes: claims new ones, and finds the inbox of one. The log holds an address only as an HMAC, and sealed. */
import { Aggregate, type EventStore } from "@millrace/event-sourcing"
import { Effect, type Scope } from "effect"
import { normalise } from "../accounts/EmailAddress.ts"
import { RandomBytes } from "../vault/RandomBytes.ts"
import { ofInbox, Vault, type VaultFailure } from "../vault/Vault.ts"
import type { Active } from "./Inbox.ts"
import * as InboxAddress from "./InboxAddress.ts"
import type { Owner } from "./Letters.ts"

export interface Addresses {
  /** Claims a new address at a domain for an inbox. */
  readonly claim: (
    owner: Owner,
    domain: string
  ) => Effect.Effect<Pick<Active, "addressHash" | "sealedAddress">, VaultFailure | Aggregate.Failure>
  /** The address of an inbox. */
  readonly open: (owner: Owner, inbox: Pick<Active, "sealedAddress">) => Effect.Effect<string, VaultFailure>
  /** The HMAC of an address as a sender writes it; undefined for what is no address. */
  readonly hashOf: (address: string) => string | undefined
  /** The inbox that has, or had, an address, by its HMAC; undefined if nobody ever had it. */
  readonly inboxOf: (addressHash: string) => Effect.Effect<string | undefined, Aggregate.Failure>
  readonly refused: () => ReadonlyArray<Aggregate.StreamRefused>
}

const PURPOSE = "inbox.address"

/** How many addresses a host remembers. */
const REMEMBERED = 10_000

export const make: Effect.Effect<Addresses, never, Vault | EventStore.EventStore | Scope.Scope> = Effect.gen(function* () {
  const vault = yield* Vault
  const random = yield* RandomBytes
  const claims = yield* Aggregate.make(InboxAddress.AddressClaim)
  /** A claim stands for ever, so what was found once stays true. */
  const known = new Map<string, string>()

  const claim: Addresses["claim"] = Effect.fnUntraced(
    function* ({ accountId, inboxId }, domain) {
      const address = InboxAddress.generate(random, domain)
      const addressHash = vault.hmac(PURPOSE, address)
      // Sealed first: the claim of an account that was erased would lead nowhere
      const sealedAddress = yield* vault.seal(ofInbox(inboxId, accountId), PURPOSE, address)
      yield* claims.execute(addressHash, InboxAddress.claim(inboxId))
      return { addressHash, sealedAddress }
    },
    // By one chance in 2^66
    Effect.retry({ while: ({ _tag }) => _tag === "AddressTaken", times: 3 }),
    Effect.catchTag("AddressTaken", Effect.die)
  )

  return {
    claim,
    open: ({ accountId, inboxId }, { sealedAddress }) => vault.open(ofInbox(inboxId, accountId), PURPOSE, sealedAddress),
    hashOf: (address) => {
      const normal = normalise(address)
      return normal === undefined ? undefined : vault.hmac(PURPOSE, normal)
    },
    inboxOf: Effect.fnUntraced(function* (addressHash) {
      const before = known.get(addressHash)
      if (before !== undefined) return before
      const { inboxId } = (yield* claims.read(addressHash)).state
      if (inboxId === undefined) return undefined
      if (known.size >= REMEMBERED) known.clear()
      known.set(addressHash, inboxId)
      return inboxId
    }),
    refused: claims.refused
  }
})
