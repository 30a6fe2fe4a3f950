/** The accounts in the order in which they were opened, with the time of their newest events: for the operator view, and only where it is. */
import { Account } from "@millrace/core"
import { type EventStore, HashChain, Projection, type StateStore, StreamName } from "@millrace/event-sourcing"
import { Context, Effect, Layer, Schema, SchemaTransformation } from "effect"

/** Times in milliseconds since 1970. */
export interface ListedAccount {
  readonly accountId: string
  readonly openedAt: number
  readonly lastAt: number
}

interface Accounts {
  readonly ids: Array<string>
  readonly times: Map<string, readonly [openedAt: number, lastAt: number]>
}

const Stored = Schema.Array(Schema.Tuple([Schema.String, Schema.Int, Schema.Int]))

const definition: Projection.Definition<Accounts> = {
  name: "operatorAccounts",
  version: 1,
  categories: [Account.Account.category],
  state: Stored.pipe(
    Schema.decodeTo(
      Schema.declare((_): _ is Accounts => true),
      SchemaTransformation.transform({
        decode: (rows: typeof Stored.Type): Accounts => ({
          ids: rows.map(([id]) => id),
          times: new Map(rows.map(([id, openedAt, lastAt]) => [id, [openedAt, lastAt]]))
        }),
        encode: ({ times }: Accounts): typeof Stored.Type =>
          Array.from(times, ([id, [openedAt, lastAt]]) => [id, openedAt, lastAt] as const)
      })
    )
  ),
  initial: () => ({ ids: [], times: new Map() }),
  evolve: (accounts, event) => {
    const id = StreamName.id(event.stream)
    const at = HashChain.timeOf(event)
    const times = accounts.times.get(id)
    if (times === undefined) accounts.ids.push(id)
    accounts.times.set(id, [times?.[0] ?? at, at])
    return accounts
  }
}

/** Stored seldom: with many accounts it is large, and folding an hour anew takes a moment. */
const STORED = { storeEvery: 1_000_000, storeWithin: "1 hour" } as const

export interface Query {
  /** Part of an account's id. */
  readonly part?: string
  /** Where an earlier page said that this one begins. */
  readonly before?: number
  readonly limit: number
}

export interface Page {
  readonly accounts: ReadonlyArray<ListedAccount>
  /** Where the next page begins; null after the last. */
  readonly next: number | null
}

export type Unread = Projection.ProjectionBehind | Projection.ProjectionStopped | EventStore.StoreUnavailable

const make = Effect.gen(function* () {
  const projection = yield* Projection.make(definition, STORED)
  const rowOf = ({ times }: Accounts, accountId: string): ListedAccount | undefined => {
    const found = times.get(accountId)
    return found && { accountId, openedAt: found[0], lastAt: found[1] }
  }
  return {
    /** How many accounts were ever opened. */
    count: Effect.map(projection.caughtUp(), ({ state }) => state.ids.length),
    find: (accountId: string): Effect.Effect<ListedAccount | undefined, Unread> =>
      Effect.map(projection.caughtUp(), ({ state }) => rowOf(state, accountId)),
    /** Accounts, those that were opened last first. */
    page: ({ before, limit, part = "" }: Query): Effect.Effect<Page, Unread> =>
      Effect.map(projection.caughtUp(), ({ state }) => {
        const accounts: Array<ListedAccount> = []
        for (let i = Math.min(before ?? Number.POSITIVE_INFINITY, state.ids.length) - 1; i >= 0; i--) {
          const row = rowOf(state, state.ids[i] ?? "")
          if (row === undefined || !row.accountId.includes(part)) continue
          if (accounts.length === limit) return { accounts, next: i + 1 }
          accounts.push(row)
        }
        return { accounts, next: null }
      }),
    status: projection.status
  }
})

export class AccountList extends Context.Service<AccountList, Effect.Success<typeof make>>()("millrace/operator/AccountList") {
  static readonly layer: Layer.Layer<AccountList, never, EventStore.EventStore | StateStore.StateStore> = Layer.effect(this, make)
}
