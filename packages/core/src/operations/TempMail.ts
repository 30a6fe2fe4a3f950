/** Temporary mail: operations that create inboxes, read what they received, and end them. Inboxes are for testing only. */
import { Effect, Schema, Stream } from "effect"
import * as Inbox from "../inboxes/Inbox.ts"
import { Inboxes } from "../inboxes/Inboxes.ts"
import type { Owner } from "../inboxes/Letters.ts"
import * as Operation from "../work/Operation.ts"
import { InvalidInput, NotFound, UpstreamNotConfigured, UpstreamUnavailable } from "../work/OperationError.ts"
import { LAST_PAGE, PER_PAGE } from "./CommonLimits.ts"
import { InboxData, inboxData, MessageData, messageData, summary, summaryData } from "./TempMailRecords.ts"

const TESTING = "Inboxes are for testing only: whoever runs this server can read them, and they end after a day at the latest."

// what they share

const Id = Schema.String.check(Schema.isMinLength(1), Schema.isMaxCodePoints(100))
const InboxParams = { inbox: Id }
const MessageParams = { inbox: Id, message: Id }

const inboxPath = "/temp-mail/inboxes/:inbox"
const messagePath = `${inboxPath}/messages/:message` as const

/** Fails without a mail domain. */
const configured: Effect.Effect<void, UpstreamNotConfigured, Inboxes> = Effect.flatMap(Inboxes, (inboxes) =>
  Effect.asVoid(inboxes.configured)
)

type Told = NotFound | UpstreamNotConfigured | UpstreamUnavailable

/** What a caller is told: what is gone is not found; a store may answer again. */
const told = (error: { readonly _tag: string }): Told => {
  if (error instanceof UpstreamNotConfigured) return error
  switch (error._tag) {
    case "InboxNotFound":
    case "SubjectDestroyed":
      return new NotFound({ resource: "inbox" })
    case "MessageNotFound":
    case "BlobNotFound":
      return new NotFound({ resource: "message" })
    default:
      return new UpstreamUnavailable({ upstream: "inbox", reason: error._tag, isolated: true })
  }
}

/** Asks the inboxes of a host that has a mail domain. */
const asking = <A, E extends { readonly _tag: string }, R>(
  ask: (inboxes: Inboxes["Service"]) => Effect.Effect<A, E, R>
): Effect.Effect<A, Told, R | Inboxes> =>
  Effect.flatMap(Inboxes, (inboxes) => Effect.mapError(Effect.andThen(inboxes.configured, ask(inboxes)), told))

/** Before credits are held: the inbox is the caller's. */
const ownInbox = ({ inbox }: { readonly inbox: string }, { accountId }: Operation.Requester) =>
  Effect.asVoid(asking((inboxes) => inboxes.find(accountId, inbox)))
const ownMessage = ({ inbox, message }: { readonly inbox: string; readonly message: string }, { accountId }: Operation.Requester) =>
  Effect.asVoid(asking((inboxes) => inboxes.findMessage(accountId, inbox, message)))

const shown = (owner: Owner) =>
  Effect.map(
    asking((inboxes) => inboxes.show(owner)),
    (inbox) => ({ data: inboxData(inbox) })
  )

// examples

const EXAMPLE_ID = "inbox_01JY6W5V8X3M4N7P9Q2R5S8T1V"
const EXAMPLE_MESSAGE = "msg_5f2b1c9e0a7d4e83b6c1f09a2d"
const EXAMPLE: typeof InboxData.Type = {
  inbox_id: EXAMPLE_ID,
  address: "tibarole-kefosani-demoza@mail.example.com",
  label: "sign-up test 7",
  created_at: "2026-11-21T09:30:00.000Z",
  expires_at: "2026-11-21T10:30:00.000Z",
  message_count: 0
}
const EXAMPLE_SUMMARY = {
  message_id: EXAMPLE_MESSAGE,
  from: { name: "Example Shop", address: "hello@shop.example.com" },
  subject: "Confirm your address",
  received_at: "2026-11-21T09:31:07.412Z",
  size: 5_120,
  has_attachments: true
}

// the operations

export const create = Operation.make("inbox.create", {
  summary: "Create a disposable inbox",
  description: `Answers with an address that nobody had before. ${TESTING}`,
  price: 1,
  route: {
    method: "POST",
    path: "/temp-mail/inboxes",
    body: {
      /** Seconds until it is gone: 3,600 by default. */
      lifetime: Schema.optionalKey(Schema.Int.check(Schema.isBetween(Inbox.LIFETIME))),
      /** A note of the caller's, kept sealed. */
      label: Schema.optionalKey(Schema.String.check(Schema.isMaxCodePoints(100)))
    }
  },
  success: InboxData,
  configured,
  check: () => asking(() => Effect.void),
  local: true,
  run: Effect.fnUntraced(function* ({ label = null, lifetime = Inbox.LIFETIME.default }, { accountId, reservationId }) {
    const owner = { accountId, inboxId: Inbox.idOf(reservationId) }
    yield* asking((inboxes) => inboxes.create({ ...owner, label, lifetime }))
    return yield* shown(owner)
  }),
  recover: Effect.fnUntraced(function* (reservationId) {
    const inboxId = Inbox.idOf(reservationId)
    const { state } = yield* asking((inboxes) => inboxes.read(inboxId))
    if (state.status === "absent") return undefined
    return yield* Effect.catchTag(shown({ inboxId, accountId: state.accountId }), "NotFound", () => Effect.undefined)
  }),
  example: { input: { lifetime: 3_600, label: "sign-up test 7" }, data: EXAMPLE },
  links: ["inbox.read", "inbox.listMessages", "inbox.rotate", "inbox.delete"].map((operation) => ({
    operation,
    parameters: { inbox: "/inbox_id" }
  }))
})

