/** Verifies the places and hashes of events as they are read, without replaying them: what an audit checks first. */
import { EventStore, HashChain, type StreamName } from "@millrace/event-sourcing"

/** Positions of stores that number their events from 1 without gaps. Those of KurrentDB have others. */
const NUMBERED = /^\d{16}$/u

/** What is missing between two positions of a whole log; undefined if nothing is, or that cannot be told. */
export const gapBetween = (before: string, position: string): string | undefined => {
  if (!NUMBERED.test(position) && !NUMBERED.test(before)) return undefined
  const missing = Number(position) - Number(before) - 1
  return missing > 0 ? `${missing === 1 ? "1 event is" : `${missing} events are`} missing after position ${before || "0"}` : undefined
}

/** Keeps the last revision and hash of every stream. */
export class Chain {
  readonly #ends = new Map<StreamName.StreamName, { readonly revision: number; readonly hash: HashChain.Hash }>()
  readonly #isExport: boolean
  #position: string = EventStore.start

  /** `isExport`: the events are those of a whole log, so that gaps show. */
  constructor(isExport: boolean) {
    this.#isExport = isExport
  }

  /** Why an event does not follow those before it; undefined if it does. */
  wrongWith(event: EventStore.RecordedEvent): string | undefined {
    const { position, revision, stream } = event
    const end = this.#ends.get(stream) ?? { revision: -1, hash: HashChain.start(stream) }
    if (position <= this.#position) return `it follows position ${this.#position}`
    const gap = this.#isExport ? gapBetween(this.#position, position) : undefined
    if (gap !== undefined) return gap
    if (revision !== end.revision + 1) return `its revision is ${revision} instead of ${end.revision + 1}`
    if (!HashChain.verify(end.hash, event)) return "its hash does not match its content and the hash before it"
    this.#position = position
    this.#ends.set(stream, { revision, hash: HashChain.hashOf(event) })
    return undefined
  }
}
