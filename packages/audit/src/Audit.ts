/**
 * The audit: reads the whole log once, in its order, and checks every event by the rules of its stream, its account and the log as a whole.
 * It uses the events alone: no snapshot, no projection, no index of the store.
 */
import { Account, Job, Money } from "@millrace/core"
import { EventStore, StreamName } from "@millrace/event-sourcing"
import { Clock, Effect, Stream } from "effect"
import type { Export, LineProblem } from "./Export.ts"
import type { StreamEnd } from "./Head.ts"
import { LogReader, type ReaderOptions } from "./LogReader.ts"
import { iso, type Report } from "./Report.ts"
import { EVENT_ID, textOf, type UniqueName, uniqueNames } from "./rules/Names.ts"
import { snapshotOf } from "./rules/Snapshots.ts"
import * as Stakes from "./Stakes.ts"
import type { StreamReplay } from "./StreamReplay.ts"
import { beginningOf } from "./UniqueNames.ts"

export interface Options extends Omit<ReaderOptions, "isExport" | "money"> {
  /** The time at which holds and jobs count as overdue, milliseconds since 1970: the latest time in the log by default. */
  readonly at?: number
  /** Given the last event of every stream, in no order: for {@link Head.streamList}. */
  readonly onStreams?: (ends: ReadonlyArray<StreamEnd>) => void
}

/** Audits an export, without its store. Fails only if the file cannot be read. */
export const runExport = (file: Export, options: Options = {}): Effect.Effect<Report, EventStore.StoreUnavailable> =>
  audit(options, file).pipe(Effect.provideService(EventStore.EventStore, file.store))

/**
 * Audits the log of the event store in the context. Returns the report; fails only if the store cannot be read. For more names than fit into
 * memory the log is read several times. Findings are told in `Money.Current`.
 */
export const run = (options: Options = {}): Effect.Effect<Report, EventStore.StoreUnavailable, EventStore.EventStore> => audit(options)

const audit = Effect.fn("Audit.run")(function* (options: Options, file?: Export) {
  const store = yield* EventStore.EventStore
  const began = yield* Clock.currentTimeMillis
  const reader = new LogReader({ ...options, isExport: file !== undefined, money: yield* Money.Current })
  const { problems } = reader

  const note = ({ detail, line, stream }: LineProblem) =>
    problems.add({ position: "", stream, line }, "line-is-an-event", detail, Stakes.garbled(stream))
  // The file may be read several times
  if (file !== undefined) file.onProblem = note
  yield* store.readAll(EventStore.start).pipe(
    Stream.runForEachArray((events) => {
      const page = reader.begin(events)
      const read = Effect.sync(() => reader.read(page))
      if (page.newAccounts.length === 0) return read
      return Effect.andThen(Effect.forEach(page.newAccounts, loadSnapshot, { concurrency: 16, discard: true }), read)
    })
  )
  if (file !== undefined) file.onProblem = undefined
  const head = reader.end()
  yield* reader.lateRefunds.check(problems, file !== undefined)
  yield* checkOverdue(reader, file !== undefined, options.at)
  yield* checkSnapshotsAhead(reader)
  yield* checkUniques(reader)

  options.onStreams?.(reader.ends())

  const report: Report = {
    ok: problems.found === 0,
    events: head.events,
    streams: head.streams,
    ...countsOf(reader),
    from: reader.earliest === "" ? null : reader.earliest,
    to: head.at,
    seconds: ((yield* Clock.currentTimeMillis) - began) / 1000,
    head,
    found: problems.found,
    problems: problems.list()
  }
  return report
})

/** How much of each kind the log has. */
const countsOf = ({ apiKeys, jobs, prices, streams }: LogReader) => {
  const accounts = [...streams.values()].flatMap(({ account }) => account ?? [])
  let [lots, holds] = [0, 0]
  for (const account of accounts) {
    lots += account.lots
    holds += account.holds
  }
  return { accounts: accounts.length, lots, holds, prices: prices.published, jobs: jobs.size, apiKeys }
}

/** Loads the newest snapshot of an account before its replay, which compares it at its revision. */
const loadSnapshot = Effect.fnUntraced(function* (reading: StreamReplay) {
  const store = yield* EventStore.EventStore
  if (reading.account !== undefined) reading.snapshot = yield* store.loadSnapshot(snapshotOf(reading.account.accountId))
})

/** A snapshot of an event that does not exist: the log lost its end, or the snapshot was forged. */
const checkSnapshotsAhead = Effect.fnUntraced(function* ({ problems, streams }: LogReader) {
  const store = yield* EventStore.EventStore
  for (const { name, position, revision, snapshot, sound } of streams.values()) {
    if (snapshot === undefined || snapshot.revision <= revision || !sound) continue
    // The event may have been appended while the log was read; then it exists now
    const last = yield* store.lastRevision(name)
    if (last !== "noStream" && last >= snapshot.revision) continue
    const detail = `the snapshot is of revision ${snapshot.revision}, but the stream ends at ${revision}`
    problems.add({ position, stream: name }, "snapshot-agrees", detail, Stakes.SNAPSHOT)
  }
})

