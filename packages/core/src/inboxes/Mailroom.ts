/** Receives messages for inboxes: the live `MailReceiver`. A message is received at most once for each queue id and recipient. */
import { hash } from "node:crypto"
import type { Aggregate, StateStore } from "@millrace/event-sourcing"
import { Effect, Layer } from "effect"
import type { BlobUnavailable } from "../vault/BlobStore.ts"
import type { VaultFailure } from "../vault/Vault.ts"
import * as Inbox from "./Inbox.ts"
import { Inboxes } from "./Inboxes.ts"
import { summaryOf } from "./Letters.ts"
import { MailReader } from "./MailReader.ts"
import { InboxFull, type Incoming, MailReceiver, ReceiverUnavailable, UnknownAddress } from "./MailReceiver.ts"

type Failure =
  | UnknownAddress
  | InboxFull
  | Inbox.NotAddressed
  | Inbox.NoRoom
  | Aggregate.Failure
  | BlobUnavailable
  | StateStore.StateUnavailable
  | VaultFailure

/** What a sender is told. An inbox whose key was destroyed is being deleted, or its account was erased. */
const told = (failure: Failure): UnknownAddress | InboxFull | ReceiverUnavailable => {
  switch (failure._tag) {
    case "UnknownAddress":
    case "InboxFull":
      return failure
    case "NotAddressed":
    case "SubjectDestroyed":
      return new UnknownAddress()
    case "NoRoom":
      return new InboxFull()
    default:
      return new ReceiverUnavailable({ reason: failure._tag })
  }
}

/** Whether nothing can have been written. */
const isRefusal = ({ _tag }: Failure): boolean => _tag === "NotAddressed" || _tag === "NoRoom"

/** The same for one message to one address, however often it is tried. */
const messageIdOf = ({ queueId }: Pick<Incoming, "queueId">, addressHash: string): string =>
  `msg_${hash("sha256", JSON.stringify([queueId, addressHash]), "hex").slice(0, 26)}`

const make = Effect.gen(function* () {
  const { addresses, execute, letters, read } = yield* Inboxes
  const reader = yield* MailReader

  /** The inbox that an address leads to, whether or not it is live and still has that address. */
  const find = Effect.fnUntraced(function* (address: string) {
    const addressHash = addresses.hashOf(address)
    const inboxId = addressHash === undefined ? undefined : yield* addresses.inboxOf(addressHash)
    if (addressHash === undefined || inboxId === undefined) return yield* new UnknownAddress()
    const { at, state } = yield* read(inboxId)
    return { addressHash, inboxId, at, state }
  })

  const accepts = Effect.fnUntraced(function* (address: string, size: number) {
    const { addressHash, at, inboxId, state } = yield* find(address)
    const inbox = yield* Effect.fromResult(Inbox.admits(state, { addressHash, size }, at))
    // Fails if its key is destroyed
    yield* addresses.open({ accountId: inbox.accountId, inboxId }, inbox)
  }, Effect.mapError(told))

  const receive = Effect.fn("Mailroom.receive")(function* (address: string, incoming: Incoming) {
    const { addressHash, at, inboxId, state } = yield* find(address)
    const messageId = messageIdOf(incoming, addressHash)
    if (Inbox.has(state, messageId, at)) return
    const size = incoming.raw.length
    const { accountId, expiresAt } = yield* Effect.fromResult(Inbox.admits(state, { addressHash, size }, at))
    const inbox = { accountId, inboxId, expiresAt }
    const kept = yield* letters.keep(inbox, incoming.raw, summaryOf(yield* reader.read(incoming.raw), incoming))
    const message = { messageId, addressHash, size, ...kept }
    const { events } = yield* Effect.tapError(execute(inboxId, Inbox.receive(message)), (failure) =>
      isRefusal(failure) ? letters.drop(inbox, kept.blobId) : Effect.void
    )
    // Another delivery under this queue id was first
    if (events.length === 0) yield* letters.drop(inbox, kept.blobId)
  }, Effect.mapError(told))

  return MailReceiver.of({ accepts, receive })
})

export const layer: Layer.Layer<MailReceiver, never, Inboxes | MailReader> = Layer.effect(MailReceiver, make)
