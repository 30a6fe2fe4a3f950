/** What inboxes keep of messages: a sealed summary, which their events hold, and the message as it came, a sealed blob. */
import type { StateStore } from "@millrace/event-sourcing"
import { Effect, Schema, Stream } from "effect"
import * as Files from "../jobs/Files.ts"
import { BlobStore } from "../vault/BlobStore.ts"
import { ofInbox, Vault } from "../vault/Vault.ts"
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

export type Letters = Effect.Success<typeof make>

export const make = Effect.gen(function* () {
  const vault = yield* Vault
  const blobs = yield* BlobStore
  const files: Files.Files = yield* Files.make("inboxFiles")
  const subjectOf = ({ accountId, inboxId }: Owner) => ofInbox(inboxId, accountId)

  /** Removes a file that nothing names. The sweep repeats what fails. */
  const drop = ({ inboxId }: Pick<Owner, "inboxId">, id: string) =>
    Effect.ignore(Effect.andThen(blobs.remove(id), files.forget({ owner: inboxId, id })))

  return {
    files,
    blobs,
    seal: (owner: Owner, summary: Summary) => vault.seal(subjectOf(owner), PURPOSE, encode(summary)),
    summary: (owner: Owner, { sealedSummary }: Pick<Message, "sealedSummary">) =>
      Effect.flatMap(vault.open(subjectOf(owner), PURPOSE, sealedSummary), (text) => Effect.orDie(decode(text))),
    /** Stores a message as it came. It is noted first, so that the sweep finds what no event names. */
    keep: (owner: Owner, raw: Uint8Array) => blobs.put(subjectOf(owner), raw, ({ id }) => files.note({ owner: owner.inboxId, id })),
    /** A message as it came, in whole or a range of it. */
    bytes: (owner: Owner, { blobId }: Pick<Message, "blobId">, range?: Parameters<BlobStore["Service"]["get"]>[2]) =>
      Effect.map(blobs.get(subjectOf(owner), blobId, range), ({ bytes }) => bytes),
    /** A message as it came, whole. */
    raw: (owner: Owner, { blobId }: Pick<Message, "blobId">) =>
      Effect.gen(function* () {
        const { bytes } = yield* blobs.get(subjectOf(owner), blobId)
        return Buffer.concat(yield* Stream.runCollect(bytes))
      }),
    drop,
    /** Destroys the key of an inbox: nobody can read what it received, nor its address and label. */
    destroy: (owner: Owner): Effect.Effect<void, StateStore.StateUnavailable> => vault.destroy(subjectOf(owner)),
    /** Removes all files of an inbox that is gone. The sweep repeats what fails. */
    clear: (owner: Pick<Owner, "inboxId">) => Effect.ignore(Stream.runForEach(files.of(owner.inboxId), ({ id }) => drop(owner, id)))
  }
})
