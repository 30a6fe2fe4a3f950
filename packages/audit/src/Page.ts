/**
 * Consecutive events of a log, prepared for the reader. Each step is done for all events of a page before the next step begins, which takes a
 * tenth less time than all steps for one event after another: the code of one step stays in the processor's caches. The steps report nothing.
 * The reader does, in the order of the log.
 */
import { Account, type AccountEvent } from "@millrace/core"
import { EventCodec, type EventStore, type HashChain } from "@millrace/event-sourcing"
import type { StreamReplay } from "./StreamReplay.ts"

export interface Page {
  readonly entries: ReadonlyArray<Entry>
  /** The accounts that begin here: their snapshots must be loaded before the page is read. */
  readonly newAccounts: ReadonlyArray<StreamReplay>
}

/** An event, its stream, and what is known of it before the events before it were replayed. */
export class Entry {
  readonly event: EventStore.RecordedEvent
  readonly stream: StreamReplay
  /** Undefined if the event does not follow the one before it in its stream. */
  hash: HashChain.Hash | undefined
  /** The event of an account, or why it cannot be read. Undefined where it cannot be replayed, and for other streams. */
  decoded: AccountEvent | EventCodec.UnreadableEvent | undefined
  #parsed: unknown

  constructor(event: EventStore.RecordedEvent, stream: StreamReplay) {
    this.event = event
    this.stream = stream
  }

  /** Whether the event is to be replayed to an account. */
  get #isOfAccount(): boolean {
    return this.hash !== undefined && this.stream.sound && this.stream.account !== undefined
  }

  parse(): void {
    if (this.#isOfAccount) this.#parsed = EventCodec.parse(this.event.data)
  }

  decode(): void {
    if (this.#isOfAccount) this.decoded = Account.Account.codec.decodeParsed(this.event.type, this.#parsed)
    this.#parsed = undefined
  }
}

/** Links all events to those before them, then parses and decodes those of accounts. */
export const prepare = (entries: ReadonlyArray<Entry>): void => {
  for (const entry of entries) entry.hash = entry.stream.link(entry.event)
  for (const entry of entries) entry.parse()
  for (const entry of entries) entry.decode()
}
