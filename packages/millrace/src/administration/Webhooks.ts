/** Acts on webhooks. Times are `Date`s. */
import { Webhooks as Core, Deliveries, Delivery, type Millrace, type Webhook } from "@millrace/core"
import type { Aggregate, EventStore, StateStore } from "@millrace/event-sourcing"
import { Effect, Redacted, Result } from "effect"
import type { Failure } from "../Failure.ts"
import { resolve } from "./Accounts.ts"
import { dateOf } from "./Act.ts"

/** An act on the webhooks of a store. */
export type WebhookAct<A> = Effect.Effect<
  A,
  Failure,
  Core.Webhooks | Millrace.Administration | EventStore.EventStore | StateStore.StateStore
>

export interface WebhookOptions {
  /** Where notices are posted to. */
  readonly url: string
  /** The names of the notices that it gets: all by default, also those of later releases. */
  readonly on?: ReadonlyArray<string>
  /** Only notices of this account. */
  readonly account?: string
  /** Stored sealed. */
  readonly label?: string
}

/** A webhook as an administrator sees it. */
export interface ShownWebhook {
  readonly webhook: string
  /** Null where its key is missing, as after a restore without keys. */
  readonly url: string | null
  readonly label: string | null
  /** Null for all. */
  readonly on: ReadonlyArray<string> | null
  readonly account: string | null
  readonly status: "enabled" | "disabled"
  /** Why it is disabled: by the `host`, `gone` because it answered 410, or `failing` for days. */
  readonly reason: Webhook.DisabledReason | null
  readonly addedAt: Date
}

/** A webhook, and how it is doing. */
export interface WebhookReport extends ShownWebhook {
  /** Deliveries that wait, and dead letters. */
  readonly waiting: number
  readonly dead: number
  /** Whether further notices wait in the log. */
  readonly behind: boolean
  readonly failingSince: Date | null
  /** Until when the secret before the newest signs too. */
  readonly previousSecretUntil: Date | null
}

/** A notice for a webhook. */
export interface ShownDelivery {
  readonly delivery: string
  /** The id of the notice, as the receiver gets it in `webhook-id`. */
  readonly notice: string
  readonly name: string
  readonly account: string
  readonly at: Date
  readonly attempts: number
  /** When it is tried again; null for a dead letter. */
  readonly nextAt: Date | null
  /** Of the newest attempt. Null if there was no answer. */
  readonly status: number | null
  readonly error: string | null
}

const webhooks = Core.Webhooks

/** The secret is shown this once. */
export const add = (
  { account, label, on, url }: WebhookOptions,
  metadata: Aggregate.Metadata
): WebhookAct<{ readonly webhook: string; readonly secret: string }> =>
  Effect.gen(function* () {
    const added = {
      url,
      ...(on === undefined ? {} : { names: on }),
      ...(account === undefined ? {} : { accountId: yield* resolve(account) }),
      ...(label === undefined ? {} : { label })
    }
    const { id, secret } = yield* webhooks.use((webhooks) => webhooks.add(added, metadata))
    return { webhook: id, secret: Redacted.value(secret) }
  })

const shownOf = ({ accountId, addedAt, disabled, id, label, names, status, url }: Core.Shown): ShownWebhook => ({
  ...{ webhook: id, url, label, on: names, account: accountId, status },
  reason: disabled?.reason ?? null,
  addedAt: new Date(addedAt)
})

/** All webhooks, oldest first. */
export const list: WebhookAct<ReadonlyArray<ShownWebhook>> = Effect.gen(function* () {
  const { ids, show } = yield* webhooks
  // One may be removed meanwhile
  const found = yield* Effect.forEach(yield* ids, (id) => Effect.catchTag(show(id), "WebhookNotFound", () => Effect.undefined))
  return found.flatMap((shown) => (shown === undefined ? [] : [shownOf(shown)]))
})

export const show = (id: string): WebhookAct<WebhookReport> =>
  Effect.gen(function* () {
    const shown = yield* webhooks.use((webhooks) => webhooks.show(id))
    const { failingSince, ...condition } = yield* Deliveries.condition(id)
    return {
      ...shownOf(shown),
      ...condition,
      failingSince: dateOf(failingSince),
      previousSecretUntil: dateOf(shown.previousUntil)
    }
  })

