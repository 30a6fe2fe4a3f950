/** A state store in memory. Its content is lost with the process. */
import { Clock, Effect, Layer } from "effect"
import { type Change, type Entry, StateConflict, StateStore } from "./StateStore.ts"

/** Writes between two removals of expired entries. */
const SWEEP = 1_000

/** Compares by code point, as the databases do. This is the order of the UTF-8 bytes; UTF-16 order differs above U+FFFF. */
const byText = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

// Not `slice`, because a Buffer's `slice` shares the bytes
const copy = <E extends Entry | undefined>(entry: E): E => entry && { ...entry, value: new Uint8Array(entry.value) }

export const make = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const spaces = new Map<string, Map<string, Entry>>()
  let version = 0

  const spaceOf = (name: string) => {
    let space = spaces.get(name)
    if (space === undefined) {
      space = new Map()
      spaces.set(name, space)
    }
    return space
  }
  const alive = (entry: Entry | undefined): Entry | undefined =>
    entry === undefined || (entry.expiresAt !== null && entry.expiresAt <= clock.currentTimeMillisUnsafe()) ? undefined : entry
  const isAsExpected = ({ space, key, expected }: Change) =>
    expected === undefined || (alive(spaceOf(space).get(key))?.version ?? "absent") === expected

  const sweep = () => {
    for (const space of spaces.values()) for (const [key, entry] of space) if (alive(entry) === undefined) space.delete(key)
  }

  return StateStore.of({
    get: (space, key) => Effect.sync(() => copy(alive(spaceOf(space).get(key)))),
    list: (space, { after, limit = 1_000 } = {}) =>
      Effect.sync(() =>
        [...spaceOf(space).values()]
          .filter((entry) => (after === undefined || byText(entry.key, after) > 0) && alive(entry) !== undefined)
          .sort((a, b) => byText(a.key, b.key))
          .slice(0, limit)
          .map(copy)
      ),
    write: (changes) =>
      Effect.suspend((): Effect.Effect<number, StateConflict> => {
        const conflict = changes.find((change) => !isAsExpected(change))
        if (conflict !== undefined) return Effect.fail(new StateConflict({ space: conflict.space, key: conflict.key }))
        if (++version % SWEEP === 0) sweep()
        for (const change of changes) {
          if (change._tag === "check") continue
          const space = spaceOf(change.space)
          if (change._tag === "remove") space.delete(change.key)
          else space.set(change.key, { key: change.key, value: new Uint8Array(change.value), version, expiresAt: change.expiresAt ?? null })
        }
        return Effect.succeed(version)
      })
  })
})

export const layer: Layer.Layer<StateStore> = Layer.effect(StateStore, make)
