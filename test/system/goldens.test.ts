/** Recorded streams of all kinds on every store: written by appends and read back, they are the same bytes, and come to the same. */
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Audit, digest, Journal } from "@millrace/audit"
import { Ledger } from "@millrace/core"
import { EventStore, HashChain, MemoryEventStore, StreamName } from "@millrace/event-sourcing"
import { KurrentDb, KurrentDbEventStore } from "@millrace/event-store-kurrentdb"
import { PostgresEventStore } from "@millrace/event-store-postgres"
import { SqliteEventStore } from "@millrace/event-store-sqlite"
import { Context, Effect, Layer, type Scope, Stream } from "effect"
import { describe, expect, test } from "vitest"
import { type RecordedLine, type RecordedLog, readLog, streamOf } from "../../packages/core/test/golden/Recorded.ts"
import * as Streams from "../../packages/core/test/golden/Streams.ts"
import { replay } from "../../packages/core/test/ledger/Golden.ts"
import { KurrentDbStandIn } from "../../packages/event-store-kurrentdb/test/standin/index.ts"
import { schema } from "../../packages/event-store-postgres/test/Postgres.ts"
import { inTemporaryFolder } from "../../packages/event-store-sqlite/test/TemporaryFolder.ts"

type Store = EventStore.EventStore["Service"]

interface Golden {
  readonly name: string
  readonly kind: string
  readonly stream: StreamName.StreamName
  readonly log: RecordedLog
  readonly read: (file: string) => string
}

const goldensOf = (kind: string): ReadonlyArray<Golden> => {
  const folder = new URL(`../golden/${kind}/`, import.meta.url)
  return readdirSync(fileURLToPath(folder)).map((name) => {
    const read = (file: string) => readFileSync(new URL(`${name}/${file}`, folder), "utf8")
    const log = readLog(read("events.jsonl"))
    return { name: `${kind} ${name}`, kind, stream: streamOf(log), log, read }
  })
}

/** Logs that hold them all: goldens of one stream name are in different ones. */
const shelves = ["account", ...Streams.kinds.map(({ category }) => category)]
  .flatMap(goldensOf)
  .reduce<Array<Array<Golden>>>((all, golden) => {
    const free = all.find((shelf) => shelf.every(({ stream }) => stream !== golden.stream))
    if (free === undefined) all.push([golden])
    else free.push(golden)
    return all
  }, [])

/** Events of one append: so that what is written together and what is not takes turns. */
const CHUNKS = [1, 5, 2, 40, 3] as const

/** Takes turns among the streams, an append each: answers how many appends it took. */
const write = (store: Store, goldens: ReadonlyArray<Golden>) =>
  Effect.gen(function* () {
    const written = new Map(goldens.map(({ stream }) => [stream, 0]))
    let appends = 0
    while (goldens.some(({ stream, log }) => (written.get(stream) ?? 0) < log.length)) {
      for (const { stream, log } of goldens) {
        const from = written.get(stream) ?? 0
        const size = CHUNKS[appends % CHUNKS.length] ?? 1
        const [first, ...rest] = log.slice(from, from + size).map(({ id, type, data, metadata }) => ({ id, type, data, metadata }))
        if (first === undefined) continue
        const { revision } = yield* store.append(stream, from === 0 ? "noStream" : from - 1, [first, ...rest])
        expect(revision).toBe(from + rest.length)
        written.set(stream, revision + 1)
        appends++
      }
    }
    return appends
  })

const linesOf = (events: Iterable<EventStore.RecordedEvent>): ReadonlyArray<RecordedLine> =>
  [...events].map(({ stream, revision, id, type, data, metadata }) => ({ stream, revision, id, type, data, metadata }))

const textOf = (lines: ReadonlyArray<RecordedLine>): string => lines.map((line) => `${JSON.stringify(line)}\n`).join("")

/** As every store of ours has them. */
const POSITION = /\b\d{16,20}\b/g
const FORMATS = ["hledger", "csv", "jsonl"] as const

