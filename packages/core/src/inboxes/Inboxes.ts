/**
 * The service that creates, reads, rotates and deletes inboxes for their accounts. `Mailroom` receives their mail; `InboxUpkeep` ends those
 * whose time is over.
 */
import { Aggregate, type Decide, type EventStore, type StateStore } from "@millrace/event-sourcing"
import { Context, type Duration, Effect, Layer, Schema } from "effect"
import type { Timestamp } from "../Timestamp.ts"
import type { BlobStore } from "../vault/BlobStore.ts"
import { ofInbox, Vault } from "../vault/Vault.ts"
import { UpstreamNotConfigured } from "../work/OperationError.ts"
import * as Addresses from "./Addresses.ts"
import * as Inbox from "./Inbox.ts"
import * as Letters from "./Letters.ts"
import { isUnreadable, MailReader } from "./MailReader.ts"
import * as MessageWaiters from "./MessageWaiters.ts"

export interface InboxesOptions {
  /** The domain of new addresses, whose mail comes to this server. Without one, the operations answer that they are not set up. */
  readonly domain?: string | undefined
}

/** A new inbox. `lifetime` in seconds. */
export interface NewInbox extends Letters.Owner {
  readonly lifetime: number
  readonly label: string | null
}

/** An inbox as its account sees it. */
export interface Shown extends Pick<Inbox.Active, "createdAt" | "expiresAt"> {
  readonly inboxId: string
  readonly address: string
  readonly label: string | null
  /** How many it has. */
  readonly messages: number
}

/** Which messages to list. */
export interface Listing {
  /** Only messages after this time, or after the message of this id. */
  readonly since?: Timestamp | string
  /** From 1. */
  readonly page: number
  readonly perPage: number
  /** How long to wait while there is none. */
  readonly wait?: Duration.Input
}

/** A message in a list. */
export interface Listed extends Inbox.Message {
  readonly summary: Letters.Summary
}

/** The inbox has no such message, or the message has no such attachment. */
export class MessageNotFound extends Schema.TaggedError<MessageNotFound>()("MessageNotFound", { messageId: Schema.String }) {
  override get message(): string {
    return `There is no message ${this.messageId}, or it has no such attachment`
  }
}

const LABEL = "inbox.label"

/** The messages after a time or after a message, the newest first. Undefined if there is no such message. */
const newestFirst = (messages: ReadonlyArray<Inbox.Message>, since: Listing["since"]): ReadonlyArray<Inbox.Message> | undefined => {
  if (typeof since !== "string") return messages.filter(({ receivedAt }) => receivedAt > (since ?? 0)).toReversed()
  const place = messages.findIndex(({ messageId }) => messageId === since)
  return place < 0 ? undefined : messages.slice(place + 1).toReversed()
}

/** Finds the live inboxes of an account, and their messages. */
const finder = (read: Aggregate.Aggregate<Inbox.Inbox, Inbox.InboxEvent>["read"]) => {
  const find = Effect.fnUntraced(function* (accountId: string, inboxId: string) {
    const { at, state } = Inbox.isId(inboxId) ? yield* read(inboxId) : { at: 0, state: Inbox.Inbox.initial }
    if (Inbox.isLive(state, at) && state.accountId === accountId) return state
    return yield* new Inbox.InboxNotFound({ inboxId })
  })
  const findMessage = Effect.fnUntraced(function* (accountId: string, inboxId: string, messageId: string) {
    const { messages } = yield* find(accountId, inboxId)
    return messages.find((message) => message.messageId === messageId) ?? (yield* new MessageNotFound({ messageId }))
  })
  return { find, findMessage }
}

type Finder = ReturnType<typeof finder>

/** Reads what inboxes received. */
const messageReader = Effect.fnUntraced(function* ({ find, findMessage }: Finder, letters: Letters.Letters) {
  const reader = yield* MailReader
  const waiters = yield* MessageWaiters.make

  const list = Effect.fn("Inboxes.list")(function* (owner: Letters.Owner, { page, perPage, since, wait }: Listing) {
    const { accountId, inboxId } = owner
    const selected = Effect.flatMap(find(accountId, inboxId), ({ messages }) => {
      const found = newestFirst(messages, since)
      return found === undefined ? Effect.fail(new MessageNotFound({ messageId: String(since) })) : Effect.succeed(found)
    })
    const all = yield* wait === undefined ? selected : waiters.until(inboxId, selected, ({ length }) => length > 0, wait)
    const messages = yield* Effect.forEach(all.slice((page - 1) * perPage, page * perPage), (message) =>
      Effect.map(letters.summary(owner, message), (summary): Listed => ({ ...message, summary }))
    )
    return { messages, total: all.length }
  })

  const content = Effect.fn("Inboxes.content")(function* (owner: Letters.Owner, messageId: string) {
    const message = yield* findMessage(owner.accountId, owner.inboxId, messageId)
    const summary = yield* letters.summary(owner, message)
    return { ...message, summary, content: yield* reader.read(yield* letters.raw(owner, message)) }
  })

  const attachment = Effect.fn("Inboxes.attachment")(function* (owner: Letters.Owner, messageId: string, place: number) {
    const message = yield* findMessage(owner.accountId, owner.inboxId, messageId)
    const raw = yield* letters.raw(owner, message)
    const content = yield* reader.read(raw)
    const described = isUnreadable(content) ? undefined : content.attachments[place]
    const bytes = described === undefined ? undefined : yield* reader.attachment(raw, place)
    if (described === undefined || bytes === undefined) return yield* new MessageNotFound({ messageId })
    return { ...described, bytes, blobId: message.blobId }
  })

  return { list, content, attachment, waiting: waiters.size }
})

