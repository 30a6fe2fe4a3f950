/** The parts of a host that `/ready` reports on: the projections of each, and what else keeps it from its work. */
import {
  AccountUpkeep,
  InboxUpkeep,
  InvoiceBook,
  JobRunner,
  Jobs,
  JobUpkeep,
  Leading,
  Passkeys,
  PaymentUpkeep,
  PriceAlerts,
  PriceAlertUpkeep,
  type Recovery,
  Sessions,
  SessionUpkeep,
  SmsReceiver,
  SubscriptionUpkeep,
  WebhookDelivery,
  Webhooks
} from "@millrace/core"
import type { Projection } from "@millrace/event-sourcing"
import { Effect, Option } from "effect"

type Named = readonly [name: string, status: Projection.Status]

/** `troubles`: sentences; undefined stands for none. */
export interface Part {
  readonly projections: ReadonlyArray<Named>
  readonly troubles: ReadonlyArray<string | undefined>
}

/** A projection by itself. */
export interface ProjectionStatus {
  readonly name: string
  /** Of the newest event that it has. */
  readonly position: string
  /** Why it is not up to date; undefined if it is. */
  readonly trouble: string | undefined
}

const troubleOf = ([name, { stopped, behind, caughtUp }]: Named): string | undefined => {
  if (stopped !== undefined) return `${name} stopped at an event that it cannot fold`
  if (behind !== undefined) return `${name} does not get through to its store`
  return caughtUp ? undefined : `${name} has not caught up yet`
}

/** What keeps a part from its work. */
export const troublesOf = ({ projections, troubles }: Part): ReadonlyArray<string | undefined> => [
  ...projections.map(troubleOf),
  ...troubles
]

export const projectionsOf = ({ projections }: Part): ReadonlyArray<ProjectionStatus> =>
  projections.map((named) => ({ name: named[0], position: named[1].position, trouble: troubleOf(named) }))

/** `Retrying` of several upkeeps: whether any of them fails at its stores. */
const through = (what: string, ...troubles: ReadonlyArray<unknown>): string | undefined =>
  troubles.every((trouble) => trouble === undefined) ? undefined : `${what} does not get through to its stores`

/** Open holds, and the list of keys. */
export const holds = ({ projection, trouble }: Effect.Success<Recovery["Service"]["status"]>, keys: Projection.Status): Part => ({
  projections: [
    ["the recovery of holds", projection],
    ["the list of keys", keys]
  ],
  troubles: [through("the recovery of holds", trouble)]
})

const accounts = Effect.map(Effect.serviceOption(AccountUpkeep), (upkeep) =>
  Option.map(upkeep, ({ status }) =>
    Effect.map(
      status,
      ({ projection, trouble }): Part => ({
        projections: [["the list of what is due to accounts", projection]],
        troubles: [through("the upkeep of accounts", trouble)]
      })
    )
  )
)

/** What keeps inboxes from their ends. */
const inboxes = Effect.map(Effect.serviceOption(InboxUpkeep), (upkeep) =>
  Option.map(upkeep, ({ status }) =>
    Effect.map(
      status,
      ({ closures, deadlines }): Part => ({
        projections: [["the deadlines of inboxes", deadlines.projection]],
        troubles: [through("the upkeep of inboxes", deadlines.trouble, closures.trouble)]
      })
    )
  )
)

/** What keeps payments from being asked for, and their credits from their accounts. A gateway that is away is no trouble of this host. */
const payments = Effect.map(Effect.serviceOption(PaymentUpkeep), (upkeep) =>
  Option.map(upkeep, ({ status }) =>
    Effect.map(
      status,
      ({ deadlines, settlements }): Part => ({
        projections: [["the list of payments to ask for", deadlines.projection]],
        troubles: [through("the upkeep of payments", deadlines.trouble, settlements.trouble)]
      })
    )
  )
)

/** What keeps periods of subscriptions from their renewal, and payments from their subscriptions. */
const subscriptions = Effect.map(Effect.serviceOption(SubscriptionUpkeep), (upkeep) =>
  Option.map(upkeep, ({ status }) =>
    Effect.map(
      status,
      ({ deadlines, notes }): Part => ({
        projections: [["the periods of subscriptions", deadlines.projection]],
        troubles: [through("the upkeep of subscriptions", deadlines.trouble, notes.trouble)]
      })
    )
  )
)

