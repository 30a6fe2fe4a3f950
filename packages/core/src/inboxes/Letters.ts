/**
 * What inboxes keep of messages: a sealed summary, which their events hold, and the message as it came, sealed: a small one in the state
 * store, a larger one as a blob.
 */
import { hash } from "node:crypto"
import { StateStore } from "@millrace/event-sourcing"
import { Clock, Effect, Schema, Stream } from "effect"
import type { Store } from "../jobs/FileSweeper.ts"
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

/** Bytes of a message that is small: its write shares a transaction with others, while a blob needs syncs of its own. */
const SMALL = 32 * 1024

/** The small messages, sealed, by id. */
const SPACE = "inboxMail"
const MAIL = "inbox.mail"

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

  /** The index of files names a small message in the same write, so that the sweep finds what no event names. */
  const keepSmall = Effect.fnUntraced(function* ({ inboxId }: Owner, sealed: Uint8Array) {
    const id = hash("sha256", sealed, "hex")
    const noted = files.noted({ owner: inboxId, id }, yield* Clock.currentTimeMillis)
    yield* write(noted, { _tag: "put", space: SPACE, key: id, value: sealed })
    return { id }
  })

  /** A blob is noted before it is stored. */
  const keepBlob = (owner: Owner, raw: Uint8Array) => blobs.put(subjectOf(owner), raw, ({ id }) => files.note({ owner: owner.inboxId, id }))

  const keep = Effect.fnUntraced(function* (owner: Owner, raw: Uint8Array, summary: Summary) {
    const seal = yield* vault.sealer(subjectOf(owner))
    const sealedSummary = seal(PURPOSE, encode(summary))
    const { id } = yield* raw.length <= SMALL ? keepSmall(owner, Buffer.from(seal(MAIL, raw))) : keepBlob(owner, raw)
    return { blobId: id, sealedSummary }
  })

  const bytes = Effect.fnUntraced(function* (owner: Owner, { blobId }: Pick<Message, "blobId">, range: Range = { offset: 0 }) {
    const small = yield* states.get(SPACE, blobId)
    if (small === undefined) return (yield* blobs.get(subjectOf(owner), blobId, range)).bytes
    const raw = yield* vault.openBytes(subjectOf(owner), MAIL, Buffer.from(small.value).toString())
    const { length = raw.length, offset } = range
    return Stream.make(raw.subarray(offset, offset + length))
  })

  /** Where messages are: a place for the sweep. */
  const shelf: Store = {
    sweep: blobs.sweep,
    remove: (id) =>
      Effect.gen(function* () {
        const small = yield* states.get(SPACE, id)
        yield* small === undefined ? blobs.remove(id) : write({ _tag: "remove", space: SPACE, key: id })
      })
  }

  /** Removes a file that nothing names. The sweep repeats what fails. */
  const drop = ({ inboxId }: Pick<Owner, "inboxId">, id: string) =>
    Effect.ignore(Effect.andThen(shelf.remove(id), files.forget({ owner: inboxId, id })))

  return {
    files,
    shelf,
    summary: (owner: Owner, { sealedSummary }: Pick<Message, "sealedSummary">) =>
      Effect.flatMap(vault.open(subjectOf(owner), PURPOSE, sealedSummary), (text) => Effect.orDie(decode(text))),
    /** Stores a message as it came, durably, and seals its summary. */
    keep: (
      owner: Owner,
      raw: Uint8Array,
      summary: Summary
    ): Effect.Effect<Pick<Message, "blobId" | "sealedSummary">, BlobUnavailable | VaultFailure> => keep(owner, raw, summary),
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
    /** Removes all files of an inbox that is gone. The sweep repeats what fails. */
    clear: (owner: Pick<Owner, "inboxId">) => Effect.ignore(Stream.runForEach(files.of(owner.inboxId), ({ id }) => drop(owner, id)))
  }
})
