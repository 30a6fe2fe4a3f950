/**
 * The state store on PostgreSQL: a table beside the log, or in another database, because its entries must be deletable.
 *
 * **What a deletion guarantees.** A removed entry is invisible to every reader at once, also with `shred`. Its bytes remain on the disk,
 * because PostgreSQL never overwrites in place. They stay in the table's file until `VACUUM` has run and the space is reused (`VACUUM FULL`
 * rewrites the file without them), in the write-ahead log until its segments are recycled, and in archives, standbys and backups for as
 * long as these are kept. To destroy a key on the disk itself, keep the state in SQLite, or destroy the master key that wraps it.
 */
import { GroupCommit, StateStore } from "@millrace/event-sourcing"
import { Clock, Effect, Layer } from "effect"
import { booleans, bytes, int4s, int8s, isText, texts } from "./BinaryArrays.ts"
import * as Connections from "./Connections.ts"
import { type Fault, failing } from "./Fault.ts"
import { DEFAULT_SCHEMA, migrate } from "./Migrations.ts"
import * as Server from "./Server.ts"
import { STATE } from "./StateTables.ts"

/** The most writes in a transaction. */
const GROUP = 500
/** The most entries read by one query; each may be large. */
const GETS = 50
/** The most expired entries that a transaction removes, and the least milliseconds between two such transactions. */
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

/** Neither part contains NUL, which the database cannot store. */
const nameOf = ({ space, key }: Name) => `${space}\0${key}`

/** For each change, whether it is the last change of its key. A check, which changes nothing, is never the last. */
const finalsOf = (changes: Changes): ReadonlyArray<boolean> => {
  const last = new Map(changes.flatMap((change, i) => (change._tag === "check" ? [] : [[nameOf(change), i] as const])))
  return changes.map((change, i) => last.get(nameOf(change)) === i)
}

/**
 * Groups writes in rounds. A round changes no key twice, so writes of the same key keep their order. It checks all versions before it changes
 * any, so many writes may check one key in a round, also before that changes it.
 */
const roundsOf = (writes: ReadonlyArray<Changes>): ReadonlyArray<ReadonlyArray<number>> => {
  const rounds: Array<Array<number>> = []
  const changedIn = new Map<string, number>()
  const checkedIn = new Map<string, number>()
  for (const [i, changes] of writes.entries()) {
    const names = changes.map(nameOf)
    const round = names.reduce(
      (latest, name, k) => Math.max(latest, (changedIn.get(name) ?? -1) + 1, changes[k]?._tag === "check" ? 0 : (checkedIn.get(name) ?? 0)),
      0
    )
    for (const [k, name] of names.entries()) {
      const last = changes[k]?._tag === "check" ? checkedIn : changedIn
      last.set(name, Math.max(round, last.get(name) ?? 0))
    }
    const others = rounds[round]
    if (others === undefined) rounds[round] = [i]
    else others.push(i)
  }
  return rounds
}

const NOTHING = new Uint8Array()

/** Makes the store on connections to a checked server; another store may share them. */
export const makeOn = Effect.fnUntraced(function* (
  connections: Connections.Connections,
  { schema = DEFAULT_SCHEMA, readOnly = false }: Server.StoreOptions
) {
  const clock = yield* Clock.Clock
  yield* migrate(connections, schema, STATE, !readOnly)
  const entries = entriesIn(connections, schema, () => clock.currentTimeMillisUnsafe())
  const writes = yield* GroupCommit.make({
    ...failing,
    send: (group: ReadonlyArray<Changes>) => entries.write(group),
    count: GROUP,
    size: sizeOf
  })
  const gets = yield* GroupCommit.make({ ...failing, send: (names: ReadonlyArray<Name>) => entries.getAll(names), count: GETS })

  return StateStore.StateStore.of({
    get: (space, key) => Effect.mapError(gets({ space, key }), unavailable),
    list: (space, { after, limit = 1_000 } = {}) => Effect.mapError(entries.list(space, after, limit), unavailable),
    write: (changes) => {
      if (readOnly) return Effect.fail(new StateStore.StateUnavailable({ reason: `${connections.where} was opened read-only` }))
      const unfit = changes.find((change) => !isFit(change))
      if (unfit !== undefined)
        return Effect.die(new Error(`Invalid change of ${JSON.stringify(unfit.key)} in ${JSON.stringify(unfit.space)}`))
      return Effect.matchEffect(writes(changes), {
        onFailure: (fault) => Effect.fail(unavailable(fault)),
        onSuccess: (answer) => (typeof answer === "number" ? Effect.succeed(answer) : Effect.fail(answer))
      })
    }
  })
})

