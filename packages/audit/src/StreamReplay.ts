/** One stream, as far as it was read. */
import { EventStore, HashChain, type StreamName } from "@millrace/event-sourcing"
import type { AccountReplay } from "./AccountReplay.ts"
import type { StreamEnd } from "./Head.ts"
import type { Replay } from "./Report.ts"

export class StreamReplay implements StreamEnd {
  readonly name: StreamName.StreamName
  /** Set for the stream of an account. */
  readonly account: AccountReplay | undefined
  /** Set for a stream of another known category. */
  readonly other: Replay | undefined
  revision: EventStore.Revision = -1
  hash: HashChain.Hash
  position: string = EventStore.start
  /** When its last event was decided, as text, and in milliseconds since 1970: NaN if the text has not the format of times. */
  at = ""
  instant = Number.NEGATIVE_INFINITY
  /** False from the first event that cannot be replayed. */
  sound = true
  snapshot: EventStore.StoredSnapshot | undefined
  /** The revision and hash of the last event that was linked, up to a page ahead of the replay. */
  #linkedRevision: EventStore.Revision = -1
  #linkedHash: HashChain.Hash

  constructor(name: StreamName.StreamName, account: AccountReplay | undefined, other: Replay | undefined) {
    this.name = name
    this.hash = HashChain.start(name)
    this.account = account
    this.other = other
    this.#linkedHash = this.hash
  }

  /** Verifies that an event follows the last one of the log. Returns its hash; undefined if it does not follow. */
  link(event: EventStore.RecordedEvent): HashChain.Hash | undefined {
    const hash = event.revision === this.#linkedRevision + 1 ? HashChain.verified(this.#linkedHash, event) : undefined
    this.#linkedRevision = event.revision
    this.#linkedHash = hash ?? HashChain.hashOf(event)
    return hash
  }
}
