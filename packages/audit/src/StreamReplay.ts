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

  constructor(name: StreamName.StreamName, account: AccountReplay | undefined, other: Replay | undefined) {
    this.name = name
    this.hash = HashChain.start(name)
    this.account = account
    this.other = other
  }
}

/** Consecutive events of a log, each with its stream. */
export interface Page {
  readonly events: ReadonlyArray<EventStore.RecordedEvent>
  /** The stream of each event. */
  readonly streams: ReadonlyArray<StreamReplay>
  /** The accounts that begin here: their snapshots must be loaded before the page is read. */
  readonly newAccounts: ReadonlyArray<StreamReplay>
}