/** Reports what is still open at the end of the log although its time is over: jobs, inboxes, sessions, payments and holds. */
const checkOverdue = Effect.fnUntraced(function* (reader: LogReader, together: boolean, at?: number) {
  const { alerts, inboxes, invoices, jobs, latest, payments, problems, proxies, sessions, streams } = reader
  const now = at ?? (latest === "" ? 0 : Date.parse(latest))
  jobs.reportOverdue(now, problems)
  inboxes.reportOverdue(now, problems)
  proxies.reportOverdue(now, problems)
  payments.reportUnsettled(now, (accountId) => reader.accountOf(accountId), problems)
  invoices.reportMissing(now, problems)
  sessions.reportOverdue(now, problems)
  alerts.reportOverdue(now, problems)
  const hasBegun = (jobId: string) => streams.has(StreamName.make(Job.Job.category, jobId))
  const overdue = new Map<StreamName.StreamName, ReadonlyMap<string, number>>()
  for (const { account, name, sound } of streams.values()) {
    const holds = account !== undefined && sound ? overdueHolds(account.state, now, hasBegun) : undefined
    if (holds !== undefined && holds.size > 0) overdue.set(name, holds)
  }
  yield* eachHold(new Set(overdue.keys()), together, (reservationId, event) => {
    const account = streams.get(event.stream)?.account
    const deadline = overdue.get(event.stream)?.get(reservationId)
    if (account === undefined || deadline === undefined) return
    const detail = `the deadline of reservation ${reservationId} was ${iso(deadline)}, and it is open`
    const hold = Account.hold(account.state, reservationId)
    problems.add(event, "hold-is-not-overdue", detail, Stakes.overdue(account.accountId, hold))
  })
})

/**
 * The deadlines of holds that are overdue at `now` and that only recovery can end, by reservation. Holds that the ledger ends with the next
 * decision count as released. The hold of an accepted job waits for the job.
 */
const overdueHolds = ({ purse }: Account.Account, now: number, hasBegun: (jobId: string) => boolean): ReadonlyMap<string, number> => {
  const overdue = new Map<string, number>()
  for (const [reservationId, hold] of purse.holds) {
    if (Account.expiresByItself(hold) || (hold.jobId !== undefined && hasBegun(hold.jobId))) continue
    const deadline = hold.expiresAt ?? hold.acceptBy
    if (deadline !== undefined && deadline <= now) overdue.set(reservationId, deadline)
  }
  return overdue
}

const RESERVED = Account.Account.codec.typesOf(["CreditReserved"])

/** Every hold of these accounts with its event, of which the state of an account keeps no place. `together`: in one reading of the log. */
const eachHold = Effect.fnUntraced(function* (
  accounts: ReadonlySet<StreamName.StreamName>,
  together: boolean,
  f: (reservationId: string, event: EventStore.RecordedEvent) => void
) {
  const store = yield* EventStore.EventStore
  const sources = !together
    ? [...accounts].map((name) => store.readStream(name))
    : accounts.size > 0
      ? [store.readAll(EventStore.start)]
      : []
  const look = (recorded: EventStore.RecordedEvent) => {
    const { data, stream, type } = recorded
    const event = accounts.has(stream) && RESERVED.has(type) ? Account.Account.codec.decode(type, data) : undefined
    if (event?._tag === "CreditReserved") f(event.reservationId, recorded)
  }
  yield* Effect.forEach(sources, (events) => Stream.runForEach(events, (event) => Effect.sync(() => look(event))), { discard: true })
})

/** Reads the log again for names that did not fit into memory, and then for the suspects, by their full names. */
const checkUniques = Effect.fnUntraced(function* ({ problems, uniques }: LogReader) {
  const store = yield* EventStore.EventStore
  const eachName = (f: (unique: UniqueName, event: EventStore.RecordedEvent) => void) =>
    store.readAll(EventStore.start).pipe(
      Stream.runForEachArray((events) =>
        Effect.sync(() => {
          for (const event of events) for (const unique of uniqueNames(event)) f(unique, event)
        })
      )
    )
  const beginning = ({ isOfStream }: UniqueName, { stream }: EventStore.RecordedEvent) => (isOfStream ? beginningOf(stream) : undefined)
  for (let share = 1; share < uniques.shares; share++) {
    uniques.begin(share)
    yield* eachName((unique, event) => uniques.add(unique.id, beginning(unique, event)))
  }
  if (!uniques.hasSuspects) return
  const first = new Map<string, string>()
  yield* eachName((unique, event) => {
    if (!uniques.isSuspect(unique.id, beginning(unique, event))) return
    const name = textOf(unique, event.stream)
    const before = first.get(name)
    if (before === undefined) first.set(name, event.position)
    else
      problems.add(
        event,
        unique.rule,
        `${name} already occurs at position ${before}`,
        unique.rule === EVENT_ID ? Stakes.TWICE : Stakes.ofEvent(event, "a second time")
      )
  })
})
