/** A state store that lasts as long as the process. */
import { Clock, Effect, Layer } from "effect"
import { type Change, type Entry, StateConflict, StateStore } from "./StateStore.ts"

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

  return StateStore.of({
    get: (space, key) => Effect.sync(() => alive(spaceOf(space).get(key))),
    list: (space, { after, limit = 1_000 } = {}) =>
      Effect.sync(() =>
        [...spaceOf(space).values()]
          .filter((entry) => (after === undefined || entry.key > after) && alive(entry) !== undefined)
          .sort((a, b) => (a.key < b.key ? -1 : 1))
          .slice(0, limit)
      ),
    write: (changes) =>
      Effect.suspend((): Effect.Effect<number, StateConflict> => {
        const conflict = changes.find((change) => !isAsExpected(change))
        if (conflict !== undefined) return Effect.fail(new StateConflict({ space: conflict.space, key: conflict.key }))
        version++
        for (const change of changes) {
          const space = spaceOf(change.space)
          if (change._tag === "remove") space.delete(change.key)
          else space.set(change.key, { key: change.key, value: change.value.slice(), version, expiresAt: change.expiresAt ?? null })
        }
        return Effect.succeed(version)
      })
  })
})

export const layer: Layer.Layer<StateStore> = Layer.effect(StateStore, make)
