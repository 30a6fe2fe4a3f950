/**
 * What inboxes keep of messages: a sealed summary, which their events hold, and the message as it came, sealed: a small one in the state
 * store, a larger one as a blob.
 */
import { hash } from "node:crypto"
import { StateStore } from "@millrace/event-sourcing"
import { Effect, Schema, Stream } from "effect"
import * as Files from "../jobs/Files.ts"
import { type BlobNotFound, BlobStore, type BlobUnavailable, type GetFailure } from "../vault/BlobStore.ts"
import type { Range } from "../vault/SealedBlob.ts"
import { ofInbox, Vault, type VaultFailure } from "../vault/Vault.ts"
import type { Active, Message } from "./Inbox.ts"
import { isUnreadable, type MailContent, type Unreadable } from "./MailReader.ts"
import type { Incoming } from "./MailReceiver.ts"

export const Mailbox = Schema.Struct({ name: Schema.NullOr(Schema.String), address: Schema.String })

const Result = Schema.NullOr(Schema.String)
/** Results such as `pass`, `fail` and `none`, of RFC 8601. Null where it was not checked. */
export const Authentication = Schema.Struct({ spf: Result, dkim: Result, dmarc: Result, arc: Result })

/** What a list shows of a message, and what was known of it when it came. */
export const Summary = Schema.Struct({
  from: Schema.NullOr(Mailbox),
  subject: Schema.NullOr(Schema.String),
  hasAttachments: Schema.Boolean,
  /** Of MAIL FROM; null for a bounce. */
  sender: Schema.NullOr(Schema.String),
  authentication: Authentication
})
export type Summary = typeof Summary.Type

const Text = Schema.fromJsonString(Summary)
const encode = Schema.encodeSync(Text)
const decode = Schema.decodeUnknownEffect(Text)

const PURPOSE = "inbox.summary"

/** Characters of a text in a summary: whoever sends mail decides how long its headers are, but not how long our events are. */
const LONGEST = 500

const cut = <Text extends string | null>(text: Text): Text | string => (text === null ? text : text.slice(0, LONGEST).toWellFormed())

/** The summary of a message as it was read. One that cannot be read has neither sender nor subject. */
export const summaryOf = (
  read: MailContent | Unreadable,
  { authentication, sender }: Pick<Incoming, "authentication" | "sender">
): Summary => {
  const { arc, dkim, dmarc, spf } = authentication
  const known = { sender: cut(sender), authentication: { spf: cut(spf), dkim: cut(dkim), dmarc: cut(dmarc), arc: cut(arc) } }
  if (isUnreadable(read)) return { from: null, subject: null, hasAttachments: false, ...known }
  const { from, hasAttachments, subject } = read
  return { from: from && { name: cut(from.name), address: cut(from.address) }, subject: cut(subject), hasAttachments, ...known }
}

/** An inbox by its id and its owner. */
export interface Owner extends Pick<Active, "accountId"> {
  readonly inboxId: string
}

/** An inbox that receives. */
export interface Receiving extends Owner, Pick<Active, "expiresAt"> {}

/** Bytes of a message that is small: its write shares a transaction with others, while a blob needs syncs of its own. */
const SMALL = 32 * 1024

/** The small messages, sealed, by inbox and id. Each expires with its inbox, and so does one that no event names. */
const SPACE = "inboxMail"
const MAIL = "inbox.mail"
/** Read at once, where the messages of an inbox are removed: at most a few megabytes. */
const PAGE = 64

const keyOf = ({ inboxId }: Pick<Owner, "inboxId">, id: string): string => `${inboxId}/${id}`

export type Letters = Effect.Success<typeof make>

