/**
 * The audit: reads the whole log once, in its order, and checks every event by the rules of its stream, its account and the log as a whole.
 * It uses the events alone: no snapshot, no projection, no index of the store.
 */
import { Account, Job } from "@millrace/core"
import { EventStore, StreamName } from "@millrace/event-sourcing"
import { Clock, Effect, Stream } from "effect"
import { LogReader, type ReaderOptions } from "./LogReader.ts"
import type { Place, Report } from "./Report.ts"
import { overdueHolds } from "./rules/Endings.ts"
import { EVENT_ID, readUniqueName } from "./rules/Names.ts"
import { snapshotOf } from "./rules/Snapshots.ts"
import type { StreamReplay } from "./StreamReplay.ts"

export interface Options extends ReaderOptions {
  /** When overdue is judged, milliseconds since 1970: the latest time in the log, unless given. */
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
      const { readings, accounts } = reader.streamsOf(events)
      const read = Effect.sync(() => reader.read(events, readings))
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
    problems.add(
      { position, stream: name },
      "snapshot-agrees",
      `the snapshot is of revision ${snapshot.revision}, but the stream ends at ${revision}`
    )
  }
})

/** A job ends so long after its deadline, and its account is settled so long after its end, at the latest: milliseconds. Recovery needs that. */
const JOB_MARGIN = 5 * 60_000

const checkOverdue = Effect.fnUntraced(function* ({ jobs, latest, problems, streams }: LogReader, at?: number) {
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

/** The positions of these reservations, which the state of an account does not keep. */
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
    else problems.add(event, rule, `${name} stands at position ${before} already`)
  })
})
