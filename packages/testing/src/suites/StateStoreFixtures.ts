/** Spaces, changes and readers for the contract of state stores. */
import { EventIds, type StateStore } from "@millrace/event-sourcing"
import { Effect, type Scope } from "effect"
import type { Contract } from "./Contract.ts"

export type Store = StateStore.StateStore["Service"]
export type Changes = readonly [StateStore.Change, ...Array<StateStore.Change>]

/** Tests of one store. */
export type StoreContract = Contract<(store: Store) => Effect.Effect<unknown, unknown, Scope.Scope>>

export const freshSpace = Effect.map(EventIds, (ids) => `suite ${ids(0)}`)

export const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text))
export const textOf = (entry: StateStore.Entry | undefined) => entry && Buffer.from(entry.value).toString()

export const put = (
  space: string,
  key: string,
  text: string,
  more: { readonly expected?: number | "absent"; readonly expiresAt?: number } = {}
) => ({ _tag: "put", space, key, value: bytes(text), ...more }) as const satisfies StateStore.Change

export const remove = (space: string, key: string, more: { readonly expected?: number; readonly shred?: boolean } = {}) =>
  ({ _tag: "remove", space, key, ...more }) as const satisfies StateStore.Change

export const pairs = (entries: ReadonlyArray<StateStore.Entry>) => entries.map((entry) => [entry.key, textOf(entry)])

/** One more, kept in an entry, however many others add theirs. */
export const increment = (store: Store, space: string, key: string): Effect.Effect<number, StateStore.StateUnavailable> =>
  Effect.flatMap(store.get(space, key), (entry) =>
    Effect.catchTag(
      store.write([put(space, key, String(Number(textOf(entry) ?? "0") + 1), { expected: entry?.version ?? "absent" })]),
      "StateConflict",
      () => Effect.andThen(Effect.yieldNow, increment(store, space, key))
    )
  )
