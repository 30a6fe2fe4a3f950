/** The service that posts a webhook. The core signs nothing and opens no connection. */
import { Context, type Effect, type Redacted, Schema } from "effect"

/** A message for one receiver. */
export interface Message {
  readonly url: string
  /** Each signs, the newest first: `whsec_` and Base64. */
  readonly secrets: ReadonlyArray<Redacted.Redacted<string>>
  /** The id of the notice: the same at each attempt. */
  readonly id: string
  /** The time of the attempt, milliseconds since 1970. */
  readonly at: number
  /** JSON. */
  readonly body: string
}

/** What the receiver answered. */
export interface Answer {
  readonly status: number
  /** Milliseconds after which the receiver wants to be asked again, by `Retry-After`. */
  readonly retryAfter: number | undefined
}

/** The message did not get an answer. The reason names neither the address nor a secret. */
export class WebhookNotSent extends Schema.TaggedError<WebhookNotSent>()("WebhookNotSent", { reason: Schema.String }) {
  override get message(): string {
    return `The webhook was not answered: ${this.reason}`
  }
}

/** An address that webhooks cannot be posted to. */
export class InvalidWebhookUrl extends Schema.TaggedError<InvalidWebhookUrl>()("InvalidWebhookUrl", { reason: Schema.String }) {
  override get message(): string {
    return `Webhooks cannot be posted to this address: it ${this.reason}`
  }
}

export class WebhookSender extends Context.Service<
  WebhookSender,
  {
    /** Posts a message once, within a time limit. Follows no redirects. Any status is an answer. */
    readonly send: (message: Message) => Effect.Effect<Answer, WebhookNotSent>
    /** Fails for an address of a form that is never posted to. Asks no name server. */
    readonly check: (url: string) => Effect.Effect<void, InvalidWebhookUrl>
  }
>()("@millrace/core/webhooks/WebhookSender") {}
