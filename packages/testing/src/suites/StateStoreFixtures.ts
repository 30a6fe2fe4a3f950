/** Spaces, changes and readers for the contract of state stores. */
import { EventIds, type StateStore } from "@millrace/event-sourcing"
import { Effect } from "effect"
import type { Contract } from "./Contract.ts"

export type Store = StateStore.StateStore["Service"]
export type Changes = readonly [StateStore.Change, ...Array<StateStore.Change>]

/** Tests of one store. */
export type StoreContract = Contract<Store>

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

export const check = (space: string, key: string, expected: number | "absent") =>
  ({ _tag: "check", space, key, expected }) as const satisfies StateStore.Change

/** The keys and texts of all entries that are listed, in turn. */
export const listed = (store: Store, space: string, options?: Parameters<Store["list"]>[1]) =>
  Effect.map(store.list(space, options), (entries) => entries.flatMap((entry) => [entry.key, textOf(entry)]))

export const keysOf = (store: Store, space: string, options?: Parameters<Store["list"]>[1]) =>
  Effect.map(store.list(space, options), (entries) => entries.map(({ key }) => key))

/** Adds one to the number in an entry. Retries when another writer was first. */
export const increment = (store: Store, space: string, key: string): Effect.Effect<number, StateStore.StateUnavailable> =>
  Effect.flatMap(store.get(space, key), (entry) =>
    Effect.catchTag(
      store.write([put(space, key, String(Number(textOf(entry) ?? "0") + 1), { expected: entry?.version ?? "absent" })]),
      "StateConflict",
      () => Effect.andThen(Effect.yieldNow, increment(store, space, key))
    )
  )