const make = Effect.fnUntraced(function* ({ domain }: InboxesOptions) {
  const vault = yield* Vault
  const addresses = yield* Addresses.make
  const letters = yield* Letters.make
  const { execute, read, refused } = yield* Aggregate.make(Inbox.Inbox)
  const { find, findMessage } = finder(read)
  const { attachment, content, list, waiting } = yield* messageReader({ find, findMessage }, letters)

  const configured = domain === undefined ? Effect.fail(new UpstreamNotConfigured({ upstream: "inbox" })) : Effect.succeed(domain)

  const create = Effect.fn("Inboxes.create")(function* ({ label, lifetime, ...owner }: NewInbox) {
    const address = yield* addresses.claim(owner, yield* configured)
    const sealedLabel = label === null ? null : yield* vault.seal(ofInbox(owner.inboxId, owner.accountId), LABEL, label)
    const created = { accountId: owner.accountId, ...address, sealedLabel }
    yield* execute(owner.inboxId, (inbox, now) => Inbox.create({ ...created, expiresAt: now + lifetime * 1_000 })(inbox))
  })

  const show = Effect.fn("Inboxes.show")(function* ({ accountId, inboxId }: Letters.Owner) {
    const inbox = yield* find(accountId, inboxId)
    const { createdAt, expiresAt, messages, sealedLabel } = inbox
    const address = yield* addresses.open({ accountId, inboxId }, inbox)
    const label = sealedLabel === null ? null : yield* vault.open(ofInbox(inboxId, accountId), LABEL, sealedLabel)
    return { inboxId, address, label, createdAt, expiresAt, messages: messages.length } satisfies Shown
  })

  const rotate = Effect.fn("Inboxes.rotate")(function* (owner: Letters.Owner, metadata?: Aggregate.Metadata) {
    yield* find(owner.accountId, owner.inboxId)
    const address = yield* addresses.claim(owner, yield* configured)
    yield* execute(owner.inboxId, Inbox.rotate(owner.inboxId, address), metadata)
  })

  /** The key goes first: an inbox whose end is not written then can be read no more, and is ended again, at the latest by its expiry. */
  const end = Effect.fnUntraced(function* <E>(owner: Letters.Owner, decide: Decide<Inbox.Inbox, Inbox.InboxEvent, E>) {
    yield* letters.destroy(owner)
    yield* execute(owner.inboxId, decide)
    yield* letters.clear(owner)
  }, Effect.uninterruptible)

  return {
    /** The domain of new addresses. Fails if this host has none. */
    configured,
    /** Decides on an inbox: see `Inbox.ts`. */
    execute,
    /** The present state of an inbox, including events that other hosts wrote. */
    read,
    /** Inboxes, and addresses, whose streams this host cannot read. */
    refused: () => [...refused(), ...addresses.refused()],
    addresses,
    letters,
    /** An account's own live inbox. One that is foreign, missing, deleted or expired is not found. */
    find,
    /** A message of an account's own live inbox. */
    findMessage,
    /** Creates an inbox under an unused id. */
    create,
    show,
    /** The messages, the newest first, and how many there are on all pages. With `wait`, an empty list waits for the next message. */
    list,
    /** A message with its content. */
    content,
    /** An attachment with its bytes, by its place in the content. */
    attachment,
    /** Moves an inbox to a new address. The one before it is refused from then on, at all hosts. `metadata` names the call. */
    rotate,
    /** Deletes an account's own inbox for ever. Of several concurrent callers one succeeds, and the others do not find it. */
    remove: (owner: Letters.Owner) => Effect.andThen(find(owner.accountId, owner.inboxId), end(owner, Inbox.remove(owner.inboxId))),
    /** Ends an inbox whose time is over. Idempotent; the caller knows that it is over. */
    expire: (owner: Letters.Owner) => end(owner, Inbox.expire),
    /** How many callers wait for messages here. */
    waiting
  }
})

type Needs = Vault | BlobStore | MailReader | EventStore.EventStore | StateStore.StateStore

export class Inboxes extends Context.Service<Inboxes, Effect.Success<ReturnType<typeof make>>>()("@millrace/core/inboxes/Inboxes") {
  static readonly layer = (options: InboxesOptions = {}): Layer.Layer<Inboxes, never, Needs> => Layer.effect(this, make(options))
}
