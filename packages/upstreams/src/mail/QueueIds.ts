/** The queue ids of messages: how a message that a sender brings again, because the answer was lost, is known to be the same. */
import { hash, randomBytes } from "node:crypto"
import { Vault } from "@millrace/core"
import { Context, Effect, Layer } from "effect"

/** Queue ids are 128 bits, in hexadecimal digits. */
const DIGITS = 32

export interface QueueIdSource {
  /** An id that no message has. */
  readonly next: () => string
  /** The id of the message with this digest: the same at all hosts, and after a restart. */
  readonly of: (digest: string) => string
}

/** By default, whoever knows a message and its sender knows its queue id. `layerKeyed` prevents that. */
export const QueueIds = Context.Reference<QueueIdSource>("@millrace/upstreams/mail/QueueIds", {
  defaultValue: () => ({
    next: () => randomBytes(DIGITS / 2).toString("hex"),
    of: (digest) => digest.slice(0, DIGITS)
  })
})

/**
 * Queue ids under the master key. The id of a message in the log derives from its queue id, so without a key the log would confirm to
 * whoever has a copy of a message that an inbox received it, also after the key of the inbox was destroyed.
 */
export const layerKeyed: Layer.Layer<never, never, Vault.Vault> = Layer.effect(
  QueueIds,
  Effect.gen(function* () {
    const vault = yield* Vault.Vault
    const { next } = yield* QueueIds
    return { next, of: (digest) => Buffer.from(vault.hmac("mail.queueId", digest), "base64url").toString("hex").slice(0, DIGITS) }
  })
)

/** What two deliveries of one message have in common: the sender of the envelope, and every byte. */
export const digestOf = (sender: string | null, raw: Uint8Array): string =>
  hash("sha256", Buffer.concat([Buffer.from(`${sender ?? ""}\0`), raw]), "hex")

const MESSAGE_ID = /^message-id[ \t]*:(?:[ \t]|\r?\n[ \t])*[^\s]/imu

/** Whether the header has a Message-ID (RFC 5322, 3.6.4) with a value, which may stand on the next line. */
export const hasMessageId = (raw: Uint8Array): boolean => {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  const ends = [bytes.indexOf("\r\n\r\n"), bytes.indexOf("\n\n")].filter((end) => end >= 0)
  return MESSAGE_ID.test(bytes.toString("latin1", 0, Math.min(bytes.length, ...ends)))
}

/** More messages that were not acknowledged are not remembered. */
const REMEMBERED = 10_000

/**
 * The queue ids of messages without a Message-ID that were not acknowledged, by digest. Such a message may be sent twice on purpose, so it is
 * the same only until it is acknowledged, and until this process ends.
 */
export class Unacknowledged {
  readonly #ids = new Map<string, string>()

  /** The id of an earlier attempt, which is forgotten. */
  take(digest: string): string | undefined {
    const id = this.#ids.get(digest)
    this.#ids.delete(digest)
    return id
  }

  remember(digest: string, id: string): void {
    this.#ids.set(digest, id)
    const [oldest] = this.#ids.keys()
    if (this.#ids.size > REMEMBERED && oldest !== undefined) this.#ids.delete(oldest)
  }
}