export const read = Operation.make("inbox.read", {
  summary: "Read a disposable inbox",
  price: 0.1,
  route: { method: "GET", path: inboxPath, params: InboxParams },
  success: InboxData,
  configured,
  check: ownInbox,
  local: true,
  run: ({ inbox }, { accountId }) => shown({ accountId, inboxId: inbox }),
  example: { input: { inbox: EXAMPLE_ID }, data: EXAMPLE }
})

/** RFC 3339, or the id of a message. */
const SINCE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/u
const MESSAGE_ID = /^msg_[0-9a-f]{26}$/u

const sinceOf = (text: string): number | string | undefined => {
  if (MESSAGE_ID.test(text)) return text
  const time = SINCE.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(time) ? undefined : time
}

const notATime = () =>
  new InvalidInput({
    field: "since",
    message: 'since is neither a time such as "2026-01-31T00:00:00Z" nor the id of a message of this inbox'
  })

const sinceIn = (since: string | undefined): Effect.Effect<{ readonly since?: number | string }, InvalidInput> => {
  if (since === undefined) return Effect.succeed({})
  const parsed = sinceOf(since)
  return parsed === undefined ? Effect.fail(notATime()) : Effect.succeed({ since: parsed })
}

/** Longer than the longest wait of a caller. */
const LIST_TIMEOUT = "160 seconds"

export const listMessages = Operation.make("inbox.listMessages", {
  summary: "List the messages of a disposable inbox",
  description:
    "The newest comes first. `since` is a time, or the id of a message: only later ones are listed. With `Prefer: wait=30`, an empty " +
    "list waits up to 30 seconds for the next message, so a test needs no polling.",
  price: 0.1,
  route: {
    method: "GET",
    path: `${inboxPath}/messages`,
    params: InboxParams,
    query: {
      /** Only messages after this time, or after the message of this id. */
      since: Schema.optionalKey(Schema.String.check(Schema.isMaxCodePoints(40))),
      page: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: LAST_PAGE }))),
      /** 25 by default. */
      per_page: Schema.optionalKey(Schema.Int.check(Schema.isBetween(PER_PAGE)))
    }
  },
  success: Schema.Struct({ messages: Schema.Array(Schema.Struct(summary)) }),
  configured,
  check: (input, requester) => Effect.andThen(sinceIn(input.since), ownInbox(input, requester)),
  local: true,
  waits: true,
  unkept: true,
  timeout: LIST_TIMEOUT,
  run: Effect.fnUntraced(function* ({ inbox, page = 1, per_page = PER_PAGE.default, since }, { accountId, wait }) {
    const listing = {
      ...(yield* sinceIn(since)),
      page,
      perPage: per_page,
      ...(wait === undefined ? {} : { wait: `${wait} seconds` as const })
    }
    const { messages, total } = yield* asking((inboxes) => inboxes.list({ accountId, inboxId: inbox }, listing))
    return { data: { messages: messages.map(summaryData) }, page: { number: page, size: per_page, total } }
  }),
  example: { input: { inbox: EXAMPLE_ID, since: "2026-11-21T09:30:00Z" }, data: { messages: [EXAMPLE_SUMMARY] } }
})

export const readMessage = Operation.make("inbox.readMessage", {
  summary: "Read a message of a disposable inbox",
  description: "A message that cannot be read safely has `unreadable`, and is kept as it came.",
  price: 0.1,
  route: { method: "GET", path: messagePath, params: MessageParams },
  success: MessageData,
  configured,
  check: ownMessage,
  local: true,
  unkept: true,
  run: Effect.fnUntraced(function* ({ inbox, message }, { accountId }) {
    const read = yield* asking((inboxes) => inboxes.content({ accountId, inboxId: inbox }, message))
    return { data: messageData(inbox, read) }
  }),
  example: {
    input: { inbox: EXAMPLE_ID, message: EXAMPLE_MESSAGE },
    data: {
      ...EXAMPLE_SUMMARY,
      to: [{ name: null, address: EXAMPLE.address }],
      cc: [],
      reply_to: [],
      text: "Confirm your address: https://shop.example.com/confirm/7",
      html: '<p><a href="https://shop.example.com/confirm/7">Confirm your address</a></p>',
      headers: { "message-id": ["<7@shop.example.com>"] },
      authentication: { spf: "pass", dkim: "pass", dmarc: "pass", arc: "none" },
      attachments: [
        {
          name: "terms.pdf",
          content_type: "application/pdf",
          size: 2_048,
          url: `/temp-mail/inboxes/${EXAMPLE_ID}/messages/${EXAMPLE_MESSAGE}/attachments/1`
        }
      ],
      unreadable: null,
      raw_url: `/temp-mail/inboxes/${EXAMPLE_ID}/messages/${EXAMPLE_MESSAGE}/raw`
    }
  }
})

