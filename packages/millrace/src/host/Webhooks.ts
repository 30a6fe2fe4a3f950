/** Webhooks as promises. The command line does the same by the same functions. */
import type { Webhooks as Core, Millrace } from "@millrace/core"
import type { EventStore, StateStore } from "@millrace/event-sourcing"
import * as Acts from "../administration/Webhooks.ts"
import { metadata, type Recorded } from "./Administration.ts"
import { WEBHOOK } from "./ArgumentRules.ts"
import { assertArguments } from "./Mistakes.ts"
import type { NoticeName } from "./Notices.ts"
import type { Run } from "./Run.ts"

/** Addresses that notices are posted to, signed as Standard Webhooks says, by whichever host on the store delivers them. */
export interface Webhooks {
  readonly webhooks: {
    /** Adds a webhook. Its secret is returned this once. */
    readonly add: (
      options: Acts.WebhookOptions & { readonly on?: ReadonlyArray<NoticeName> } & Recorded
    ) => Promise<{ readonly webhook: string; readonly secret: string }>
    readonly list: () => Promise<ReadonlyArray<Acts.ShownWebhook>>
    /** A webhook, and how many of its deliveries wait or were given up. */
    readonly show: (webhook: string) => Promise<Acts.WebhookReport>
    /** Changes where it is posted to, or which notices it gets: null for all. */
    readonly change: (
      webhook: string,
      change: { readonly url?: string; readonly on?: ReadonlyArray<NoticeName> | null } & Recorded
    ) => Promise<Acts.WebhookReport>
    /** Makes a new secret. The one before it signs too for `overlap` milliseconds: a day by default. */
    readonly rotate: (
      webhook: string,
      options?: { readonly overlap?: number } & Recorded
    ) => Promise<{ readonly webhook: string; readonly secret: string }>
    /** Sends nothing from now on. What happens meanwhile waits in the log. */
    readonly disable: (webhook: string, recorded?: Recorded) => Promise<Acts.WebhookReport>
    /** Sends again, and what happened meanwhile, unless `skip`. */
    readonly enable: (webhook: string, options?: { readonly skip?: boolean } & Recorded) => Promise<Acts.WebhookReport>
    /** Removes it for ever, with its address, its secrets and its deliveries. */
    readonly remove: (webhook: string, recorded?: Recorded) => Promise<void>
    /** Posts a notice `webhook.test` now, once, from this process. */
    readonly test: (webhook: string) => Promise<Acts.Trial>
    /** The next deliveries that wait, at most a thousand. */
    readonly deliveries: (webhook: string) => Promise<ReadonlyArray<Acts.ShownDelivery>>
    /** Dead letters: deliveries that were given up, of one webhook or of all, at most a thousand of each. */
    readonly dead: (webhook?: string) => Promise<ReadonlyArray<Acts.ShownDelivery>>
    /** Sends a dead letter again. */
    readonly resend: (delivery: string) => Promise<{ readonly resent: number }>
    /** Sends all dead letters of a webhook again, or those of what happened from a time on. */
    readonly resendAll: (webhook: string, options?: { readonly since?: Date }) => Promise<{ readonly resent: number }>
  }
}

type Needs = Core.Webhooks | Millrace.Administration | EventStore.EventStore | StateStore.StateStore

export const webhooksOf = (run: Run<Needs>): Webhooks => ({
  webhooks: {
    add: async (options) => {
      assertArguments("webhooks.add", options, WEBHOOK)
      return run(Acts.add(options, metadata("webhooks.add", options)))
    },
    list: () => run(Acts.list),
    show: (webhook) => run(Acts.show(webhook)),
    change: (webhook, change) => run(Acts.change(webhook, change, metadata("webhooks.change", change))),
    rotate: (webhook, { overlap, ...recorded } = {}) => run(Acts.rotate(webhook, overlap, metadata("webhooks.rotate", recorded))),
    disable: (webhook, recorded) => run(Acts.disable(webhook, metadata("webhooks.disable", recorded))),
    enable: (webhook, { skip = false, ...recorded } = {}) => run(Acts.enable(webhook, skip, metadata("webhooks.enable", recorded))),
    remove: (webhook, recorded) => run(Acts.remove(webhook, metadata("webhooks.remove", recorded))),
    test: (webhook) => run(Acts.test(webhook)),
    deliveries: (webhook) => run(Acts.deliveries(webhook)),
    dead: (webhook) => run(Acts.dead(webhook)),
    resend: (delivery) => run(Acts.resend(delivery)),
    resendAll: (webhook, { since } = {}) => run(Acts.resendAll(webhook, since))
  }
})
