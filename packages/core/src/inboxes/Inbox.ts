/**
 * A disposable inbox: created with a lifetime, moved to a new address at will, deleted or expired. Once it is gone it never comes back. The
 * log holds its address, its label and what its messages say only sealed under a key of its own, which is destroyed with it. Stream
 * `inbox-{inboxId}`.
 */
import { type Decider, type Decision, EventCodec } from "@millrace/event-sourcing"
import { Result, Schema } from "effect"
import { bare } from "../Ids.ts"
import { Timestamp } from "../Timestamp.ts"

const ID = /^inbox_[0-9A-HJKMNP-TV-Z]{26}$/u

/** Whether a text has the format of the id of an inbox. */
export const isId = (text: string): boolean => ID.test(text)

/** An inbox has the ULID of the reservation that pays for it. */
export const idOf = (reservationId: string): string => `inbox_${bare(reservationId)}`

/** The most messages of an inbox, and the most bytes of them all: what a test needs, and little for whoever fills it from outside. */
export const MAX_MESSAGES = 100
export const MAX_BYTES = 25 * 1024 * 1024

/** The lifetimes that an inbox may have, in seconds. */
export const LIFETIME = { minimum: 60, maximum: 86_400, default: 3_600 } as const

// events

/** An address in the log: its HMAC, which names the stream of its claim, and itself, sealed. */
const Address = { addressHash: Schema.String, sealedAddress: Schema.String }

export const InboxEvent = Schema.TaggedUnion({
  InboxCreated: {
    accountId: Schema.String,
    ...Address,
    sealedLabel: Schema.NullOr(Schema.String),
    expiresAt: Timestamp
  },
  /** From now on the address before it receives nothing. */
  InboxRotated: Address,
  MessageReceived: {
    messageId: Schema.String,
    /** Of the address that it came to. */
    addressHash: Schema.String,
    /** Bytes, as it came. */
    size: Schema.Int,
    /** The blob that holds it, sealed. */
    blobId: Schema.String,
    /** What a list shows of it, and its authentication. */
    sealedSummary: Schema.String
  },
  InboxDeleted: {},
  InboxExpired: {}
})
export type InboxEvent = typeof InboxEvent.Type

type EventOf<Tag extends InboxEvent["_tag"]> = Omit<Extract<InboxEvent, { readonly _tag: Tag }>, "_tag">

// state

export interface Message extends Omit<EventOf<"MessageReceived">, "addressHash"> {
  readonly receivedAt: Timestamp
}

export interface Active extends EventOf<"InboxCreated"> {
  readonly status: "active"
  readonly createdAt: Timestamp
  /** The oldest first. */
  readonly messages: ReadonlyArray<Message>
  /** Bytes of all messages. */
  readonly bytes: number
}

export interface Gone {
  readonly status: "deleted" | "expired"
  readonly accountId: string
}

export type Inbox = { readonly status: "absent" } | Active | Gone

/** An inbox counts as gone from the instant of its expiry on, whether or not that was written yet. */
export const isLive = (inbox: Inbox, now: Timestamp): inbox is Active => inbox.status === "active" && now < inbox.expiresAt

/** Whether it has no room for a message of so many bytes. */
export const isFull = ({ bytes, messages }: Active, size: number): boolean => messages.length >= MAX_MESSAGES || bytes + size > MAX_BYTES

const active = (inbox: Inbox): Active => {
  // The decisions guarantee it, so a log that breaks this was not written by this code
  if (inbox.status !== "active") throw new Error(`Nothing happens to an inbox that is ${inbox.status}`)
  return inbox
}

const live = (inbox: Inbox, at: Timestamp): Active => {
  const before = active(inbox)
  if (!isLive(before, at)) throw new Error("Nothing happens to an inbox after its expiry")
  return before
}

const received = (inbox: Active, { addressHash, ...message }: EventOf<"MessageReceived">, receivedAt: Timestamp): Active => {
  if (addressHash !== inbox.addressHash) throw new Error("A message comes to the address of the inbox")
  if (inbox.messages.some(({ messageId }) => messageId === message.messageId)) throw new Error("A message is received once")
  if (isFull(inbox, message.size)) throw new Error("A full inbox receives nothing")
  return { ...inbox, messages: [...inbox.messages, { ...message, receivedAt }], bytes: inbox.bytes + message.size }
}