/** The result of the database function `write_state`: for each write its version, or the conflicting change (counted from 1). */
interface WriteRow {
  readonly [column: string]: unknown
  readonly versions: ReadonlyArray<string | null>
  readonly conflicts: ReadonlyArray<number | null>
}

const statements = (schema: string) => ({
  write: Connections.calling(
    schema,
    "write_state",
    ...["bigint", "integer", "integer[]", "integer[]", "integer[]", "text[]"],
    ...["text[]", "boolean[]", "bigint[]", "bigint[]", "boolean[]", "bytea[]"]
  ),
  getAll: Connections.calling(schema, "get_entries", "text[]", "text[]", "bigint"),
  list: `SELECT ${COLUMNS} FROM ${schema}.entries WHERE space = $1 AND ($2::text IS NULL OR key > $2)
    AND (expires_at IS NULL OR expires_at > $3) ORDER BY key LIMIT $4`
})

/** The parameters of `write_state` except the time: all changes in the order of the rounds. */
const parametersOf = (writes: ReadonlyArray<Changes>, rounds: ReadonlyArray<ReadonlyArray<number>>) => {
  const sorted = rounds.flat().map((i) => writes[i] ?? [])
  const all = sorted.flat()
  return [
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
  ]
}

const answersOf = (writes: ReadonlyArray<Changes>, order: ReadonlyArray<number>, row: WriteRow | undefined) => {
  const all = order.flatMap((i) => writes[i] ?? [])
  const answers: Array<number | StateStore.StateConflict> = []
  for (const [sent, i] of order.entries()) {
    const version = row?.versions[sent] ?? undefined
    const { space, key } = all[(row?.conflicts[sent] ?? 1) - 1] ?? { space: "", key: "" }
    answers[i] = version === undefined ? new StateStore.StateConflict({ space, key }) : Number(version)
  }
  return answers
}

/** The statements on the table of entries. */
const entriesIn = (connections: Connections.Connections, schema: string, now: () => number) => {
  const sql = statements(schema)
  let purgedAt = Number.NEGATIVE_INFINITY

  /** How many expired entries the next transaction may remove. */
  const purges = (): number => {
    if (now() - purgedAt < PURGE_EVERY && now() >= purgedAt) return 0
    purgedAt = now()
    return PURGE
  }

  return {
    /** Sends all writes in one transaction. Each succeeds or conflicts by itself. */
    write: (writes: ReadonlyArray<Changes>): Effect.Effect<ReadonlyArray<number | StateStore.StateConflict>, Fault> =>
      Effect.suspend(() => {
        const rounds = roundsOf(writes)
        const answer = connections.write<WriteRow>(sql.write, now(), purges(), ...parametersOf(writes, rounds))
        return Effect.map(answer, ([row]) => answersOf(writes, rounds.flat(), row))
      }),

    getAll: (names: ReadonlyArray<Name>): Effect.Effect<ReadonlyArray<StateStore.Entry | undefined>, Fault> => {
      const spaces = texts(names.map(({ space }) => space))
      const keys = texts(names.map(({ key }) => key))
      const rows = Effect.suspend(() => connections.read<Row & { readonly i: string }>(sql.getAll, spaces, keys, now()))
      return Effect.map(rows, (all) => {
        const found = new Map(all.map((row) => [Number(row.i) - 1, entry(row)]))
        return names.map((_, i) => found.get(i))
      })
    },

    list: (space: string, after: string | undefined, limit: number): Effect.Effect<ReadonlyArray<StateStore.Entry>, Fault> => {
      const rows = Effect.suspend(() => connections.read<Row>(sql.list, space, after ?? null, now(), limit))
      return Effect.map(rows, (all) => all.map(entry))
    }
  }
}

const isFit = (change: StateStore.Change): boolean =>
  isText(change.space) &&
  isText(change.key) &&
  (typeof change.expected !== "number" || Number.isSafeInteger(change.expected)) &&
  (change._tag !== "put" || change.expiresAt === undefined || Number.isSafeInteger(change.expiresAt))

const sizeOf = (changes: Changes): number => {
  let size = 0
  for (const change of changes) size += change.key.length + (change._tag === "put" ? change.value.length : 0)
  return size
}

export const make = (options: Server.StoreOptions) =>
  Effect.mapError(
    Effect.flatMap(Server.connect(options), (connections) => makeOn(connections, options)),
    unavailable
  )

export const layer = (options: Server.StoreOptions): Layer.Layer<StateStore.StateStore, StateStore.StateUnavailable> =>
  Layer.effect(StateStore.StateStore, make(options))
