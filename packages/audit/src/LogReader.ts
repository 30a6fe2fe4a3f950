/**
 * Reads a log once, in its order, and checks every event: its place, its hash and its time, then what it says, by the rules of its category.
 *
 * A stream is replayed up to its first event that was changed or cannot be read, for no state follows from there. Places, hashes and times
 * are checked to the end, and other streams go on.
 */
import { Account } from "@millrace/core"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { AccountReplay } from "./AccountReplay.ts"
import { type Category, coreCategories } from "./Categories.ts"
import * as Head from "./Head.ts"
import { JobIndex } from "./JobIndex.ts"
import { Prices } from "./Prices.ts"
import type { ReportProblem } from "./Replay.ts"
import { type Place, Problems, WHOLE_LOG } from "./Report.ts"
import { holdsAreCovered } from "./rules/Books.ts"
import { LateRefunds } from "./rules/LateRefunds.ts"
import { linkHolds, millisOf, positionIncreases, revisionFollows, timeGoesOn } from "./rules/Log.ts"
import { EVENT_ID, uniqueName } from "./rules/Names.ts"
import { snapshotAgrees, snapshotOf } from "./rules/Snapshots.ts"
import { StreamReplay } from "./StreamReplay.ts"
import { UniqueNames } from "./UniqueNames.ts"

export interface ReaderOptions {
  /** An earlier audit's head: this log must extend it. */
  readonly against?: Head.Head
  /** Streams of the host's own, beside those of the library. */
  readonly categories?: ReadonlyArray<Category>
  /** The most names that are kept in memory at once to check that they are unique. */
  readonly uniques?: number
}

