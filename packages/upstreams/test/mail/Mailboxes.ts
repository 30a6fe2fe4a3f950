/** A `MailReceiver` in memory that records what it took, and answers for some addresses as a test tells it. */
import { InboxFull, type Incoming, MailReceiver, type ReceiverUnavailable, UnknownAddress } from "@millrace/core"
import { Effect, Layer } from "effect"

type Refusal = UnknownAddress | InboxFull | ReceiverUnavailable

export interface Mailboxes {
  readonly layer: Layer.Layer<MailReceiver>
  /** By address, in order. A message under a queue id that an address knows is not taken again. */
  readonly taken: Map<string, Array<Incoming>>
  /** Each question at RCPT TO, with the bytes that the sender announced. */
  readonly asked: Array<{ readonly address: string; readonly bytes: number }>
  /** What an address answers at RCPT TO, and to a message, instead of taking it. */
  readonly accepting: Map<string, Effect.Effect<void, Refusal>>
  readonly receiving: Map<string, Effect.Effect<void, Refusal>>
  /** What happens after a message was taken, before the sender is told. */
  afterwards: Effect.Effect<void>
}

/** With these addresses; `full` ones are known and full. */
export const make = (addresses: ReadonlyArray<string>, full: ReadonlyArray<string> = []): Mailboxes => {
  const taken: Mailboxes["taken"] = new Map(addresses.map((address) => [address, []]))
  const asked: Mailboxes["asked"] = []
  const accepting: Mailboxes["accepting"] = new Map(full.map((address) => [address, Effect.fail(new InboxFull())]))
  const receiving: Mailboxes["receiving"] = new Map()
  const known = (address: string) => (taken.has(address) ? Effect.void : Effect.fail(new UnknownAddress()))
  const receive = (address: string, message: Incoming) =>
    Effect.suspend(() => {
      const messages = taken.get(address)
      if (messages === undefined) return Effect.fail(new UnknownAddress())
      if (!messages.some(({ queueId }) => queueId === message.queueId)) messages.push(message)
      return Effect.void
    })
  const layer = Layer.succeed(MailReceiver, {
    accepts: (address, bytes) =>
      Effect.suspend(() => {
        asked.push({ address, bytes })
        return accepting.get(address) ?? known(address)
      }),
    receive: (address, message) =>
      Effect.suspend(() => receiving.get(address) ?? Effect.tap(receive(address, message), mailboxes.afterwards))
  })
  const mailboxes: Mailboxes = { layer, taken, asked, accepting, receiving, afterwards: Effect.void }
  return mailboxes
}
