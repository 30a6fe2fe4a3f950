/**
 * Writes what is due to accounts that nobody calls. At one host at a time it has the lots of recurring grants granted when their periods
 * begin and, where the host wants notices of expiry, tells of lots that will expire, and has them expire on time.
 *
 * Every decision begins with what is due, so an account that is called has the lots of its periods in any case, and a sweep that is late or
 * runs twice changes nothing.
 */
import { Deadlines, type EventStore, type StateStore } from "@millrace/event-sourcing"
import { Context, Duration, Effect, Layer } from "effect"
import * as Metrics from "../observability/Metrics.ts"
import type { Timestamp } from "../Timestamp.ts"
import { Account } from "./Account.ts"
import * as Decisions from "./Decisions.ts"
import { Ledger } from "./Ledger.ts"

export interface AccountUpkeepOptions extends Deadlines.Options {
  /**
   * How long before its expiry it is told that a lot will expire, in whole milliseconds. None is told by default. A lot whose whole lifetime
   * is not longer is not announced: it would be as soon as it is granted.
   */
  readonly expiryNotice?: Duration.Input
}

/** The payload of a deadline, as JSON. `lotId`: of a lot that expires; otherwise the deadline is of a recurring grant. */
interface Due {
  readonly accountId: string
  readonly lotId?: string
}

const encode = (due: Due): string => JSON.stringify(due)

/** The next period of each recurring grant. */
const periods = Deadlines.of(
  Account,
  {
    CreditsGranted: ({ recurring }, { id: accountId }) =>
      recurring === undefined ? [] : [{ _tag: "set", key: recurring.grantId, dueAt: recurring.next, payload: encode({ accountId }) }],
    RecurringGrantStopped: ({ grantId: key }) => [{ _tag: "clear", key }]
  },
  { onlyWith: { CreditsGranted: "recurring" } }
)

/** For how long a lot is tried to be expired: it may have been used up, and then no event says so. Milliseconds. */
const EXPIRES_WITHIN = Duration.toMillis("1 day")

const expiring = (accountId: string, lotId: string, expiresAt: Timestamp) => {
  const payload = encode({ accountId, lotId })
  return { _tag: "set", key: lotId, dueAt: expiresAt, payload, until: expiresAt + EXPIRES_WITHIN } as const
}

/** The notice of each lot that expires, `lead` milliseconds before, and then its expiry. */
const expiries = (lead: number) => {
  const lives = (accountId: string, lotId: string, at: Timestamp, expiresAt: Timestamp | null): ReadonlyArray<Deadlines.Change> => {
    if (expiresAt === null) return []
    const expiry = expiring(accountId, lotId, expiresAt)
    return expiresAt - at > lead ? [{ ...expiry, dueAt: expiresAt - lead }] : [expiry]
  }
  return Deadlines.of(
    Account,
    {
      CreditsGranted: ({ expiresAt, lotId }, { at, id }) => lives(id, lotId, at, expiresAt),
      // A used-up lot that has credits again
      Refunded: ({ revived = [] }, { at, id }) => revived.flatMap(({ expiresAt, lotId }) => lives(id, lotId, at, expiresAt)),
      LotExpiryAnnounced: ({ expiresAt, lotId }, { id }) => [expiring(id, lotId, expiresAt)],
      LotExpired: ({ lotId: key }) => [{ _tag: "clear", key }]
    },
    { onlyWith: { Refunded: "revived" } }
  )
}

const make = Effect.fnUntraced(function* ({ expiryNotice, ...options }: AccountUpkeepOptions = {}) {
  const ledger = yield* Ledger
  const lead = expiryNotice === undefined ? undefined : Math.floor(Duration.toMillis(expiryNotice))
  const onDue = ({ payload }: Deadlines.Deadline) => {
    const { accountId, lotId }: Due = JSON.parse(payload)
    return ledger.execute(accountId, lotId === undefined ? Decisions.applyDue : Decisions.announceExpiry(lotId))
  }
  const deadlines = yield* Deadlines.make(
    {
      name: "accounts",
      // A host with another lead time keeps other deadlines
      version: lead === undefined ? 1 : 2 + lead,
      ...(lead === undefined ? periods : Deadlines.all(periods, expiries(lead))),
      onDue: (deadline) => Effect.asVoid(onDue(deadline))
    },
    options
  )
  yield* Metrics.lag(
    "accounts",
    Effect.map(deadlines.status, ({ projection }) => projection)
  )
  return AccountUpkeep.of({ list: deadlines.list, status: deadlines.status })
})

export class AccountUpkeep extends Context.Service<
  AccountUpkeep,
  {
    /** The open deadlines, the earliest first: of lots, and of periods of recurring grants. */
    readonly list: Deadlines.Deadlines["list"]
    readonly status: Effect.Effect<Deadlines.Status>
  }
>()("@millrace/core/ledger/AccountUpkeep") {
  static readonly layer = (
    options?: AccountUpkeepOptions
  ): Layer.Layer<AccountUpkeep, never, Ledger | EventStore.EventStore | StateStore.StateStore> => Layer.effect(this, make(options))
}