/** Reads the events of a log in order, and keeps what is known so far. */
export class LogReader {
  readonly problems = new Problems()
  readonly streams = new Map<StreamName.StreamName, StreamReplay>()
  readonly lateRefunds = new LateRefunds()
  readonly uniques: UniqueNames
  /** Names that may occur twice, with the rule that forbids it. */
  readonly suspects = new Map<string, string>()
  /** The latest time in the log, ISO 8601. */
  latest = ""
  readonly jobs = new JobIndex((accountId, reservationId) => this.#holdOf(accountId, reservationId))
  readonly #prices = new Prices()
  readonly #categories: ReadonlyMap<string, Category>
  #earlier: Head.Head | undefined
  #position: string = EventStore.start
  #events = 0
  /** The time of the last event, as text and in milliseconds: events of one append share it. */
  #at = ""
  #millis = 0

  /** The current event; problems are reported at its place. */
  #place: Place = { position: EventStore.start, stream: WHOLE_LOG }
  readonly #report: ReportProblem = (rule, detail) => this.problems.add(this.#place, rule, detail)

  constructor({ against, categories = [], uniques }: ReaderOptions) {
    this.#earlier = against
    this.uniques = new UniqueNames(uniques)
    this.#categories = new Map([...coreCategories(this.#prices, this.jobs), ...categories].map((category) => [category.name, category]))
  }

  /** The stream of each event, and those streams of accounts that are new. Their snapshots must be loaded before {@link read}. */
  streamsOf(events: ReadonlyArray<EventStore.RecordedEvent>): {
    readonly readings: ReadonlyArray<StreamReplay>
    readonly accounts: ReadonlyArray<StreamReplay>
  } {
    const accounts: Array<StreamReplay> = []
    const readings = events.map(({ stream }) => {
      const known = this.streams.get(stream)
      if (known !== undefined) return known
      const category = StreamName.category(stream)
      const account = category === Account.Account.category ? new AccountReplay(StreamName.id(stream)) : undefined
      const reading = new StreamReplay(stream, account, this.#categories.get(category)?.begin(stream, this.#report))
      this.streams.set(stream, reading)
      if (account !== undefined) accounts.push(reading)
      return reading
    })
    return { readings, accounts }
  }

  read(events: ReadonlyArray<EventStore.RecordedEvent>, readings: ReadonlyArray<StreamReplay>): void {
    readings.forEach((reading, i) => {
      const event = events[i]
      if (event !== undefined) this.#next(reading, event)
    })
  }

  /** Ends the reading and returns the head of the log. An earlier head that was not reached yet is compared now. */
  end(): Head.Head {
    if (this.#earlier !== undefined) this.#compareHead(this.#earlier)
    for (const { account, name, position, sound } of this.streams.values()) {
      const uncovered = account !== undefined && sound ? holdsAreCovered(account.state) : undefined
      if (uncovered !== undefined) this.problems.add({ position, stream: name }, "holds-are-covered", uncovered)
    }
    return { ...this.#past(), at: this.latest === "" ? null : this.latest }
  }

  #next(stream: StreamReplay, event: EventStore.RecordedEvent): void {
    if (this.#earlier !== undefined && event.position > this.#earlier.position) this.#compareHead(this.#earlier)
    this.#place = event
    const isInPlace = this.#checkPlace(stream, event)
    const at = HashChain.atOf(event)
    this.#checkTime(stream, at)
    if (stream.sound) {
      stream.sound = isInPlace && !Number.isNaN(this.#millis) && this.#replay(stream, event)
      if (!stream.sound) this.#categories.get(StreamName.category(stream.name))?.lost?.(stream.name)
    }
    stream.revision = event.revision
    stream.hash = HashChain.hashOf(event)
    stream.at = at
    stream.position = event.position
    this.#position = event.position
    this.#events++
    if (stream.snapshot?.revision === event.revision && stream.sound) this.#compareSnapshot(stream, stream.snapshot, event)
  }

  /** Checks position, revision, hash and id. False when the event does not follow the one before it in its stream. */
  #checkPlace(stream: StreamReplay, event: EventStore.RecordedEvent): boolean {
    const misplaced = positionIncreases(this.#position, event)
    if (misplaced !== undefined) this.#report("position-increases", misplaced)
    if (this.uniques.add(event.id)) this.suspects.set(event.id, EVENT_ID)
    const gap = revisionFollows(stream.revision, event)
    if (gap !== undefined) this.#report("revision-follows", gap)
    const broken = gap === undefined ? linkHolds(stream.hash, event) : undefined
    if (broken !== undefined) this.#report("link-holds", broken)
    return gap === undefined && broken === undefined
  }

  #checkTime(stream: StreamReplay, at: string): void {
    if (at === this.#at && at >= stream.at) return
    const millis = millisOf(at)
    const wrong = timeGoesOn(stream.at, at, millis)
    if (wrong !== undefined) this.#report("time-goes-on", wrong)
    this.#at = at
    // A time in another format may still be a time
    this.#millis = millis ?? Date.parse(at)
    if (wrong === undefined && at > this.latest) this.latest = at
  }

  /** False when the event cannot be read or does not fold. */
  #replay({ account, other }: StreamReplay, recorded: EventStore.RecordedEvent): boolean {
    const report = this.#report
    try {
      if (account === undefined) {
        if (other === undefined) report("stream-is-known", "no decider here knows streams of its category")
        other?.(recorded.type, recorded.data, this.#millis, recorded.position)
        return other !== undefined
      }
      const event = Account.Account.codec.decode(recorded.type, recorded.data)
      const unique = uniqueName(recorded.stream, event)
      if (unique !== undefined && this.uniques.add(...unique.parts)) this.suspects.set(unique.parts.join(""), unique.rule)
      if (!account.next(event, this.#millis, this.#prices, this.jobs, report)) return false
      if (event._tag === "Refunded" && event.stage === "settled") this.lateRefunds.note(recorded, event)
      return true
    } catch (error) {
      report("event-is-readable", error instanceof Error ? error.message : String(error))
      return false
    }
  }

  #holdOf(accountId: string, reservationId: string): Account.Hold | "unknown" | undefined {
    const stream = this.streams.get(StreamName.make(Account.Account.category, accountId))
    return stream?.sound === false ? "unknown" : stream?.account && Account.hold(stream.account.state, reservationId)
  }

  #compareSnapshot({ account, hash }: StreamReplay, { data, revision }: EventStore.StoredSnapshot, event: EventStore.RecordedEvent): void {
    if (account === undefined) return
    const wrong = snapshotAgrees(data, { state: account.state, hash, at: this.#millis })
    if (wrong !== undefined)
      this.problems.add(event, "snapshot-agrees", `${snapshotOf(account.accountId)} at revision ${revision}: ${wrong}`)
  }

  #past(): Head.Past {
    const read = [...this.streams.values()].filter(({ revision }) => revision >= 0)
    return { position: this.#position, streams: read.length, events: this.#events, digest: Head.digest(read) }
  }

  #compareHead(earlier: Head.Head): void {
    this.#earlier = undefined
    const wrong = Head.compare(earlier, this.#past())
    if (wrong !== undefined) this.problems.add({ position: earlier.position, stream: WHOLE_LOG }, "log-extends-head", wrong)
  }
}
