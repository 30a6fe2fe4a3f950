/**
 * The audit: reads the whole log once, in its order, and asks of every event what its stream, its account and the log as a whole
 * must answer. It trusts nothing that is derived: no snapshot, no projection, no store's word but the events'.
 *
 * A stream is replayed up to its first event that is not what was written or cannot be read: on what follows no state can be built.
 * Its places, hashes and times are checked to the end all the same, and other streams go on.
 */
import { Account, Job } from "@millrace/core"
import { EventStore, HashChain, StreamName } from "@millrace/event-sourcing"
import { Clock, Effect, Stream } from "effect"
import { AccountReplay } from "./AccountReplay.ts"
import { type Category, coreCategories } from "./Categories.ts"
import * as Head from "./Head.ts"
import { JobBook } from "./JobBook.ts"
import { Prices } from "./Prices.ts"
import type { Replay, Say } from "./Replay.ts"
import { type Place, Problems, type Report, WHOLE_LOG } from "./Report.ts"
import { holdsAreCovered } from "./rules/Books.ts"
import { overdueHolds } from "./rules/Endings.ts"
import { LateRefunds } from "./rules/LateRefunds.ts"
import { linkHolds, millisOf, positionIncreases, revisionFollows, timeGoesOn } from "./rules/Log.ts"
import { EVENT_ID, readUniqueName, uniqueName } from "./rules/Names.ts"
import { snapshotAgrees, snapshotOf } from "./rules/Snapshots.ts"
import { Uniques } from "./Uniques.ts"

export interface Options {
  /** When overdue is judged, milliseconds since 1970: the latest time in the log, unless given. */
  readonly at?: number
  /** An earlier audit's head: this log has to extend it. */
  readonly against?: Head.Head
  /** Streams of the host's own, beside those of the library. */
  readonly categories?: ReadonlyArray<Category>
  /** Names that must be unique, kept in memory at once: for more the log is read again, a share of them each time. */
  readonly uniques?: number
}

export const run = Effect.fn("Audit.run")(function* (options: Options = {}) {
  const store = yield* EventStore.EventStore
  const began = yield* Clock.currentTimeMillis
  const pass = new Pass(options)

  yield* store.readAll(EventStore.start).pipe(
    Stream.runForEachArray((events) => {
      const { readings, accounts } = pass.meet(events)
      const read = Effect.sync(() => pass.read(events, readings))
      return accounts.length === 0 ? read : Effect.andThen(Effect.forEach(accounts, loadSnapshot, { concurrency: 16, discard: true }), read)
    })
  )
  const head = pass.end()
  yield* pass.lateRefunds.check(pass.problems)
  yield* checkOverdue(pass, options.at)
  yield* checkSnapshotsAhead(pass)
  yield* checkUniques(pass)

  const { problems, streams } = pass
  const report: Report = {
    ok: problems.found === 0,
    events: head.events,
    streams: head.streams,
    accounts: [...streams.values()].filter(({ account }) => account !== undefined).length,
    seconds: ((yield* Clock.currentTimeMillis) - began) / 1000,
    head,
    found: problems.found,
    problems: problems.list()
  }
  return report
})

/** A stream as it was read so far. */
class Reading implements Head.StreamEnd {
  readonly name: StreamName.StreamName
  /** Set for streams of accounts. */
  readonly account: AccountReplay | undefined
  /** Set for streams of the other categories that are known. */
  readonly other: Replay | undefined
  revision: EventStore.Revision = -1
  hash: HashChain.Hash
  position: string = EventStore.start
  at = ""
  /** False from the first event on that does not follow from what was replayed. */
  sound = true
  snapshot: EventStore.StoredSnapshot | undefined

  constructor(name: StreamName.StreamName, account: AccountReplay | undefined, other: Replay | undefined) {
    this.name = name
    this.hash = HashChain.start(name)
    this.account = account
    this.other = other
  }
}

