/**
 * Reads a log once, in its order, and checks every event: its place, its hash and its time, then its content by the rules of its category.
 *
 * A stream is replayed up to its first event that was changed or cannot be read, for no state follows from there. Places, hashes and times
 * are checked to the end, and other streams go on.
 */
import { Account, type Money } from "@millrace/core"
import { EventCodec, EventStore, fromIso, HashChain, StreamName } from "@millrace/event-sourcing"
import { AccountReplay, uncoveredHolds } from "./AccountReplay.ts"
import { AlertIndex } from "./AlertIndex.ts"
import { CallIndex } from "./CallIndex.ts"
import { type ApiKeys, type Category, coreCategories } from "./Categories.ts"
import { gapBetween } from "./Chain.ts"
import * as Head from "./Head.ts"
import { InboxIndex } from "./InboxIndex.ts"
import { InvoiceIndex } from "./InvoiceIndex.ts"
import { JobIndex } from "./JobIndex.ts"
import { Entry, type Page, prepare } from "./Page.ts"
import { PaymentIndex } from "./PaymentIndex.ts"
import { Prices } from "./Prices.ts"
import { ProxySessionIndex } from "./ProxySessionIndex.ts"
import { Problems, type ReportProblem, WHOLE_LOG } from "./Report.ts"
import type { RuleName } from "./rules/Catalog.ts"
import { LateRefunds } from "./rules/LateRefunds.ts"
import { uniqueName } from "./rules/Names.ts"
import { UNTOLD, untold } from "./rules/Notices.ts"
import { credits } from "./rules/Rule.ts"
import { snapshotAgrees, snapshotOf } from "./rules/Snapshots.ts"
import { SessionIndex } from "./SessionIndex.ts"
import * as Stakes from "./Stakes.ts"
import { StreamReplay } from "./StreamReplay.ts"
import { SubscriptionIndex } from "./SubscriptionIndex.ts"
import { beginningOf, UniqueNames } from "./UniqueNames.ts"
import { WaitIndex } from "./WaitIndex.ts"

export interface ReaderOptions {
  /** An earlier audit's head: this log must extend it. */
  readonly against?: Head.Head
  /** The list of streams that belongs to that head: with it, findings name each stream that differs. */
  readonly streams?: ReadonlyArray<Head.StreamEnd>
  /** Whether the events are an export, whose positions show gaps. */
  readonly isExport?: boolean
  /** What credits are called and worth, for sentences. */
  readonly money?: Money.Money
  /** Streams of the host's own, beside those of the library. */
  readonly categories?: ReadonlyArray<Category>
  /** The most names that are kept in memory at once to check that they are unique. */
  readonly uniques?: number
}

/** The place of problems before the first event. */
const WHOLE = { position: EventStore.start, stream: WHOLE_LOG }

const WRONG_HASH = "its hash does not match its content and the hash before it"

