/**
 * The audit: reads the whole log once, in its order, and checks every event by the rules of its stream, its account and the log as a whole.
 * It uses the events alone: no snapshot, no projection, no index of the store.
 */
import { Account, Job } from "@millrace/core"
import { EventStore, StreamName } from "@millrace/event-sourcing"
import { Clock, Effect, Stream } from "effect"
import { LogReader, type ReaderOptions, type StreamReplay } from "./LogReader.ts"
import { iso, type Place, type Report } from "./Report.ts"
import { EVENT_ID, readUniqueName } from "./rules/Names.ts"
import { snapshotOf } from "./rules/Snapshots.ts"

export interface Options extends ReaderOptions {
  /** The time at which holds and jobs count as overdue, milliseconds since 1970: the latest time in the log by default. */
  readonly at?: number
}

/**
 * Audits the log of the event store in the context. Returns the report; fails only if the store cannot be read. For more names than fit into
 * memory the log is read several times.
 */
export const run = Effect.fn("Audit.run")(function* (options: Options = {}) {
  const store = yield* EventStore.EventStore
  const began = yield* Clock.currentTimeMillis
  const reader = new LogReader(options)

  yield* store.readAll(EventStore.start).pipe(
    Stream.runForEachArray((events) => {
      const accounts = reader.begin(events)
      const read = Effect.sync(() => reader.read(events))
      return accounts.length === 0 ? read : Effect.andThen(Effect.forEach(accounts, loadSnapshot, { concurrency: 16, discard: true }), read)
    })
  )
  const head = reader.end()
  yield* reader.lateRefunds.check(reader.problems)
  yield* checkOverdue(reader, options.at)
  yield* checkSnapshotsAhead(reader)
  yield* checkUniques(reader)

  const { problems, streams } = reader
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
    problems.add({ position, stream: name }, "snapshot-agrees", detail)
  }
})

/** Reports jobs and holds that are still open at the end of the log, although their time is over. */
const checkOverdue = Effect.fnUntraced(function* ({ jobs, latest, problems, streams }: LogReader, at?: number) {
  const now = at ?? (latest === "" ? 0 : Date.parse(latest))
  jobs.reportOverdue(now, problems)
  const hasBegun = (jobId: string) => streams.has(StreamName.make(Job.Job.category, jobId))
  for (const { account, name, sound } of streams.values()) {
    if (account === undefined || !sound) continue
    const overdue = overdueHolds(account.state, now, hasBegun)
    if (overdue.size === 0) continue
    const places = yield* placesOf(name, overdue)
    for (const [reservationId, deadline] of overdue) {
      const place = places.get(reservationId)
      const detail = `the deadline of reservation ${reservationId} was ${iso(deadline)}, and it is open`
      if (place !== undefined) problems.add(place, "hold-is-not-overdue", detail)
    }
  }
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

/** The positions of these reservations, which the state of an account does not keep. */
const placesOf = Effect.fnUntraced(function* (stream: StreamName.StreamName, reservationIds: ReadonlyMap<string, unknown>) {
  const store = yield* EventStore.EventStore
  const places = new Map<string, Place>()
  yield* Stream.runForEach(store.readStream(stream), ({ data, position, type }) =>
    Effect.sync(() => {
      const event = RESERVED.has(type) ? Account.Account.codec.decode(type, data) : undefined
      if (event?._tag === "CreditReserved" && reservationIds.has(event.reservationId)) places.set(event.reservationId, { position, stream })
    })
  )
  return places
})

/** Reads the log again for names that did not fit into memory, and then for the suspects, by their full names. */
const checkUniques = Effect.fnUntraced(function* ({ problems, suspects, uniques }: LogReader) {
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
    else problems.add(event, rule, `${name} already occurs at position ${before}`)
  })
})
