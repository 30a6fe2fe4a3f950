/** A row of the table of notices: what the notice says, and which events it follows from. */
import { type Aggregate, EventHandlers, type EventStore, Following, StreamName } from "@millrace/event-sourcing"
import { Effect, Schema } from "effect"
import * as Job from "../jobs/Job.ts"
import { Jobs } from "../jobs/Jobs.ts"
import { Account } from "../ledger/Account.ts"
import type { AccountEvent } from "../ledger/AccountEvent.ts"
import * as Payment from "../payments/Payment.ts"
import { Payments } from "../payments/Payments.ts"
import { accountOf, Subscription, type SubscriptionEvent } from "../payments/Subscription.ts"

/** Facts whose schemas need no services. */
type Fields = Readonly<Record<string, Schema.Codec<unknown, unknown>>>
type FactsOf<F extends Fields> = Schema.Struct<F>["Type"]

/** What notices look up beside their events. */
export type Sources = Jobs | Payments

/** What an event tells: the account that it is about, and the facts as JSON. */
export interface Found {
  readonly account: string
  readonly facts: unknown
}

export interface Row<F extends Fields = Fields> {
  /** A sentence for the documentation. */
  readonly summary: string
  /** The schema of the facts: amounts are decimal credits outside and thousandths inside. */
  readonly facts: Schema.Struct<F>
  readonly types: ReadonlyArray<string>
  readonly selects: (event: EventStore.RecordedEvent) => boolean
  /** What an event that the row selects tells; undefined if it tells nothing. An event that cannot be read is a defect. */
  readonly find: (event: EventStore.RecordedEvent) => Effect.Effect<Found | undefined, Aggregate.Failure, Sources>
}

/** A notice that follows from its events alone. `account`: whose streams of an id are. */
const ofEvents =
  <Event extends { readonly _tag: string }>(
    decider: Parameters<typeof EventHandlers.of<Event, [], unknown>>[0],
    account: (id: string) => string
  ) =>
  <const F extends Fields>(summary: string, fields: F, handlers: EventHandlers.Handlers<Event, [], FactsOf<F> | undefined>): Row<F> => {
    const { categories, dispatch, types } = EventHandlers.of(decider, handlers)
    const facts = Schema.Struct(fields)
    const encode = encoder(facts)
    return {
      ...{ summary, facts, types },
      selects: Following.selects({ categories, types }),
      find: (event) =>
        Effect.sync(() => {
          const told = dispatch(event)
          return told && { account: account(StreamName.id(event.stream)), facts: encode(told) }
        })
    }
  }

/** A notice that follows from events of accounts alone. A handler that returns undefined tells nothing. */
export const ofAccounts = ofEvents<AccountEvent>(Account, (id) => id)

/** A notice that follows from events of subscriptions alone. A handler that returns undefined tells nothing. */
export const ofSubscriptions = ofEvents<SubscriptionEvent>(Subscription, accountOf)

/** A notice that follows from events of jobs. The handlers also get the call that the job was accepted for. */
export const ofJobs = <const F extends Fields>(
  summary: string,
  fields: F,
  handlers: EventHandlers.Handlers<Job.JobEvent, [accepted: Job.Accepted], FactsOf<F> | undefined>
): Row<F> => {
  const { categories, dispatch, types } = EventHandlers.of(Job.Job, handlers)
  const facts = Schema.Struct(fields)
  const encode = encoder(facts)
  return {
    ...{ summary, facts, types },
    selects: Following.selects({ categories, types }),
    find: Effect.fnUntraced(function* (event) {
      const { state: job } = yield* Jobs.use((jobs) => jobs.read(StreamName.id(event.stream)))
      if (!("accepted" in job)) return undefined
      const told = dispatch(event, job.accepted)
      return told && { account: job.accepted.accountId, facts: encode(told) }
    })
  }
}

/** A notice that follows from events of payments made here. The handlers also get the payment as it stands now. */
export const ofPayments = <const F extends Fields>(
  summary: string,
  fields: F,
  handlers: EventHandlers.Handlers<Payment.PaymentEvent, [order: Payment.Order], FactsOf<F>>
): Row<F> => {
  const { categories, dispatch, types } = EventHandlers.of(Payment.Payment, handlers)
  const facts = Schema.Struct(fields)
  const encode = encoder(facts)
  return {
    ...{ summary, facts, types },
    selects: Following.selects({ categories, types }),
    find: Effect.fnUntraced(function* (event) {
      const order = yield* Payments.use((payments) => payments.orderIn(StreamName.id(event.stream)))
      if (order === undefined) return undefined
      const told = dispatch(event, order)
      return told && { account: order.accountId, facts: encode(told) }
    })
  }
}

const encoder = <F extends Fields>(facts: Schema.Struct<F>): ((told: FactsOf<F>) => unknown) => {
  // The fields need no services, which the type of a struct of unknown fields cannot say
  return Schema.encodeSync(facts as unknown as Schema.Codec<FactsOf<F>, unknown>)
}
