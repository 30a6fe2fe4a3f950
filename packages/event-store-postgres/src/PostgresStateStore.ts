/**
 * The state store on PostgreSQL: a table beside the log, or in another database, because what it keeps must be deletable.
 *
 * **What a deletion promises here.** A removed entry is gone for every reader at once, also with `shred`. Its bytes are not: PostgreSQL
 * never overwrites in place. They stay in the table's file until `VACUUM` has run and the space was used again (`VACUUM FULL` writes the
 * file anew without them), in the write-ahead log until its segments are recycled, and in every archive, standby and backup for as long
 * as those are kept. Whoever must destroy a key on the disk itself keeps the state in SQLite, or destroys the master key that wraps it.
 */
import { StateStore } from "@millrace/event-sourcing"
import { Clock, Effect, Layer } from "effect"
import { booleans, bytes, int4s, int8s, isText, texts } from "./BinaryArrays.ts"
import * as Connections from "./Connections.ts"
import type { Fault } from "./Fault.ts"
import * as GroupCommit from "./GroupCommit.ts"
import { DEFAULT_SCHEMA, migrate } from "./Migrations.ts"
import * as Server from "./Server.ts"
import { STATE } from "./StateTables.ts"

export interface PostgresStateStoreOptions extends Connections.ConnectionsOptions {
  /** The schema of the table: `millrace` by default. */
  readonly schema?: string
  /** For those who only look, also at a standby. Nothing is created or migrated; every write fails. */
  readonly readOnly?: boolean
}

/** Writes in a transaction. */
const GROUP = 500
/** Entries asked for together: each may be large. */
const GETS = 50
/** Expired entries that a transaction removes on the way, and how often: in milliseconds. */
const PURGE = 256
const PURGE_EVERY = 1_000

type Changes = ReadonlyArray<StateStore.Change>

interface Name {
  readonly space: string
  readonly key: string
}

type Row = {
  readonly key: string
  readonly value: Buffer
  readonly version: string
  readonly expires_at: string | null
}

const COLUMNS = "key, value, version, expires_at"

const unavailable = (fault: Fault) => new StateStore.StateUnavailable({ reason: fault.message })

const entry = ({ key, value, version, expires_at }: Row): StateStore.Entry => ({
  key,
  value: new Uint8Array(value),
  version: Number(version),
  expiresAt: expires_at === null ? null : Number(expires_at)
})

const nameOf = ({ space, key }: Name) => JSON.stringify([space, key])

/** Whether each is the last of its key. */
const finalsOf = (changes: Changes): ReadonlyArray<boolean> => {
  const last = new Map(changes.map((change, i) => [nameOf(change), i]))
  return changes.map((change, i) => last.get(nameOf(change)) === i)
}

/** Writes by rounds: each is in the first in which none of its keys was touched by an earlier one. */
const roundsOf = (writes: ReadonlyArray<Changes>): ReadonlyArray<ReadonlyArray<number>> => {
  const rounds: Array<Array<number>> = []
  const touched = new Map<string, number>()
  for (const [i, changes] of writes.entries()) {
    const names = changes.map(nameOf)
    const round = names.reduce((latest, name) => Math.max(latest, (touched.get(name) ?? -1) + 1), 0)
    for (const name of names) touched.set(name, round)
    const others = rounds[round]
    if (others === undefined) rounds[round] = [i]
    else others.push(i)
  }
  return rounds
}

const NOTHING = new Uint8Array()

