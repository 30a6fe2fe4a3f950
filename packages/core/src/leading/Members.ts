/**
 * The hosts of a store that lead accounts. Each has a row in the state store, which it writes again every second. A host whose row was
 * seen unchanged four times in a row is gone; no clocks are compared. It is back once its row was seen to change three times without being
 * gone in between, so that a host whose writes are slow or fail now and then does not come and go. While the store does not answer, what was
 * seen last holds.
 */
import { StateStore } from "@millrace/event-sourcing"
import { Clock, Effect, Option, Schema } from "effect"
import * as Address from "./Address.ts"

const SPACE = "cluster"
/** Between two writes of a row, and two reads of all. */
const BEAT = "1 second"
/** The most looks at the rows until those that are unchanged count as left by hosts that are gone, and the time between two. */
const LOOKS = 10
const BETWEEN_LOOKS = "250 millis"
/** The most reads in a row that may find the row of a host unchanged. */
const UNCHANGED = 3
/** The changes of its row after which a host that was gone is back. */
const CHANGES = 3
/** Milliseconds for which the row of a host that was killed is kept. */
const KEPT = 3_600_000

const Row = Schema.fromJsonString(Schema.Struct({ address: Schema.String }))
const encodeRow = Schema.encodeSync(Row)
const decodeRow = Schema.decodeUnknownOption(Row)

/** Another host that is there. */
export interface Member {
  readonly id: string
  readonly address: Address.Address
}

interface Seen {
  readonly version: number
  /** Reads in a row that found the row unchanged. */
  readonly unchanged: number
  /** Changes until the host counts. */
  readonly missing: number
}

/** Writes our row and reads the others' every second, until it is interrupted; then our row is removed. `onMembers` runs after each read. */
export const follow = Effect.fnUntraced(function* (
  self: Member,
  onMembers: (others: ReadonlyArray<Member>) => Effect.Effect<void>
): Effect.fn.Return<never, never, StateStore.StateStore> {
  const store = yield* StateStore.StateStore
  const clock = yield* Clock.Clock
  const value = Buffer.from(encodeRow({ address: Address.format(self.address) }))
  let seen: ReadonlyMap<string, Seen> = new Map()

  const beat = Effect.suspend(() =>
    store.write([{ _tag: "put", space: SPACE, key: self.id, value, expiresAt: clock.currentTimeMillisUnsafe() + KEPT }])
  )
  const read = Effect.flatMap(store.list(SPACE), (rows) => {
    const others = rows.filter(({ key }) => key !== self.id)
    const before = seen
    seen = new Map(others.map((row) => [row.key, sight(before.get(row.key), row)]))
    return onMembers(others.filter(({ key }) => seen.get(key)?.missing === 0).flatMap(memberOf))
  })
  // A store that does not answer is the matter of others, who tell of it
  const round = Effect.andThen(Effect.exit(beat), Effect.exit(read))
  const gone = store.write([{ _tag: "remove", space: SPACE, key: self.id }])
  return yield* Effect.forever(Effect.andThen(round, Effect.sleep(BEAT))).pipe(
    Effect.ensuring(Effect.ignore(Effect.timeout(gone, "1 second")))
  )
})

const sight = (before: Seen | undefined, { version }: StateStore.Entry): Seen => {
  if (before === undefined) return { version, unchanged: 0, missing: 0 }
  if (before.version !== version) return { version, unchanged: 0, missing: Math.max(0, before.missing - 1) }
  const unchanged = before.unchanged + 1
  return { version, unchanged, missing: unchanged > UNCHANGED ? CHANGES : before.missing }
}

/** The hosts that write their rows now: those whose row changes within some seconds. It writes nothing. */
export const present: Effect.Effect<ReadonlyArray<Member>, StateStore.StateUnavailable, StateStore.StateStore> = Effect.gen(function* () {
  const { list } = yield* StateStore.StateStore
  const before = new Map((yield* list(SPACE)).map(({ key, version }) => [key, version]))
  let rows: ReadonlyArray<StateStore.Entry> = []
  for (let look = 0; look < LOOKS && rows.length < before.size; look++) {
    yield* Effect.sleep(BETWEEN_LOOKS)
    rows = (yield* list(SPACE)).filter(({ key, version }) => (before.get(key) ?? version) !== version)
  }
  return rows.flatMap(memberOf)
})

/** None if a later release wrote it in another form. */
const memberOf = ({ key: id, value }: StateStore.Entry): ReadonlyArray<Member> => {
  const address = Option.flatMap(decodeRow(Buffer.from(value).toString()), (row) => Option.fromUndefinedOr(Address.parse(row.address)))
  return Option.toArray(Option.map(address, (address) => ({ id, address })))
}
