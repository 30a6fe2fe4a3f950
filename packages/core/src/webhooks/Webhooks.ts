/** The service for administrators of webhooks. `WebhookDelivery` sends what they get. */
import { Aggregate, type EventStore, Projection, type StateStore } from "@millrace/event-sourcing"
import { Clock, Context, Duration, Effect, HashMap, Layer, Redacted, Result, Schema } from "effect"
import { newRequestId, newWebhookId } from "../Ids.ts"
import * as Notices from "../notices/Notices.ts"
import { type Timestamp, toIso } from "../Timestamp.ts"
import { RandomBytes } from "../vault/RandomBytes.ts"
import { ofWebhook, Vault } from "../vault/Vault.ts"
import * as Body from "./Body.ts"
import * as Endpoints from "./Endpoints.ts"
import * as Webhook from "./Webhook.ts"
import { type Answer, type Message, WebhookNotSent, WebhookSender } from "./WebhookSender.ts"

/** What a new webhook gets. */
export interface Added {
  readonly url: string
  /** The names of the notices that it gets: all by default, also those of later releases. */
  readonly names?: ReadonlyArray<string>
  /** Only notices of this account, `acc_...`. */
  readonly accountId?: string
  /** Stored sealed. */
  readonly label?: string
}

/** A webhook as an administrator sees it. */
export interface Shown {
  readonly id: string
  /** Null where its key is missing, as after a restore without keys: then it cannot be posted to. */
  readonly url: string | null
  readonly label: string | null
  /** Null for all. */
  readonly names: ReadonlyArray<string> | null
  readonly accountId: string | null
  readonly status: "enabled" | "disabled"
  readonly disabled: Webhook.Present["disabled"]
  readonly addedAt: Timestamp
  /** Until when the secret before the newest signs too. */
  readonly previousUntil: Timestamp | null
}

/** There is no notice of this name. */
export class UnknownNotice extends Schema.TaggedError<UnknownNotice>()("UnknownNotice", { notice: Schema.String }) {
  override get message(): string {
    return `There is no notice ${this.notice}; the notices are ${Notices.NAMES.join(", ")}`
  }
}

export class TooManyWebhooks extends Schema.TaggedError<TooManyWebhooks>()("TooManyWebhooks", { limit: Schema.Int }) {
  override get message(): string {
    return `There are ${this.limit} webhooks already, which is the most`
  }
}

const LIMIT = 100
const OVERLAP = "24 hours"
const URL_PURPOSE = "webhook.url"
const SECRET_PURPOSE = "webhook.secret"
const LABEL_PURPOSE = "webhook.label"

/** 256 random bits, as Standard Webhooks writes them. */
const newSecret = (random: RandomBytes): string => `whsec_${Buffer.from(random(32)).toString("base64")}`

type Found = { readonly webhook: Webhook.Present; readonly at: Timestamp }

/** Posts a body to a webhook, whatever its status. */
const poster = <E>(vault: Vault["Service"], sender: WebhookSender["Service"], find: (id: string) => Effect.Effect<Found, E>) =>
  Effect.fnUntraced(function* (
    id: string,
    message: Pick<Message, "id" | "body" | "at">
  ): Effect.fn.Return<Result.Result<Answer, WebhookNotSent>, E | StateStore.StateUnavailable> {
    const { webhook } = yield* find(id)
    const opened = Effect.all({
      url: vault.open(ofWebhook(id), URL_PURPOSE, webhook.sealedUrl),
      secrets: Effect.forEach(Webhook.signing(webhook, message.at), (sealed) =>
        Effect.map(vault.open(ofWebhook(id), SECRET_PURPOSE, sealed), (secret) => Redacted.make(secret))
      )
    }).pipe(
      // It was removed at this moment, or the store was restored without its keys
      Effect.catchTag(["SubjectDestroyed", "Tampered"], () => Effect.fail(new WebhookNotSent({ reason: "its address cannot be opened" })))
    )
    return yield* Effect.flatMap(opened, (to) => sender.send({ ...to, ...message })).pipe(
      Effect.map(Result.succeed),
      Effect.catchTag("WebhookNotSent", (failure) => Effect.succeed(Result.fail(failure)))
    )
  })

const shower = <E>(vault: Vault["Service"], find: (id: string) => Effect.Effect<Found, E>) =>
  Effect.fn("Webhooks.show")(function* (id: string) {
    const { webhook } = yield* find(id)
    const { accountId, addedAt, disabled, names, previous, sealedLabel, sealedUrl, status } = webhook
    const opened = (purpose: string, sealed: string | null) =>
      sealed === null
        ? Effect.succeed(null)
        : Effect.catchTag(vault.open(ofWebhook(id), purpose, sealed), "SubjectDestroyed", () => Effect.succeed(null))
    const label = yield* opened(LABEL_PURPOSE, sealedLabel)
    const url = yield* opened(URL_PURPOSE, sealedUrl)
    const shown: Shown = { id, url, label, names, accountId, status, disabled, addedAt, previousUntil: previous?.until ?? null }
    return shown
  })

