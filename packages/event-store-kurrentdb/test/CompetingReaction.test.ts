/** Reactions that compete for events, and what they park. */
import assert from "node:assert/strict"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { EventStore } from "@millrace/event-sourcing"
import { CompetingReaction, KurrentDb } from "@millrace/event-store-kurrentdb"
import { KurrentDbStandIn } from "@millrace/testing/kurrentdb"
import { Effect, type Scope } from "effect"
import { expect, it } from "vitest"
import { fact, failsafe, freshEvents, freshStream, ids, type Opened, openOn } from "./Store.ts"

const until = <A, E, R>(look: Effect.Effect<A, E, R>, is: (found: A) => boolean): Effect.Effect<A, E, R> => {
  const again: Effect.Effect<A, E, R> = Effect.flatMap(look, (found) => (is(found) ? Effect.succeed(found) : Effect.delay(again, 5)))
  return failsafe(again)
}

const on =
  (db: Opened["db"]) =>
  <A, E>(effect: Effect.Effect<A, E, KurrentDb.KurrentDb | Scope.Scope>) =>
    Effect.provideService(effect, KurrentDb.KurrentDb, db)

const reaction = (react: (event: EventStore.RecordedEvent) => Effect.Effect<void, unknown>) =>
  ({ name: "letters", mayPark: true, start: "beginning", categories: ["facts"], types: ["Happened"], react }) as const

fact("each event goes to one of those who compete, and those of no concern to none", ({ db, node, store }) =>
  Effect.gen(function* () {
    const other = yield* openOn(node.url)
    const done: Array<string> = []
    const busy = new Set<string>()
    const react = ({ id }: EventStore.RecordedEvent) =>
      Effect.sync(() => {
        busy.add(id)
        done.push(id)
      })
    const reactions = [yield* on(db)(CompetingReaction.make(reaction(react))), yield* on(other.db)(CompetingReaction.make(reaction(react)))]
    for (const { status } of reactions) yield* until(status, ({ connected }) => connected)
    const batch = freshEvents(100)
    yield* store.append("others-1", "noStream", freshEvents(3))
    yield* store.append(freshStream(), "noStream", [{ ...freshEvents(1)[0], type: "Else" }])
    yield* store.append(freshStream(), "noStream", batch)
    yield* until(
      Effect.sync(() => done.length),
      (count) => count >= 100
    )
    expect(done.toSorted()).toEqual(ids(batch).toSorted())
    for (const { status } of reactions) expect((yield* status).done).toBeGreaterThan(0)
  })
)

fact("what fails again and again is parked, listed, and delivered again when told to", ({ db, store }) =>
  Effect.gen(function* () {
    const [good, bad] = [freshEvents(3), freshEvents(1)]
    const stream = freshStream()
    let isBroken = true
    const attempts: Array<string> = []
    const done: Array<string> = []
    const react = ({ id }: EventStore.RecordedEvent) =>
      Effect.suspend(() => {
        if (id === bad[0].id) attempts.push(id)
        if (id === bad[0].id && isBroken) return Effect.fail("no letter box")
        done.push(id)
        return Effect.void
      })
    yield* store.append(stream, "noStream", [good[0], ...bad, ...good.slice(1)])
    const { status } = yield* on(db)(CompetingReaction.make(reaction(react), { maxRetries: 2 }))
    yield* until(status, ({ connected }) => connected)
    yield* until(on(db)(CompetingReaction.info("letters")), ({ parked }) => parked === 1)
    expect(attempts).toHaveLength(3)
    expect(done.toSorted()).toEqual(ids(good).toSorted())
    expect((yield* status).done).toBe(3)
    const parked = yield* on(db)(CompetingReaction.parked("letters"))
    expect(parked).toEqual([{ ...bad[0], stream, revision: 1 }])

    // Nothing has changed: it is parked again
    yield* on(db)(CompetingReaction.replay("letters"))
    yield* until(
      Effect.sync(() => attempts.length),
      (count) => count === 6
    )
    yield* until(on(db)(CompetingReaction.parked("letters")), (all) => all.length === 1)

    isBroken = false
    yield* on(db)(CompetingReaction.replay("letters"))
    yield* until(
      Effect.sync(() => done.length),
      (count) => count === 4
    )
    expect(yield* on(db)(CompetingReaction.parked("letters"))).toEqual([])
  })
)

