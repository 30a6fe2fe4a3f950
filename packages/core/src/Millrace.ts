/**
 * The whole of Millrace above a store, as one layer: what a host provides is an event store, a state store, a master key and the
 * upstreams of its operations.
 */

import type { Aggregate, Deadlines, EventStore, StateStore } from "@millrace/event-sourcing"
import { Layer } from "effect"
import { KeyRing } from "./accounts/KeyRing.ts"
import { Registration, type Options as RegistrationOptions } from "./accounts/Registration.ts"
import { Charge, type ChargeOptions } from "./billing/Charge.ts"
import { CircuitBreaker, type CircuitBreakerOptions } from "./billing/CircuitBreaker.ts"
import { PriceBook } from "./billing/PricePlan.ts"
import { RateLimit, type RateLimitPolicy } from "./billing/RateLimit.ts"
import { Recovery } from "./billing/Recovery.ts"
import { Replies } from "./billing/Replies.ts"
import type { Account } from "./ledger/Account.ts"
import { Ledger } from "./ledger/Ledger.ts"
import { Catalog } from "./operations/Catalog.ts"
import type * as Operation from "./operations/Operation.ts"
import type { MasterKey } from "./vault/MasterKey.ts"
import { Vault } from "./vault/Vault.ts"

export interface MillraceOptions<Op extends Operation.Any> {
  readonly operations: ReadonlyArray<Op>
  /** Calls in a window, for each account: 60 in 60 seconds by default. */
  readonly rateLimit?: RateLimitPolicy
  readonly late?: ChargeOptions["late"]
  readonly breaker?: CircuitBreakerOptions
  readonly recovery?: Deadlines.Options
  readonly accounts?: Omit<Aggregate.Options<Account>, "snapshots">
  readonly registration?: RegistrationOptions
}

const RATE_LIMIT: RateLimitPolicy = { limit: 60, window: 60 }

/** Without operations: what an administrator needs, who opens accounts, issues keys, grants credits and looks things up. */
export const administration = (options: Pick<MillraceOptions<never>, "accounts" | "registration"> = {}) =>
  Layer.mergeAll(KeyRing.layer, Registration.layer(options.registration)).pipe(
    Layer.provideMerge(Layer.mergeAll(Ledger.layer(options.accounts), PriceBook.layer, Vault.layer))
  )

/** Everything: administration, and the calls themselves with their recovery. */
export const layer = <Op extends Operation.Any>(options: MillraceOptions<Op>) =>
  Recovery.layer(options.operations, options.recovery).pipe(
    Layer.provideMerge(Charge.layer(options.late === undefined ? {} : { late: options.late })),
    Layer.provideMerge(
      Layer.mergeAll(
        Replies.layer,
        Catalog.layer(options.operations),
        CircuitBreaker.layer(options.breaker),
        RateLimit.layer(options.rateLimit ?? RATE_LIMIT)
      )
    ),
    Layer.provideMerge(administration(options))
  )

/** What {@link layer} needs. */
export type Requirements<Op extends Operation.Any> = EventStore.EventStore | StateStore.StateStore | MasterKey | Operation.Services<Op>