/** On connections to a server that was looked at; others may share them. */
export const makeOn = Effect.fnUntraced(function* (
  connections: Connections.Connections,
  { schema = DEFAULT_SCHEMA, readOnly = false }: PostgresStateStoreOptions
) {
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const { read, write, where } = connections
  yield* migrate(connections, schema, STATE, !readOnly)

  const sql = `SELECT * FROM ${schema}.write_state($1::bigint, $2::integer, $3::integer[], $4::integer[], $5::integer[], $6::text[],
    $7::text[], $8::boolean[], $9::bigint[], $10::bigint[], $11::boolean[], $12::bytea[])`
  let purgedAt = Number.NEGATIVE_INFINITY
  const purges = () => {
    if (now() - purgedAt < PURGE_EVERY && now() >= purgedAt) return 0
    purgedAt = now()
    return PURGE
  }

  const send = (writes: ReadonlyArray<Changes>): Effect.Effect<ReadonlyArray<number | StateStore.StateConflict>, Fault> =>
    Effect.suspend(() => {
      const rounds = roundsOf(writes)
      // As they are sent: round after round
      const order = rounds.flat()
      const sorted = order.map((i) => writes[i] ?? [])
      const all = sorted.flat()
      return Effect.map(
        write<{ versions: ReadonlyArray<string | null>; conflicts: ReadonlyArray<number | null> }>(
          sql,
          now(),
          purges(),
          int4s(rounds.map((round) => round.length)),
          int4s(rounds.map((round) => round.reduce((size, i) => size + (writes[i]?.length ?? 0), 0))),
          int4s(sorted.flatMap((changes, i) => changes.map(() => i + 1))),
          texts(all.map(({ space }) => space)),
          texts(all.map(({ key }) => key)),
          booleans(sorted.flatMap(finalsOf)),
          int8s(all.map(({ expected }) => (expected === undefined ? null : expected === "absent" ? -1 : expected))),
          int8s(all.map((change) => (change._tag === "put" ? (change.expiresAt ?? null) : null))),
          booleans(all.map(({ _tag }) => _tag === "put")),
          bytes(all.map((change) => (change._tag === "put" ? change.value : NOTHING)))
        ),
        ([answer]) => {
          const answers: Array<number | StateStore.StateConflict> = []
          for (const [sent, i] of order.entries()) {
            const version = answer?.versions[sent] ?? undefined
            const { space, key } = all[(answer?.conflicts[sent] ?? 1) - 1] ?? { space: "", key: "" }
            answers[i] = version === undefined ? new StateStore.StateConflict({ space, key }) : Number(version)
          }
          return answers
        }
      )
    })
  const writes = yield* GroupCommit.make({ send, count: GROUP, size: sizeOf })

  const getAll = (names: ReadonlyArray<Name>): Effect.Effect<ReadonlyArray<StateStore.Entry | undefined>, Fault> =>
    Effect.map(
      Effect.suspend(() =>
        read<Row & { readonly i: string }>(
          `SELECT a.i, e.key, e.value, e.version, e.expires_at FROM unnest($1::text[], $2::text[]) WITH ORDINALITY a(space, key, i)
          JOIN ${schema}.entries e ON e.space = a.space AND e.key = a.key WHERE e.expires_at IS NULL OR e.expires_at > $3`,
          texts(names.map(({ space }) => space)),
          texts(names.map(({ key }) => key)),
          now()
        )
      ),
      (rows) => {
        const found = new Map(rows.map((row) => [Number(row.i) - 1, row]))
        return names.map((_, i) => {
          const row = found.get(i)
          return row && entry(row)
        })
      }
    )
  const gets = yield* GroupCommit.make({ send: getAll, lanes: 2, count: GETS })

  return StateStore.StateStore.of({
    get: (space, key) => Effect.mapError(gets({ space, key }), unavailable),
    list: (space, { after, limit = 1_000 } = {}) =>
      Effect.suspend(() =>
        read<Row>(
          `SELECT ${COLUMNS} FROM ${schema}.entries WHERE space = $1 AND ($2::text IS NULL OR key > $2)
          AND (expires_at IS NULL OR expires_at > $3) ORDER BY key LIMIT $4`,
          space,
          after ?? null,
          now(),
          limit
        )
      ).pipe(Effect.mapBoth({ onFailure: unavailable, onSuccess: (rows) => rows.map(entry) })),
    write: (changes) => {
      if (readOnly) return Effect.fail(new StateStore.StateUnavailable({ reason: `${where} was opened read-only` }))
      const unfit = changes.find((change) => !isFit(change))
      if (unfit !== undefined) return Effect.die(new Error(`No change of ${JSON.stringify(unfit.key)} in ${JSON.stringify(unfit.space)}`))
      return Effect.matchEffect(writes(changes), {
        onFailure: (fault) => Effect.fail(unavailable(fault)),
        onSuccess: (answer) => (typeof answer === "number" ? Effect.succeed(answer) : Effect.fail(answer))
      })
    }
  })
})

const isFit = (change: StateStore.Change): boolean =>
  isText(change.space) &&
  isText(change.key) &&
  (typeof change.expected !== "number" || Number.isSafeInteger(change.expected)) &&
  (change._tag === "remove" || change.expiresAt === undefined || Number.isSafeInteger(change.expiresAt))

const sizeOf = (changes: Changes): number => {
  let size = 0
  for (const change of changes) size += change.key.length + (change._tag === "put" ? change.value.length : 0)
  return size
}

export const make = Effect.fnUntraced(function* (options: PostgresStateStoreOptions) {
  const connections = yield* Connections.make(options)
  yield* Server.check(connections, options.readOnly ?? false)
  return yield* makeOn(connections, options)
}, Effect.mapError(unavailable))

export const layer = (options: PostgresStateStoreOptions): Layer.Layer<StateStore.StateStore, StateStore.StateUnavailable> =>
  Layer.effect(StateStore.StateStore, make(options))