fact("a replayed event is done once: it is acknowledged by the id of its link, and nothing is left in flight", ({ db, store }) =>
  Effect.gen(function* () {
    let isBroken = true
    let done = 0
    const react = () =>
      Effect.suspend(() => {
        if (isBroken) return Effect.fail("no letter box")
        done++
        return Effect.void
      })
    yield* store.append(freshStream(), "noStream", freshEvents(1))
    yield* on(db)(CompetingReaction.make(reaction(react), { maxRetries: 0, messageTimeout: 200 }))
    yield* until(Effect.ignore(on(db)(CompetingReaction.info("letters"))), () => true)
    yield* until(on(db)(CompetingReaction.parked("letters")), ({ length }) => length === 1)
    isBroken = false
    yield* on(db)(CompetingReaction.replay("letters"))
    yield* until(
      Effect.sync(() => done),
      (count) => count >= 1
    )
    yield* until(on(db)(CompetingReaction.info("letters")), ({ inFlight }) => inFlight === 0)
    expect(yield* on(db)(CompetingReaction.parked("letters"))).toEqual([])
    expect(done).toBe(1)
  })
)

fact("whatever ends the subscription, or keeps it from beginning, what was not done comes again", ({ db, node, store }) =>
  Effect.gen(function* () {
    let refused = 2
    node.faults.subscribe = () => (refused-- > 0 ? { code: 14, details: "Connection dropped" } : undefined)
    const done = new Set<string>()
    const { status } = yield* on(db)(
      CompetingReaction.make(
        reaction(({ id }) =>
          Effect.delay(
            Effect.sync(() => done.add(id)),
            5
          )
        )
      )
    )
    yield* until(status, ({ connected }) => connected)
    const batch = freshEvents(60)
    yield* store.append(freshStream(), "noStream", batch)
    for (const end of [node.endSubscriptions(13), node.disconnect, node.endSubscriptions(1), node.endSubscriptions(2)]) {
      yield* until(status, ({ connected }) => connected)
      yield* end
      yield* until(status, ({ connected }) => !connected)
      expect((yield* status).trouble?.reason).toBeDefined()
    }
    yield* until(
      Effect.sync(() => done.size),
      (count) => count === 60
    )
    assert.deepEqual([...done].toSorted(), ids(batch).toSorted())
  })
)

it("what was acknowledged right before a node was killed comes again, and is lost never", () =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "millrace-kurrentdb-"))),
      (made) => Effect.sync(() => rmSync(made, { recursive: true }))
    )
    const file = join(folder, "log.jsonl")
    const node = yield* KurrentDbStandIn.serve({ file })
    const { db, store } = yield* openOn(node.url)
    const done: Array<string> = []
    const { status } = yield* on(db)(CompetingReaction.make(reaction(({ id }) => Effect.sync(() => done.push(id)))))
    yield* until(status, ({ connected }) => connected)
    const batch = freshEvents(5)
    yield* store.append(freshStream(), "noStream", batch)
    yield* until(status, (now) => now.done === 5)
    yield* node.kill
    yield* KurrentDbStandIn.serve({ file, port: node.port })
    yield* until(status, (now) => now.done === 10)
    expect(done.toSorted()).toEqual([...ids(batch), ...ids(batch)].toSorted())
  }).pipe(Effect.scoped, Effect.runPromise))

fact("one that takes too long goes to another as well", ({ db, store }) =>
  Effect.gen(function* () {
    let attempts = 0
    const react = () => Effect.suspend(() => (++attempts === 1 ? Effect.never : Effect.void))
    yield* store.append(freshStream(), "noStream", freshEvents(1))
    const { status } = yield* on(db)(CompetingReaction.make(reaction(react), { messageTimeout: 100 }))
    yield* until(status, ({ done }) => done === 1)
    expect(attempts).toBe(2)
  })
)

fact("a group that is not there is told as such", ({ db }) =>
  Effect.gen(function* () {
    expect((yield* on(db)(Effect.flip(CompetingReaction.info("nothing"))))._tag).toBe("NoSuchReaction")
    expect((yield* on(db)(Effect.flip(CompetingReaction.replay("nothing"))))._tag).toBe("NoSuchReaction")
    expect(yield* on(db)(CompetingReaction.parked("nothing"))).toEqual([])
  })
)