const make = Effect.gen(function* () {
  const vault = yield* Vault
  const sender = yield* WebhookSender
  const random = yield* RandomBytes
  const { execute, read, refused } = yield* Aggregate.make(Webhook.Webhook)
  const endpoints = yield* Projection.make(Endpoints.definition)

  const knownNames = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
    const unknown = names.find((name) => !Notices.isName(name))
    return unknown === undefined ? [...new Set(names)] : yield* new UnknownNotice({ notice: unknown })
  })

  const find = Effect.fnUntraced(function* (id: string) {
    const { at, state } = Webhook.isId(id) ? yield* read(id) : { at: 0, state: Webhook.Webhook.initial }
    return Webhook.isPresent(state) ? { webhook: state, at } : yield* new Webhook.WebhookNotFound({ webhook: id })
  })

  const add = Effect.fn("Webhooks.add")(function* ({ accountId, label, names, url }: Added, metadata?: Aggregate.Metadata) {
    yield* sender.check(url)
    const known = names === undefined ? null : yield* knownNames(names)
    if (HashMap.size((yield* endpoints.caughtUp()).state) >= LIMIT) return yield* new TooManyWebhooks({ limit: LIMIT })
    const id = yield* newWebhookId
    const secret = newSecret(random)
    const added = {
      sealedUrl: yield* vault.seal(ofWebhook(id), URL_PURPOSE, url),
      sealedSecret: yield* vault.seal(ofWebhook(id), SECRET_PURPOSE, secret),
      names: known,
      accountId: accountId ?? null,
      sealedLabel: label === undefined ? null : yield* vault.seal(ofWebhook(id), LABEL_PURPOSE, label)
    }
    yield* execute(id, Webhook.add(added), metadata)
    return { id, secret: Redacted.make(secret, { label: "WebhookSecret" }) }
  })

  const change = Effect.fn("Webhooks.change")(function* (
    id: string,
    { names, url }: { readonly url?: string; readonly names?: ReadonlyArray<string> | null },
    metadata?: Aggregate.Metadata
  ) {
    if (url !== undefined) yield* sender.check(url)
    yield* find(id)
    const changed = {
      ...(url === undefined ? {} : { sealedUrl: yield* vault.seal(ofWebhook(id), URL_PURPOSE, url) }),
      ...(names === undefined ? {} : { names: names === null ? null : yield* knownNames(names) })
    }
    yield* execute(id, Webhook.change(id, changed), metadata)
  })

  const rotate = Effect.fn("Webhooks.rotate")(function* (id: string, overlap: Duration.Input = OVERLAP, metadata?: Aggregate.Metadata) {
    yield* find(id)
    const secret = newSecret(random)
    const sealed = yield* vault.seal(ofWebhook(id), SECRET_PURPOSE, secret)
    yield* execute(id, Webhook.rotate(id, sealed, Duration.toMillis(overlap)), metadata)
    return Redacted.make(secret, { label: "WebhookSecret" })
  })

  const post = poster(vault, sender, find)

  return {
    /** Adds a webhook. Its secret is returned here only, and by {@link rotate}. */
    add,
    /** Changes where it is posted to, or which notices it gets. What is undefined stays. */
    change,
    show: shower(vault, find),
    /** The ids of all webhooks, oldest first. */
    ids: Effect.map(endpoints.caughtUp(), ({ state }) => Endpoints.idsOf(state)),
    /** Makes a new secret. The one before it signs too for `overlap`, 24 hours by default. */
    rotate,
    /** Nothing is sent from now on. What happens meanwhile waits in the log. */
    disable: (id: string, reason: Webhook.DisabledReason = "host", metadata?: Aggregate.Metadata) =>
      Effect.asVoid(execute(id, Webhook.disable(id, reason), metadata)),
    /** Sends again, and what happened meanwhile; with `skip`, only what happens from now on. */
    enable: (id: string, { skip = false }: { readonly skip?: boolean } = {}, metadata?: Aggregate.Metadata) =>
      Effect.asVoid(execute(id, Webhook.enable(id, skip), metadata)),
    /** Removes a webhook for ever, and destroys its address and secrets. Removing again completes a removal that was interrupted. */
    remove: (id: string, metadata?: Aggregate.Metadata) =>
      Effect.andThen(execute(id, Webhook.remove(id), metadata), vault.destroy(ofWebhook(id))),
    /** Posts a notice `webhook.test` now, once, also to a webhook that is disabled. */
    test: Effect.fn("Webhooks.test")(function* (id: string) {
      const at = yield* Clock.currentTimeMillis
      const notice = `webhook_test_${yield* newRequestId}`
      return yield* post(id, { id: notice, at, body: Body.encode("webhook.test", toIso(at), { webhook: id }) })
    }),
    post,
    read,
    endpoints,
    /** Webhooks whose streams this host cannot read. */
    refused
  }
})

export class Webhooks extends Context.Service<Webhooks, Effect.Success<typeof make>>()("@millrace/core/webhooks/Webhooks") {
  static readonly layer: Layer.Layer<Webhooks, never, WebhookSender | Vault | EventStore.EventStore | StateStore.StateStore> = Layer.effect(
    this,
    make
  )
}