const evolve = (inbox: Inbox, event: InboxEvent, at: Timestamp): Inbox => {
  switch (event._tag) {
    case "InboxCreated": {
      const { _tag: _, ...created } = event
      if (inbox.status !== "absent") throw new Error("An inbox is created first, and once")
      return { ...created, status: "active", createdAt: at, messages: [], bytes: 0 }
    }
    case "InboxRotated": {
      const { _tag: _, ...address } = event
      return { ...live(inbox, at), ...address }
    }
    case "MessageReceived": {
      const { _tag: _, ...message } = event
      return received(live(inbox, at), message, at)
    }
    case "InboxDeleted":
      return { status: "deleted", accountId: active(inbox).accountId }
    case "InboxExpired": {
      const { accountId, expiresAt } = active(inbox)
      if (at < expiresAt) throw new Error("An inbox expires at its time")
      return { status: "expired", accountId }
    }
  }
}

export const Inbox: Decider<Inbox, InboxEvent> = {
  category: "inbox",
  codec: EventCodec.make(InboxEvent),
  initial: { status: "absent" },
  evolve
}

// decisions

/** There is no inbox of this id, or it is gone. */
export class InboxNotFound extends Schema.TaggedError<InboxNotFound>()("InboxNotFound", { inboxId: Schema.String }) {
  override get message(): string {
    return `There is no inbox ${this.inboxId}`
  }
}

/** The inbox does not have this address now, or is gone. */
export class NotAddressed extends Schema.TaggedError<NotAddressed>()("NotAddressed", {}) {
  override get message(): string {
    return "The inbox does not have this address now"
  }
}

/** The inbox has as many messages, or bytes, as it may have. */
export class NoRoom extends Schema.TaggedError<NoRoom>()("NoRoom", {}) {
  override get message(): string {
    return "The inbox is full"
  }
}

type Decided<E = never> = Decision<InboxEvent, E>

const NOTHING: Decided = Result.succeed([])

/** Creates an inbox under an unused id. Creating it again changes nothing. */
export const create =
  (created: EventOf<"InboxCreated">) =>
  (inbox: Inbox): Decided =>
    inbox.status === "absent" ? Result.succeed([{ _tag: "InboxCreated", ...created }]) : NOTHING

const found =
  (inboxId: string, decide: (inbox: Active) => Decided) =>
  (inbox: Inbox, now: Timestamp): Decided<InboxNotFound> =>
    isLive(inbox, now) ? decide(inbox) : Result.fail(new InboxNotFound({ inboxId }))

/** Moves an inbox to another address. */
export const rotate = (inboxId: string, address: EventOf<"InboxRotated">) =>
  found(inboxId, ({ addressHash }) =>
    addressHash === address.addressHash ? NOTHING : Result.succeed([{ _tag: "InboxRotated", ...address }])
  )

/** Whether a message of so many bytes to this address would be received. */
export const admits = (
  inbox: Inbox,
  { addressHash, size }: Pick<EventOf<"MessageReceived">, "addressHash" | "size">,
  now: Timestamp
): Result.Result<Active, NotAddressed | NoRoom> => {
  if (!isLive(inbox, now) || inbox.addressHash !== addressHash) return Result.fail(new NotAddressed())
  return isFull(inbox, size) ? Result.fail(new NoRoom()) : Result.succeed(inbox)
}

/** Whether a live inbox has received this message. */
export const has = (inbox: Inbox, messageId: string, now: Timestamp): boolean =>
  isLive(inbox, now) && inbox.messages.some((message) => message.messageId === messageId)

/** Receives a message. Receiving it again changes nothing, also after a rotation. */
export const receive =
  (message: EventOf<"MessageReceived">) =>
  (inbox: Inbox, now: Timestamp): Decided<NotAddressed | NoRoom> =>
    has(inbox, message.messageId, now) ? NOTHING : Result.map(admits(inbox, message, now), () => [{ _tag: "MessageReceived", ...message }])

/** Deletes a live inbox. */
export const remove = (inboxId: string) => found(inboxId, () => Result.succeed([{ _tag: "InboxDeleted" }]))

/** Writes the expiry of an inbox whose time is over. */
export const expire = (inbox: Inbox, now: Timestamp): Decided =>
  inbox.status === "active" && !isLive(inbox, now) ? Result.succeed([{ _tag: "InboxExpired" }]) : NOTHING