export const make = Effect.gen(function* () {
  const vault = yield* Vault
  const blobs = yield* BlobStore
  const states = yield* StateStore.StateStore
  const files: Files.Files = yield* Files.make("inboxFiles")
  const subjectOf = ({ accountId, inboxId }: Owner) => ofInbox(inboxId, accountId)
  // A write without an expected version cannot conflict
  const write = (...changes: [StateStore.Change, ...Array<StateStore.Change>]) =>
    Effect.asVoid(Effect.catchTag(states.write(changes), "StateConflict", Effect.die))

  const keepSmall = (inbox: Receiving, sealed: Uint8Array) => {
    const id = hash("sha256", sealed, "hex")
    return Effect.as(write({ _tag: "put", space: SPACE, key: keyOf(inbox, id), value: sealed, expiresAt: inbox.expiresAt }), { id })
  }

  /** A blob is noted before it is stored. */
  const keepBlob = (owner: Owner, raw: Uint8Array) => blobs.put(subjectOf(owner), raw, ({ id }) => files.note({ owner: owner.inboxId, id }))

  const keep = Effect.fnUntraced(function* (inbox: Receiving, raw: Uint8Array, summary: Summary) {
    const seal = yield* vault.sealer(subjectOf(inbox))
    const sealedSummary = seal(PURPOSE, encode(summary))
    const { id } = yield* raw.length <= SMALL ? keepSmall(inbox, Buffer.from(seal(MAIL, raw))) : keepBlob(inbox, raw)
    return { blobId: id, sealedSummary }
  })

  const bytes = Effect.fnUntraced(function* (owner: Owner, { blobId }: Pick<Message, "blobId">, range: Range = { offset: 0 }) {
    const small = yield* states.get(SPACE, keyOf(owner, blobId))
    if (small === undefined) return (yield* blobs.get(subjectOf(owner), blobId, range)).bytes
    const raw = yield* vault.openBytes(subjectOf(owner), MAIL, Buffer.from(small.value).toString())
    const { length = raw.length, offset } = range
    return Stream.make(raw.subarray(offset, offset + length))
  })

  const removeBlob = (id: string, inboxId: string) => Effect.andThen(blobs.remove(id), files.forget({ owner: inboxId, id }))

  /** Removes a message that nothing names. What fails, the sweep or its expiry repeats. */
  const drop = (owner: Pick<Owner, "inboxId">, id: string) => {
    const key = keyOf(owner, id)
    return Effect.flatMap(states.get(SPACE, key), (small) =>
      small === undefined ? removeBlob(id, owner.inboxId) : write({ _tag: "remove", space: SPACE, key })
    ).pipe(Effect.ignore)
  }

  const clearSmall = Effect.fnUntraced(function* (owner: Pick<Owner, "inboxId">) {
    for (;;) {
      const page = yield* states.list(SPACE, { after: keyOf(owner, ""), limit: PAGE })
      const [first, ...rest] = page
        .filter(({ key }) => key.startsWith(keyOf(owner, "")))
        .map(({ key }): StateStore.Change => ({ _tag: "remove", space: SPACE, key }))
      if (first === undefined) return
      yield* write(first, ...rest)
    }
  })

  const clearBlobs = ({ inboxId }: Pick<Owner, "inboxId">) => Stream.runForEach(files.of(inboxId), ({ id }) => removeBlob(id, inboxId))

  return {
    files,
    blobs,
    summary: (owner: Owner, { sealedSummary }: Pick<Message, "sealedSummary">) =>
      Effect.flatMap(vault.open(subjectOf(owner), PURPOSE, sealedSummary), (text) => Effect.orDie(decode(text))),
    /** Stores a message as it came, durably, and seals its summary. */
    keep: (
      inbox: Receiving,
      raw: Uint8Array,
      summary: Summary
    ): Effect.Effect<Pick<Message, "blobId" | "sealedSummary">, BlobUnavailable | VaultFailure> => keep(inbox, raw, summary),
    /** A message as it came, in whole or a range of it. */
    bytes: (
      owner: Owner,
      message: Pick<Message, "blobId">,
      range?: Range
    ): Effect.Effect<Stream.Stream<Uint8Array, GetFailure>, BlobNotFound | BlobUnavailable | VaultFailure> => bytes(owner, message, range),
    /** A message as it came, whole. */
    raw: (owner: Owner, message: Pick<Message, "blobId">) =>
      Effect.gen(function* () {
        return Buffer.concat(yield* Stream.runCollect(yield* bytes(owner, message)))
      }),
    drop,
    /** Destroys the key of an inbox: nobody can read what it received, nor its address and label. */
    destroy: (owner: Owner): Effect.Effect<void, StateStore.StateUnavailable> => vault.destroy(subjectOf(owner)),
    /** Removes all messages of an inbox that is gone. What fails, the sweep or their expiry repeats. */
    clear: (owner: Pick<Owner, "inboxId">) => Effect.andThen(Effect.ignore(clearSmall(owner)), Effect.ignore(clearBlobs(owner)))
  }
})