/** Changes where it is posted to, or which notices it gets: null for all. */
export const change = (
  id: string,
  { on, url }: { readonly url?: string; readonly on?: ReadonlyArray<string> | null },
  metadata: Aggregate.Metadata
): WebhookAct<WebhookReport> => {
  const changed = { ...(url === undefined ? {} : { url }), ...(on === undefined ? {} : { names: on }) }
  return Effect.andThen(
    webhooks.use((webhooks) => webhooks.change(id, changed, metadata)),
    show(id)
  )
}

/** Makes a new secret. The one before it signs too for `overlap` milliseconds, a day by default. */
export const rotate = (
  id: string,
  overlap: number | undefined,
  metadata: Aggregate.Metadata
): WebhookAct<{ readonly webhook: string; readonly secret: string }> =>
  Effect.map(
    webhooks.use((webhooks) => webhooks.rotate(id, overlap, metadata)),
    (secret) => ({ webhook: id, secret: Redacted.value(secret) })
  )

export const disable = (id: string, metadata: Aggregate.Metadata): WebhookAct<WebhookReport> =>
  Effect.andThen(
    webhooks.use((webhooks) => webhooks.disable(id, "host", metadata)),
    show(id)
  )

/** Sends again, and what happened meanwhile, unless `skip`. */
export const enable = (id: string, skip: boolean, metadata: Aggregate.Metadata): WebhookAct<WebhookReport> =>
  Effect.andThen(
    webhooks.use((webhooks) => webhooks.enable(id, { skip }, metadata)),
    show(id)
  )

/** Removes it for ever, with its address, secrets and deliveries. */
export const remove = (id: string, metadata: Aggregate.Metadata): WebhookAct<void> =>
  webhooks.use((webhooks) => webhooks.remove(id, metadata))

/** How a receiver answered. */
export interface Trial {
  readonly delivered: boolean
  /** Null if there was no answer. */
  readonly status: number | null
  readonly error: string | null
}

/** Posts a notice `webhook.test` now, once, from this process. */
export const test = (id: string): WebhookAct<Trial> =>
  Effect.map(
    webhooks.use((webhooks) => webhooks.test(id)),
    Result.match({
      onSuccess: ({ status }) => {
        const delivered = status >= 200 && status < 300
        return { delivered, status, error: delivered ? null : `it answered with status ${status}` }
      },
      onFailure: ({ reason }) => ({ delivered: false, status: null, error: reason })
    })
  )

const deliveryOf = (delivery: Delivery.Delivery, isDead: boolean): ShownDelivery => {
  const { attempts, last, nextAt, notice } = delivery
  return {
    ...{ delivery: Delivery.idOf(delivery), notice: notice.id, name: notice.name, account: notice.account },
    at: new Date(notice.at),
    attempts,
    nextAt: isDead ? null : new Date(nextAt),
    status: last?.status ?? null,
    error: last?.error ?? null
  }
}

const MOST = 1_000

/** The next deliveries that wait, at most a thousand. */
export const deliveries = (id: string): WebhookAct<ReadonlyArray<ShownDelivery>> =>
  Effect.andThen(
    show(id),
    Effect.map(Deliveries.waiting(id, MOST), (all) => all.map((one) => deliveryOf(one, false)))
  )

/** The oldest dead letters of a webhook, or of all, at most a thousand of each. */
export const dead = (id?: string): WebhookAct<ReadonlyArray<ShownDelivery>> =>
  Effect.gen(function* () {
    const ids = id === undefined ? yield* webhooks.use(({ ids }) => ids) : [(yield* show(id)).webhook]
    const letters = yield* Effect.forEach(ids, (webhook) => Deliveries.dead(webhook, MOST))
    return letters.flat().map((one) => deliveryOf(one, true))
  })

/** Sends a dead letter again. */
export const resend = (delivery: string): WebhookAct<{ readonly resent: number }> => Effect.as(Deliveries.resend(delivery), { resent: 1 })

/** Sends all dead letters of a webhook again, or those of what happened from a time on. */
export const resendAll = (id: string, since?: Date): WebhookAct<{ readonly resent: number }> =>
  Effect.andThen(
    show(id),
    Effect.map(Deliveries.resendAll(id, since?.getTime()), (resent) => ({ resent }))
  )
