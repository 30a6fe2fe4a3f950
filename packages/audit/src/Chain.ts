/** Verifies the places and hashes of events as they are read, without replaying them: what an audit checks first. */
import { EventStore, HashChain, type StreamName } from "@millrace/event-sourcing"

/** Keeps the last revision and hash of every stream. */
export class Chain {
  readonly #ends = new Map<StreamName.StreamName, { readonly revision: number; readonly hash: HashChain.Hash }>()
  #position: string = EventStore.start

  /** Why an event does not follow those before it; undefined if it does. */
  wrongWith(event: EventStore.RecordedEvent): string | undefined {
    const { position, revision, stream } = event
    const end = this.#ends.get(stream) ?? { revision: -1, hash: HashChain.start(stream) }
    if (position <= this.#position) return `it follows position ${this.#position}`
    if (revision !== end.revision + 1) return `its revision is ${revision} instead of ${end.revision + 1}`
    if (!HashChain.verify(end.hash, event)) return "its hash does not match its content and the hash before it"
    this.#position = position
    this.#ends.set(stream, { revision, hash: HashChain.hashOf(event) })
    return undefined
  }
}