/** What keeps falls of prices from being found, and told. A mail relay that is away is no trouble of this host. */
const alerts = Effect.gen(function* () {
  const alerts = yield* Effect.serviceOption(PriceAlerts)
  const upkeep = yield* Effect.serviceOption(PriceAlertUpkeep)
  if (Option.isNone(alerts) || Option.isNone(upkeep)) return Option.none()
  return Option.some(
    Effect.gen(function* () {
      const { mails, prices } = yield* upkeep.value.status
      const part: Part = {
        projections: [
          ["the list of price alerts", yield* alerts.value.indexStatus],
          ...(mails === undefined ? [] : [["the mails of price alerts", mails.projection] as const])
        ],
        troubles: [through("the upkeep of price alerts", prices.trouble, mails?.trouble)]
      }
      return part
    })
  )
})

/** The list of invoices. */
const invoices = Effect.map(Effect.serviceOption(InvoiceBook), (book) =>
  Option.map(book, ({ status }) =>
    Effect.map(status, (listed): Part => ({ projections: [["the list of invoices", listed]], troubles: [] }))
  )
)

const messages = Effect.map(Effect.serviceOption(SmsReceiver), (sms) =>
  Option.map(sms, ({ arrivals }) =>
    Effect.map(
      arrivals,
      (status): Part => ({
        projections: status === undefined ? [] : [["the list of text messages", status]],
        troubles: []
      })
    )
  )
)

/** What keeps sessions of people from their list and their ends. */
const sessions = Effect.gen(function* () {
  const sessions = yield* Effect.serviceOption(Sessions)
  const passkeys = yield* Effect.serviceOption(Passkeys)
  const upkeep = yield* Effect.serviceOption(SessionUpkeep)
  return Option.some(
    Effect.gen(function* () {
      const listed = Option.isSome(sessions) ? yield* sessions.value.listStatus : undefined
      const known = Option.isSome(passkeys) ? yield* passkeys.value.listStatus : undefined
      const ends = Option.isSome(upkeep) ? yield* upkeep.value.status : undefined
      const part: Part = {
        projections: [
          ...(listed === undefined ? [] : [["the list of sessions", listed] as const]),
          ...(known === undefined ? [] : [["the list of passkeys", known] as const]),
          ...(ends === undefined ? [] : [["the ends of sessions", ends.projection] as const])
        ],
        troubles: [through("the upkeep of sessions", ends?.trouble)]
      }
      return part
    })
  )
})

/** The parts that only some hosts have, but for jobs and webhooks. */
export const further = Effect.map(Effect.all([accounts, inboxes, payments, subscriptions, alerts, invoices, messages, sessions]), (parts) =>
  Effect.all(parts.flatMap((part) => Option.toArray(part)))
)

const NONE: Part = { projections: [], troubles: [] }

/** Jobs, at a host that has them. */
export const jobs = Effect.gen(function* () {
  const jobs = yield* Effect.serviceOption(Jobs)
  const upkeep = yield* Effect.serviceOption(JobUpkeep)
  const runner = yield* Effect.serviceOption(JobRunner)
  return Effect.gen(function* () {
    if (Option.isNone(jobs) || Option.isNone(upkeep)) return { jobs: undefined, part: NONE }
    const { deadlines, settlements } = yield* upkeep.value.status
    const working = Option.isSome(runner) ? yield* runner.value.status : undefined
    const part: Part = {
      projections: [
        ["the list of jobs", yield* jobs.value.openJobs.status],
        ["the deadlines of jobs", deadlines.projection]
      ],
      troubles: [through("the upkeep of jobs", deadlines.trouble, settlements.trouble), through("the runner of jobs", working?.trouble)]
    }
    return {
      jobs: {
        running: working?.running.length ?? 0,
        leader: settlements.leader,
        caught_up: deadlines.projection.caughtUp,
        failing: deadlines.failing.length + (settlements.failing === undefined ? 0 : 1)
      },
      part
    }
  })
})

/** The hosts that lead accounts, as this one sees them; undefined at a host that runs all its calls itself. */
export const cluster = Effect.map(Effect.serviceOption(Leading), (leading) =>
  Option.match(leading, {
    onNone: () => undefined,
    onSome:
      ({ hosts }) =>
      () => {
        const [self, ...others] = hosts()
        const open = others.filter(({ state }) => state === "open").length
        return { shards: self?.shards ?? 0, hosts: open, unreachable: others.length - open }
      }
  })
)

/** Webhooks, at a host that delivers them. */
export const webhooks = Effect.gen(function* () {
  const webhooks = yield* Effect.serviceOption(Webhooks.Webhooks)
  const delivery = yield* Effect.serviceOption(WebhookDelivery)
  return Effect.gen(function* () {
    if (Option.isNone(webhooks) || Option.isNone(delivery)) return { webhooks: undefined, part: NONE }
    const { leader, trouble, waiting } = yield* delivery.value.status
    const part: Part = {
      projections: [["the list of webhooks", yield* webhooks.value.endpoints.status]],
      troubles: [through("the delivery of webhooks", trouble)]
    }
    return { webhooks: { leader, waiting }, part }
  })
})