/** What a store makes of them. Positions are its own: they are told by their order. */
const told = (store: Store, goldens: ReadonlyArray<Golden>) =>
  Effect.gen(function* () {
    const events = yield* Stream.runCollect(store.readAll(EventStore.start))
    const places = new Map<string, string>(events.map(({ position }, i) => [position, `place ${i}`]))
    const placed = (text: string) => text.replace(POSITION, (position) => places.get(position) ?? position)
    const streams = yield* Effect.forEach(goldens, ({ stream }) => Effect.map(Stream.runCollect(store.readStream(stream)), linesOf))
    const { head, problems } = yield* Audit.run()
    const { position: _, ...rest } = head
    const found = problems.map(({ position, stream, rule, detail }) => ({
      position: placed(position),
      stream,
      rule,
      detail: placed(detail)
    }))
    const journals = yield* Effect.forEach(FORMATS, (format) =>
      Effect.map(Stream.runCollect(Journal.journal(format)), (texts) => placed(texts.join("")))
    )
    return { log: linesOf(events), streams, head: rest, found, journals }
  }).pipe(Effect.provideService(EventStore.EventStore, store))

/** The last line of the balances of a golden account, as its ledger tells it. */
const balanceOf = (store: Store, { stream, read }: Golden) =>
  Effect.gen(function* () {
    const { at, lots: _lots, holds: _holds, revision: _, ...last } = JSON.parse(read("balances.jsonl").trimEnd().split("\n").at(-1) ?? "")
    const ledger = yield* Ledger
    const { available, debt, held, status } = yield* ledger.balance(StreamName.id(stream), Date.parse(at))
    return { told: { status, available, held, debt }, golden: last }
  }).pipe(Effect.provide(Ledger.layer()), Effect.provideService(EventStore.EventStore, store))

const built = <E>(layer: Layer.Layer<EventStore.EventStore, E>) =>
  Effect.map(Layer.build(layer), (context) => Context.get(context, EventStore.EventStore))

const stores: Readonly<Record<string, Effect.Effect<Store, unknown, Scope.Scope>>> = {
  memory: MemoryEventStore.make,
  SQLite: built(inTemporaryFolder((filename) => SqliteEventStore.layer({ filename }))),
  PostgreSQL: Effect.flatMap(schema, PostgresEventStore.make),
  KurrentDB: Effect.gen(function* () {
    const { url } = yield* KurrentDbStandIn.serve()
    const db = yield* KurrentDb.make({ connection: url })
    return yield* Effect.provideService(KurrentDbEventStore.make, KurrentDb.KurrentDb, db)
  })
}

/** What ties the ends of streams together, by their recorded text alone. */
const digestOf = (goldens: ReadonlyArray<Golden>): string =>
  digest(
    goldens.flatMap(({ log, stream }) => {
      const last = log.at(-1)
      return last === undefined ? [] : [{ name: stream, revision: last.revision, hash: HashChain.hashOf(last) }]
    })
  )

describe.each(Object.entries(stores))("%s", (_, open) => {
  test.each(shelves.map((goldens) => [goldens.map(({ name }) => name).join(", "), goldens] as const))(
    "holds every byte of %s, and comes to the same",
    (_, goldens) =>
      Effect.gen(function* () {
        const store = yield* open
        expect(yield* write(store, goldens)).toBeGreaterThanOrEqual(goldens.length)
        const all = yield* told(store, goldens)

        for (const [i, { kind, log, read, stream }] of goldens.entries()) {
          const lines = all.streams[i] ?? []
          expect(textOf(lines)).toBe(textOf(log))
          expect(textOf(all.log.filter((line) => line.stream === stream))).toBe(textOf(log))
          if (kind === "account")
            expect(replay(lines)).toMatchObject({ postings: read("postings.jsonl"), balances: read("balances.jsonl") })
          else expect(Streams.replay(lines)).toStrictEqual(Streams.replay(log))
        }
        for (const golden of goldens.filter(({ kind }) => kind === "account")) {
          const balance = yield* balanceOf(store, golden)
          expect(balance.told).toStrictEqual(balance.golden)
        }
        const events = goldens.reduce((sum, { log }) => sum + log.length, 0)
        expect(all.head).toMatchObject({ streams: goldens.length, events, digest: digestOf(goldens) })

        // The order of the log, what an audit says of it, and journals of it are no store's own either
        const memory = yield* MemoryEventStore.make
        yield* write(memory, goldens)
        expect(all).toStrictEqual(yield* told(memory, goldens))
      }).pipe(Effect.scoped, Effect.runPromise)
  )
})