/** A name for the file that a client saves: a sender must not choose another part of the header. */
const fileName = (name: string | null, otherwise: string): string =>
  name
    ?.replaceAll(/[^\w.-]+/gu, "_")
    .slice(-100)
    .replace(/^\.+/u, "") || otherwise

export const downloadAttachment = Operation.file("inbox.downloadAttachment", {
  summary: "Download an attachment of a message",
  description: "`attachment` is its place in the message, from 1. Its content is whatever the sender wrote.",
  price: 0.1,
  route: { path: `${messagePath}/attachments/:attachment`, params: { ...MessageParams, attachment: Id } },
  // Not the type that the sender claims: a browser must not run it
  contentTypes: ["application/octet-stream"],
  configured,
  check: ownMessage,
  local: true,
  open: Effect.fnUntraced(function* ({ attachment, inbox, message }, { accountId }) {
    const place = /^[1-9]\d{0,5}$/u.test(attachment) ? Number(attachment) - 1 : -1
    const { blobId, bytes, name } = yield* asking((inboxes) => inboxes.attachment({ accountId, inboxId: inbox }, message, place))
    return {
      contentType: "application/octet-stream",
      size: bytes.length,
      tag: `${blobId}-${attachment}`,
      filename: fileName(name, `attachment-${attachment}`),
      read: ({ length = bytes.length, offset } = { offset: 0 }) => Effect.succeed(Stream.succeed(bytes.subarray(offset, offset + length)))
    }
  }),
  example: { inbox: EXAMPLE_ID, message: EXAMPLE_MESSAGE, attachment: "1" }
})

export const downloadMessage = Operation.file("inbox.downloadMessage", {
  summary: "Download a message as it came",
  price: 0.1,
  route: { path: `${messagePath}/raw`, params: MessageParams },
  contentTypes: ["message/rfc822"],
  configured,
  check: ownMessage,
  local: true,
  open: Effect.fnUntraced(function* ({ inbox, message: messageId }, { accountId }) {
    const inboxes = yield* Inboxes
    const owner = { accountId, inboxId: inbox }
    const message = yield* asking(() => inboxes.findMessage(accountId, inbox, messageId))
    return {
      contentType: "message/rfc822",
      size: message.size,
      tag: message.blobId,
      filename: `${messageId}.eml`,
      read: (range) => Effect.mapError(inboxes.letters.bytes(owner, message, range), (error) => gone(told(error)))
    }
  }),
  example: { inbox: EXAMPLE_ID, message: EXAMPLE_MESSAGE }
})

const gone = (error: Told): NotFound | UpstreamUnavailable =>
  error instanceof UpstreamNotConfigured ? new UpstreamUnavailable({ upstream: "inbox", reason: error._tag, isolated: true }) : error

export const rotate = Operation.make("inbox.rotate", {
  summary: "Move a disposable inbox to a new address",
  description: "The address before is refused from then on, and is never given to anybody again. Messages and expiry stay.",
  price: 1,
  route: { method: "POST", path: `${inboxPath}/rotate`, params: InboxParams },
  success: InboxData,
  configured,
  check: ownInbox,
  local: true,
  run: Effect.fnUntraced(function* ({ inbox }, { accountId, requestId }) {
    const owner = { accountId, inboxId: inbox }
    // An inbox may move often, so its id does not lead to the hold that pays
    yield* asking((inboxes) => inboxes.rotate(owner, { $correlationId: requestId }))
    return yield* shown(owner)
  }),
  example: { input: { inbox: EXAMPLE_ID }, data: { ...EXAMPLE, address: "pagihova-dorimebi-sateko@mail.example.com" } }
})

export const remove = Operation.make("inbox.delete", {
  summary: "Delete a disposable inbox and all that it received",
  price: 0,
  route: { method: "DELETE", path: inboxPath, params: InboxParams },
  success: Schema.Struct({ deleted: Schema.Literal(true), inbox_id: Schema.String }),
  configured,
  check: ownInbox,
  local: true,
  run: Effect.fnUntraced(function* ({ inbox }, { accountId }) {
    yield* asking((inboxes) => inboxes.remove({ accountId, inboxId: inbox }))
    return { data: { deleted: true as const, inbox_id: inbox } }
  }),
  example: { input: { inbox: EXAMPLE_ID }, data: { deleted: true, inbox_id: EXAMPLE_ID } }
})