/** Reads the events of a log in order, and keeps what is known so far. */
export class LogReader {
  readonly problems: Problems
  readonly streams = new Map<StreamName.StreamName, StreamReplay>()
  readonly lateRefunds = new LateRefunds()
  readonly uniques: UniqueNames
  /** The first and the latest time in the log, ISO 8601, and the same in milliseconds since 1970. */
  earliest = ""
  latest = ""
  #first = Number.POSITIVE_INFINITY
  #last = Number.NEGATIVE_INFINITY
  readonly jobs = new JobIndex((accountId, reservationId) => this.#holdOf(accountId, reservationId))
  readonly prices = new Prices()
  readonly calls = new CallIndex(this.prices, (accountId) => this.#accountStream(accountId)?.sound !== false)
  readonly waits = new WaitIndex(this.calls)
  readonly inboxes = new InboxIndex(this.calls)
  readonly proxies = new ProxySessionIndex(this.calls)
  readonly invoices = new InvoiceIndex()
  readonly payments = new PaymentIndex(this.invoices)
  readonly subscriptions = new SubscriptionIndex(this.payments)
  readonly sessions = new SessionIndex((accountId) => {
    const stream = this.#accountStream(accountId)
    return stream?.sound === false || (stream?.account !== undefined && stream.account.state.status !== "absent")
  })
  readonly alerts = new AlertIndex((accountId) => {
    const stream = this.#accountStream(accountId)
    const status = stream?.account?.state.status
    const isOpened = stream?.sound === false || (status !== undefined && status !== "absent")
    return { isOpened, closedAt: stream?.sound !== false && status === "closed" ? stream?.account?.closedAt : undefined }
  })
  readonly apiKeys: ApiKeys = { issued: 0, revoked: 0 }
  readonly #categories: ReadonlyMap<string, Category>
  #earlier: Head.Head | undefined
  readonly #earlierStreams: ReadonlyArray<Head.StreamEnd> | undefined
  readonly #isExport: boolean
  #position: string = EventStore.start
  #events = 0
  /** The time of the last event: events of one append share it. As text, as `fromIso` reads it, and as `Date.parse` reads other formats. */
  #at = ""
  #instant = Number.NaN
  #millis = 0

  /** The current event, at whose place problems are reported, and its stream. */
  #event: EventStore.RecordedEvent | undefined
  #stream: StreamReplay | undefined
  readonly #report: ReportProblem = (rule, detail, stake = Stakes.unproven(this.#stream, this.#event)) =>
    this.problems.addOf(this.#event ?? WHOLE, rule, detail, stake)
  /** As {@link #report}, for the rules of this file. */
  readonly #broken: (rule: RuleName, ...rest: DropFirst<Parameters<ReportProblem>>) => void = this.#report

  constructor({ against, categories = [], isExport = false, money, streams, uniques }: ReaderOptions) {
    this.#isExport = isExport
    this.problems = new Problems(money)
    this.#earlier = against
    this.#earlierStreams = streams
    this.uniques = new UniqueNames(uniques)
    this.#categories = new Map([...coreCategories(this), ...categories].map((category) => [category.name, category]))
  }

  /** Finds the stream of each event, begins those that are new, and prepares the events. */
  begin(events: ReadonlyArray<EventStore.RecordedEvent>): Page {
    const entries: Array<Entry> = []
    const newAccounts: Array<StreamReplay> = []
    let last: StreamReplay | undefined
    for (const event of events) {
      const { stream: name } = event
      // Often an event follows one of the same stream
      if (last?.name !== name) last = this.streams.get(name)
      if (last === undefined) {
        last = this.#beginStream(name)
        if (last.account !== undefined) newAccounts.push(last)
      }
      entries.push(new Entry(event, last))
    }
    prepare(entries)
    return { entries, newAccounts }
  }

  #beginStream(name: StreamName.StreamName): StreamReplay {
    const category = StreamName.category(name)
    const account = category === Account.Account.category ? new AccountReplay(StreamName.id(name), beginningOf(name)) : undefined
    const stream = new StreamReplay(name, account, this.#categories.get(category)?.begin(name, this.#report))
    this.streams.set(name, stream)
    return stream
  }

  read({ entries }: Page): void {
    for (const entry of entries) this.#next(entry)
  }

  /** Ends the reading and returns the head of the log. An earlier head that was not reached yet is compared now. */
  end(): Head.Head {
    if (this.#earlier !== undefined) this.#compareHead(this.#earlier)
    for (const { account, name, position, sound } of this.streams.values()) {
      const missing = account !== undefined && sound ? untold(account.state) : undefined
      if (missing !== undefined)
        this.problems.add({ position, stream: name }, "low-balance-is-told", missing, () => ({ account: account?.accountId, ...UNTOLD }))
      const uncovered = account !== undefined && sound ? uncoveredHolds(account.state) : undefined
      if (account === undefined || uncovered === undefined) continue
      const detail = `open holds sum to ${credits(uncovered.open)}, but lots hold ${credits(uncovered.held)}`
      this.problems.add({ position, stream: name }, "holds-are-covered", detail, Stakes.uncovered(account.accountId, uncovered))
    }
    return { ...this.#past(), at: this.latest === "" ? null : this.latest, buckets: Head.bucketsOf(this.ends()) }
  }

  #next(entry: Entry): void {
    const { event, hash, stream } = entry
    if (this.#earlier !== undefined && event.position > this.#earlier.position) this.#compareHead(this.#earlier)
    this.#event = event
    this.#stream = stream
    this.#checkPlace(entry)
    const at = HashChain.atOf(event)
    this.#checkTime(stream, at)
    if (stream.sound) {
      stream.sound = hash !== undefined && !Number.isNaN(this.#millis) && this.#replay(entry)
      if (!stream.sound) this.#categories.get(StreamName.category(stream.name))?.lost?.(stream.name)
    }
    stream.revision = event.revision
    stream.hash = hash ?? HashChain.hashOf(event)
    stream.at = at
    stream.position = event.position
    this.#position = event.position
    this.#events++
    if (stream.snapshot?.revision === event.revision && stream.sound) this.#compareSnapshot(stream, stream.snapshot, event)
  }

  /** Checks position, id, revision and hash. */
  #checkPlace({ event, hash, stream }: Entry): void {
    // Positions increase through the whole log, so the order is total and no event occurs twice
    if (event.position <= this.#position) this.#broken("position-increases", `it follows position ${this.#position}`, Stakes.ORDER)
    else if (this.#isExport) this.#checkGap(event.position)
    this.uniques.add(event.id)
    // Revisions count from 0 without gaps, so no event of a stream was removed, inserted or moved
    const expected = stream.revision + 1
    if (event.revision !== expected) this.#broken("revision-follows", `its revision is ${event.revision} instead of ${expected}`)
    // Each event has the SHA-256 of itself and of the hash before it, so no event was changed, exchanged or forged
    else if (hash === undefined) this.#broken("link-holds", HashChain.isSealed(event) ? WRONG_HASH : "it has no hash")
  }

  #checkGap(position: string): void {
    const gap = gapBetween(this.#position, position)
    if (gap !== undefined) this.#broken("position-follows", gap, Stakes.MISSING)
  }

  /** Times have one format and never go back within a stream. */
  #checkTime(stream: StreamReplay, at: string): void {
    const isSame = at === this.#at
    const instant = isSame ? this.#instant : fromIso(at)
    const isTime = !Number.isNaN(instant)
    // Numbers are compared several times faster than parts of texts
    const isEarlier = isTime && !Number.isNaN(stream.instant) ? instant < stream.instant : at < stream.at
    stream.instant = instant
    if (isSame && !isEarlier) return
    if (!isTime) this.#broken("time-goes-on", `${JSON.stringify(at)} is not a time`, Stakes.TIME)
    else if (isEarlier) this.#broken("time-goes-on", `${at} is earlier than ${stream.at}, the time of the event before it`, Stakes.TIME)
    else if (instant > this.#last) [this.latest, this.#last] = [at, instant]
    if (instant < this.#first) [this.earliest, this.#first] = [at, instant]
    this.#at = at
    this.#instant = instant
    // A time in another format may still be a time
    this.#millis = isTime ? instant : Date.parse(at)
  }

  /** False when the event cannot be read or does not fold. */
  #replay({ decoded: event, event: recorded, stream: { account, other } }: Entry): boolean {
    const report = this.#report
    try {
      if (account === undefined || event === undefined) {
        if (other === undefined) this.#broken("stream-is-known", "no decider reads streams of this category")
        other?.(recorded.type, recorded.data, this.#millis, recorded.position, () => requestOf(recorded), recorded.id)
        return other !== undefined
      }
      if (event instanceof EventCodec.UnreadableEvent) throw event
      const unique = uniqueName(event)
      if (unique !== undefined) this.uniques.add(unique.id, unique.isOfStream ? account.names : undefined)
      if (!account.next(event, this.#millis, this, report)) return false
      if (event._tag === "Refunded" && event.stage === "settled") this.lateRefunds.note(recorded, event)
      return true
    } catch (error) {
      this.#broken("event-is-readable", error instanceof Error ? error.message : String(error))
      return false
    }
  }

  #holdOf(accountId: string, reservationId: string): Account.Hold | "unknown" | undefined {
    const stream = this.#accountStream(accountId)
    return stream?.sound === false ? "unknown" : stream?.account && Account.hold(stream.account.state, reservationId)
  }

  /** An account as far as it was read; `unknown` from its first event that cannot be replayed. */
  accountOf(accountId: string): Account.Account | "unknown" | undefined {
    const stream = this.#accountStream(accountId)
    return stream?.sound === false ? "unknown" : stream?.account?.state
  }

  #accountStream(accountId: string): StreamReplay | undefined {
    return this.streams.get(StreamName.make(Account.Account.category, accountId))
  }

  #compareSnapshot({ account, hash }: StreamReplay, { data, revision }: EventStore.StoredSnapshot, event: EventStore.RecordedEvent): void {
    if (account === undefined) return
    const wrong = snapshotAgrees(data, { state: account.state, hash, at: this.#millis })
    if (wrong !== undefined)
      this.problems.add(event, "snapshot-agrees", `${snapshotOf(account.accountId)} at revision ${revision}: ${wrong}`, Stakes.SNAPSHOT)
  }

  /** The streams that have events so far, with their last. */
  ends(): ReadonlyArray<StreamReplay> {
    return [...this.streams.values()].filter(({ revision }) => revision >= 0)
  }

  #past(): Head.Past {
    const read = this.ends()
    return { position: this.#position, streams: read.length, events: this.#events, digest: Head.digest(read) }
  }

  #compareHead(earlier: Head.Head): void {
    this.#earlier = undefined
    const wrong = Head.compare(earlier, this.#past())
    if (wrong === undefined) return
    const { buckets, position } = earlier
    this.problems.add({ position, stream: WHOLE_LOG }, "log-extends-head", wrong, Stakes.HEAD)
    const exact = this.#earlierStreams && Head.differencesOf(this.#earlierStreams, this.ends())
    for (const { detail, stream } of exact ?? (buckets === undefined ? [] : Head.bucketsThatDiffer(buckets, this.ends()))) {
      const now = stream === undefined ? undefined : this.#readingOf(stream)
      this.problems.add({ position, stream: stream ?? WHOLE_LOG }, "stream-extends-head", detail, Stakes.rewritten(stream, now))
    }
  }

  #readingOf(name: string): StreamReplay | undefined {
    const reading = StreamName.isStreamName(name) ? this.streams.get(name) : undefined
    return reading !== undefined && reading.revision >= 0 ? reading : undefined
  }
}

/** The request that caused an event; undefined where its metadata names none. */
const requestOf = (event: EventStore.RecordedEvent): string | undefined => {
  const { $correlationId: request } = HashChain.metadataOf(event)
  return typeof request === "string" ? request : undefined
}

type DropFirst<Parameters extends ReadonlyArray<unknown>> = Parameters extends [unknown, ...infer Rest] ? Rest : never