/** One reading of the log: everything that is known of it so far. */
class Pass {
  readonly problems = new Problems()
  readonly streams = new Map<StreamName.StreamName, Reading>()
  readonly lateRefunds = new LateRefunds()
  readonly uniques: Uniques
  /** Names that may stand twice, with the rule that forbids it. */
  readonly suspects = new Map<string, string>()
  /** The latest time in the log, ISO 8601. */
  latest = ""
  readonly jobs = new JobBook((accountId, reservationId) => this.#holdOf(accountId, reservationId))
  readonly #prices = new Prices()
  readonly #categories: ReadonlyMap<string, Category>
  #awaited: Head.Head | undefined
  #position: string = EventStore.start
  #events = 0
  /** The last time that was looked at, as text and in milliseconds: events of one append share it. */
  #at = ""
  #millis = 0

  /** The event that is looked at, and what is wrong with it. */
  #place: Place = { position: EventStore.start, stream: WHOLE_LOG }
  readonly #say: Say = (rule, detail) => this.problems.add(this.#place, rule, detail)

  constructor({ against, categories = [], uniques }: Options) {
    this.#awaited = against
    this.uniques = new Uniques(uniques)
    this.#categories = new Map([...coreCategories(this.#prices, this.jobs), ...categories].map((category) => [category.name, category]))
  }

  /** The stream of each of these events, and the accounts that are new among them. */
  meet(events: ReadonlyArray<EventStore.RecordedEvent>): {
    readonly readings: ReadonlyArray<Reading>
    readonly accounts: ReadonlyArray<Reading>
  } {
    const accounts: Array<Reading> = []
    const readings = events.map(({ stream }) => {
      const known = this.streams.get(stream)
      if (known !== undefined) return known
      const category = StreamName.category(stream)
      const account = category === Account.Account.category ? new AccountReplay(StreamName.id(stream)) : undefined
      const reading = new Reading(stream, account, this.#categories.get(category)?.begin(stream, this.#say))
      this.streams.set(stream, reading)
      if (account !== undefined) accounts.push(reading)
      return reading
    })
    return { readings, accounts }
  }

  read(events: ReadonlyArray<EventStore.RecordedEvent>, readings: ReadonlyArray<Reading>): void {
    readings.forEach((reading, i) => {
      const event = events[i]
      if (event !== undefined) this.#next(reading, event)
    })
  }

  /** The head of what was read, an awaited earlier one judged at the latest now. */
  end(): Head.Head {
    if (this.#awaited !== undefined) this.#judge(this.#awaited)
    for (const { account, name, position, sound } of this.streams.values()) {
      const uncovered = account !== undefined && sound ? holdsAreCovered(account.state) : undefined
      if (uncovered !== undefined) this.problems.add({ position, stream: name }, "holds-are-covered", uncovered)
    }
    return { ...this.#past(), at: this.latest === "" ? null : this.latest }
  }

  #next(stream: Reading, event: EventStore.RecordedEvent): void {
    if (this.#awaited !== undefined && event.position > this.#awaited.position) this.#judge(this.#awaited)
    this.#place = event
    const say = this.#say
    const misplaced = positionIncreases(this.#position, event)
    if (misplaced !== undefined) say("position-increases", misplaced)
    if (this.uniques.add(event.id)) this.suspects.set(event.id, EVENT_ID)

    const gap = revisionFollows(stream.revision, event)
    const broken = gap === undefined ? linkHolds(stream.hash, event) : undefined
    if (gap !== undefined) say("revision-follows", gap)
    if (broken !== undefined) say("link-holds", broken)

    const at = HashChain.atOf(event)
    if (at !== this.#at || at < stream.at) {
      const millis = millisOf(at)
      const wrong = timeGoesOn(stream.at, at, millis)
      if (wrong !== undefined) say("time-goes-on", wrong)
      this.#at = at
      // What is written otherwise may still tell a time to go on with
      this.#millis = millis ?? Date.parse(at)
      if (wrong === undefined && at > this.latest) this.latest = at
    }

    if (stream.sound) {
      stream.sound = gap === undefined && broken === undefined && !Number.isNaN(this.#millis) && this.#replay(stream, event, say)
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

  /** False when the event cannot be read or does not fold. */
  #replay({ account, other }: Reading, recorded: EventStore.RecordedEvent, say: Say): boolean {
    try {
      if (account === undefined) {
        if (other === undefined) say("stream-is-known", "no decider here knows streams of its category")
        other?.(recorded.type, recorded.data, this.#millis, recorded.position)
        return other !== undefined
      }
      const event = Account.Account.codec.decode(recorded.type, recorded.data)
      const unique = uniqueName(recorded.stream, event)
      if (unique !== undefined && this.uniques.add(...unique.parts)) this.suspects.set(unique.parts.join(""), unique.rule)
      if (!account.next(event, this.#millis, this.#prices, this.jobs, say)) return false
      if (event._tag === "Refunded" && event.stage === "settled") this.lateRefunds.note(recorded, event)
      return true
    } catch (error) {
      say("event-is-readable", error instanceof Error ? error.message : String(error))
      return false
    }
  }

  #holdOf(accountId: string, reservationId: string): Account.Hold | "unknown" | undefined {
    const stream = this.streams.get(StreamName.make(Account.Account.category, accountId))
    return stream?.sound === false ? "unknown" : stream?.account && Account.hold(stream.account.state, reservationId)
  }

  #compareSnapshot({ account, hash }: Reading, { data, revision }: EventStore.StoredSnapshot, event: EventStore.RecordedEvent): void {
    if (account === undefined) return
    const wrong = snapshotAgrees(data, { state: account.state, hash, at: this.#millis })
    if (wrong !== undefined)
      this.problems.add(event, "snapshot-agrees", `${snapshotOf(account.accountId)} at revision ${revision}: ${wrong}`)
  }

  #past(): Head.Past {
    const read = [...this.streams.values()].filter(({ revision }) => revision >= 0)
    return { position: this.#position, streams: read.length, events: this.#events, digest: Head.digest(read) }
  }

  #judge(earlier: Head.Head): void {
    this.#awaited = undefined
    const wrong = Head.compare(earlier, this.#past())
    if (wrong !== undefined) this.problems.add({ position: earlier.position, stream: WHOLE_LOG }, "log-extends-head", wrong)
  }
}

/** The newest snapshot of an account, before any of it is replayed: compared when the replay comes by. */
const loadSnapshot = Effect.fnUntraced(function* (reading: Reading) {
  const store = yield* EventStore.EventStore
  if (reading.account !== undefined) reading.snapshot = yield* store.loadSnapshot(snapshotOf(reading.account.accountId))
})

/** A snapshot of an event that is not there: the log lost its end, or the snapshot was made up. */
const checkSnapshotsAhead = Effect.fnUntraced(function* ({ problems, streams }: Pass) {
  const store = yield* EventStore.EventStore
  for (const { name, position, revision, snapshot, sound } of streams.values()) {
    if (snapshot === undefined || snapshot.revision <= revision || !sound) continue
    // Appended and saved while the log was read: then it is there now
    const last = yield* store.lastRevision(name)
    if (last !== "noStream" && last >= snapshot.revision) continue
    problems.add(
      { position, stream: name },
      "snapshot-agrees",
      `the snapshot is of revision ${snapshot.revision}, but the stream ends at ${revision}`
    )
  }
})

/** How long after a job's end its account may follow, and after its deadline its end: milliseconds. What dies between is made up for. */
const JOB_MARGIN = 5 * 60_000

const checkOverdue = Effect.fnUntraced(function* ({ jobs, latest, problems, streams }: Pass, at?: number) {
  const now = at ?? (latest === "" ? 0 : Date.parse(latest))
  for (const { detail, jobId, position, rule } of jobs.overdue(now, JOB_MARGIN))
    problems.add({ position, stream: StreamName.make(Job.Job.category, jobId) }, rule, detail)
  const jobBegan = (jobId: string) => streams.has(StreamName.make(Job.Job.category, jobId))
  for (const { account, name, sound } of streams.values()) {
    if (account === undefined || !sound) continue
    const overdue = new Map(overdueHolds(account.state, now, jobBegan).map(({ reservationId, since }) => [reservationId, since]))
    if (overdue.size === 0) continue
    const places = yield* placesOf(name, overdue)
    for (const [reservationId, since] of overdue) {
      const place = places.get(reservationId)
      if (place !== undefined) {
        problems.add(
          place,
          "hold-is-not-overdue",
          `reservation ${reservationId} was to end by ${new Date(since).toISOString()} and is open`
        )
      }
    }
  }
})

const RESERVED = Account.Account.codec.typesOf(["CreditReserved"])

/** Where reservations were made: states do not remember positions. */
const placesOf = Effect.fnUntraced(function* (stream: StreamName.StreamName, reservationIds: { readonly has: (id: string) => boolean }) {
  const store = yield* EventStore.EventStore
  const places = new Map<string, Place>()
  yield* store.readStream(stream).pipe(
    Stream.runForEachArray((events) =>
      Effect.sync(() => {
        for (const event of events) {
          if (!RESERVED.has(event.type)) continue
          const decoded = Account.Account.codec.decode(event.type, event.data)
          if (decoded._tag === "CreditReserved" && reservationIds.has(decoded.reservationId))
            places.set(decoded.reservationId, { position: event.position, stream })
        }
      })
    )
  )
  return places
})

/** Names that did not fit into memory the first time are looked at now; then the suspects are, by name. */
const checkUniques = Effect.fnUntraced(function* ({ problems, suspects, uniques }: Pass) {
  const store = yield* EventStore.EventStore
  const eachName = (f: (name: string, rule: string, event: EventStore.RecordedEvent) => void) =>
    store.readAll(EventStore.start).pipe(
      Stream.runForEachArray((events) =>
        Effect.sync(() => {
          for (const event of events) {
            f(event.id, EVENT_ID, event)
            const unique = readUniqueName(event)
            if (unique !== undefined) f(unique.parts.join(""), unique.rule, event)
          }
        })
      )
    )
  for (let share = 1; share < uniques.shares; share++) {
    uniques.begin(share)
    yield* eachName((name, rule) => {
      if (uniques.add(name)) suspects.set(name, rule)
    })
  }
  if (suspects.size === 0) return
  const first = new Map<string, string>()
  yield* eachName((name, rule, event) => {
    if (!suspects.has(name)) return
    const before = first.get(name)
    if (before === undefined) first.set(name, event.position)
    else problems.add(event, rule, `${name} stands at position ${before} already`)
  })
})
