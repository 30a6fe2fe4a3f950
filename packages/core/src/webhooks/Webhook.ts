/**
 * A webhook: an address of the host's that notices are posted to. The log holds its address, secrets and label sealed under a key of its
 * own, which is destroyed with the webhook. Stream `webhook-{id}`.
 */
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result, Schema } from "effect"
import { Timestamp } from "../Timestamp.ts"

const ID = /^wh_[0-9A-HJKMNP-TV-Z]{26}$/u

/** Whether a text has the format of the id of a webhook. */
export const isId = (text: string): boolean => ID.test(text)

// events

/** Why a webhook was disabled: by the host, because its receiver answered 410, or because every delivery failed for days. */
export const DisabledReason = Schema.Literals(["host", "gone", "failing"])
export type DisabledReason = typeof DisabledReason.Type

export const WebhookEvent = Schema.TaggedUnion({
  WebhookAdded: {
    sealedUrl: Schema.String,
    sealedSecret: Schema.String,
    /** The names of the notices that it gets; null for all, also those of later releases. */
    names: Schema.NullOr(Schema.Array(Schema.String)),
    /** The only account whose notices it gets; null for all. */
    accountId: Schema.NullOr(Schema.String),
    sealedLabel: Schema.NullOr(Schema.String)
  },
  /** What is absent stays as it was. */
  WebhookChanged: {
    sealedUrl: Schema.optionalKey(Schema.String),
    names: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.String)))
  },
  /** Until `previousUntil`, the secret before it signs as well. */
  WebhookSecretRotated: { sealedSecret: Schema.String, previousUntil: Timestamp },
  WebhookDisabled: { reason: DisabledReason },
  /** `skipped`: what happened until now, and was not delivered, is left out. */
  WebhookEnabled: { skipped: Schema.optionalKey(Schema.Literal(true)) },
  WebhookRemoved: {}
})
export type WebhookEvent = typeof WebhookEvent.Type

type EventOf<Tag extends WebhookEvent["_tag"]> = Extract<WebhookEvent, { readonly _tag: Tag }>

// state

export interface Present extends Omit<EventOf<"WebhookAdded">, "_tag"> {
  readonly status: "enabled" | "disabled"
  readonly addedAt: Timestamp
  /** The secret before the newest, and until when it signs too. */
  readonly previous: { readonly sealedSecret: string; readonly until: Timestamp } | null
  /** Null while it is enabled. */
  readonly disabled: { readonly reason: DisabledReason; readonly at: Timestamp } | null
}
export type Webhook = { readonly status: "absent" } | { readonly status: "removed" } | Present

export const isPresent = (webhook: Webhook): webhook is Present => webhook.status === "enabled" || webhook.status === "disabled"

const present = (webhook: Webhook): Present => {
  // The decisions guarantee it, so a log that breaks this was not written by this code
  if (!isPresent(webhook)) throw new Error(`A webhook that is ${webhook.status} does not change`)
  return webhook
}

const evolve = (webhook: Webhook, event: WebhookEvent, at: Timestamp): Webhook => {
  switch (event._tag) {
    case "WebhookAdded": {
      const { _tag: _, ...added } = event
      if (webhook.status !== "absent") throw new Error("A webhook is added first, and once")
      return { ...added, status: "enabled", addedAt: at, previous: null, disabled: null }
    }
    case "WebhookChanged": {
      const { _tag: _, ...changed } = event
      return { ...present(webhook), ...changed }
    }
    case "WebhookSecretRotated": {
      const before = present(webhook)
      const previous = { sealedSecret: before.sealedSecret, until: event.previousUntil }
      return { ...before, sealedSecret: event.sealedSecret, previous }
    }
    case "WebhookDisabled": {
      const before = present(webhook)
      if (before.status === "disabled") throw new Error("A webhook that is disabled is not disabled again")
      return { ...before, status: "disabled", disabled: { reason: event.reason, at } }
    }
    case "WebhookEnabled": {
      const before = present(webhook)
      if (before.status === "enabled" && event.skipped !== true) throw new Error("A webhook that is enabled is not enabled again")
      return { ...before, status: "enabled", disabled: null }
    }
    case "WebhookRemoved":
      present(webhook)
      return { status: "removed" }
  }
}

export const Webhook: Decider<Webhook, WebhookEvent> = {
  category: "webhook",
  codec: EventCodec.make(WebhookEvent),
  initial: { status: "absent" },
  evolve
}

// decisions

/** There is no webhook of this id, or it was removed. */
export class WebhookNotFound extends Schema.TaggedError<WebhookNotFound>()("WebhookNotFound", { webhook: Schema.String }) {
  override get message(): string {
    return `There is no webhook ${this.webhook}`
  }
}

type Decided<E = never> = Decision<WebhookEvent, E>

const NOTHING: Decided = Result.succeed([])
const one = (event: WebhookEvent): Decided => Result.succeed([event])

const found =
  (id: string, decide: (webhook: Present, now: Timestamp) => Decided) =>
  (webhook: Webhook, now: Timestamp): Decided<WebhookNotFound> =>
    isPresent(webhook) ? decide(webhook, now) : Result.fail(new WebhookNotFound({ webhook: id }))

/** Adds a webhook under an unused id. */
export const add =
  (added: Omit<EventOf<"WebhookAdded">, "_tag">) =>
  (webhook: Webhook): Decided => {
    if (webhook.status !== "absent") throw new Error("A webhook of this id exists already")
    return one({ _tag: "WebhookAdded", ...added })
  }

export const change = (id: string, changed: Omit<EventOf<"WebhookChanged">, "_tag">) =>
  found(id, () => (Object.keys(changed).length === 0 ? NOTHING : one({ _tag: "WebhookChanged", ...changed })))

/** `overlap`: for how many milliseconds the secret before it signs as well. */
export const rotate = (id: string, sealedSecret: string, overlap: number) =>
  found(id, (_, now) => one({ _tag: "WebhookSecretRotated", sealedSecret, previousUntil: now + overlap }))

/** Disabling again changes nothing, whatever the reason. */
export const disable = (id: string, reason: DisabledReason) =>
  found(id, ({ status }) => (status === "disabled" ? NOTHING : one({ _tag: "WebhookDisabled", reason })))

/** Enabling again changes nothing. `skip`: leaves out what happened until now and was not delivered. */
export const enable = (id: string, skip: boolean) =>
  found(id, ({ status }) =>
    status === "enabled" && !skip ? NOTHING : one({ _tag: "WebhookEnabled", ...(skip ? { skipped: true as const } : {}) })
  )

/** Removes a webhook for ever. Removing again changes nothing. */
export const remove =
  (id: string) =>
  (webhook: Webhook): Decided<WebhookNotFound> => {
    if (webhook.status === "absent") return Result.fail(new WebhookNotFound({ webhook: id }))
    return webhook.status === "removed" ? NOTHING : one({ _tag: "WebhookRemoved" })
  }

/** The sealed secrets that sign at a time: the newest first. */
export const signing = ({ previous, sealedSecret }: Present, now: Timestamp): ReadonlyArray<string> =>
  previous !== null && now < previous.until ? [sealedSecret, previous.sealedSecret] : [sealedSecret]
