/** The contract of event stores: appends that are written only where other streams end as expected. A store that checks no conditions says so. */
import assert from "node:assert/strict"
import { EventStore } from "@millrace/event-sourcing"
import { Effect, Exit } from "effect"
import { atOnce, type Contract, nth } from "./Contract.ts"
import { freshEvents, freshStream, ids, readAllOf, readLog, type Store, type StoreContract } from "./EventStoreFixtures.ts"

const conditionFailed = <E>(exit: Exit.Exit<unknown, E>): EventStore.ConditionFailed => {
  assert(Exit.isFailure(exit), "it was appended")
  const [reason] = exit.cause.reasons
  assert(reason?._tag === "Fail" && reason.error instanceof EventStore.ConditionFailed, `not a ConditionFailed: ${String(exit)}`)
  return reason.error
}

export const conditions: StoreContract = {
  *"appends where all conditions hold, and writes nothing where one does not"(store) {
    if (store.append.isConditional !== true) return
    const [one, other, none, stream] = [yield* freshStream, yield* freshStream, yield* freshStream, yield* freshStream]
    yield* store.append(one, "noStream", yield* freshEvents(1))
    yield* store.append(other, "noStream", yield* freshEvents(3))
    const holding = [
      { stream: one, expected: 0 },
      { stream: other, expected: 2 },
      { stream: none, expected: "noStream" }
    ] as const
    for (const broken of [
      { stream: one, expected: "noStream" },
      { stream: other, expected: 1 },
      { stream: other, expected: 3 },
      { stream: none, expected: 0 }
    ] as const) {
      const all = holding.map((condition) => (condition.stream === broken.stream ? broken : condition))
      const { actual, stream: failed } = conditionFailed(yield* Effect.exit(store.append(stream, "noStream", yield* freshEvents(2), all)))
      assert.deepEqual([failed, actual], [broken.stream, yield* store.lastRevision(broken.stream)])
      assert.equal(yield* store.lastRevision(stream), "noStream")
    }
    const batch = yield* freshEvents(2)
    assert.equal((yield* store.append(stream, "noStream", batch, holding)).revision, 1)
    assert.deepEqual(ids(yield* readAllOf(store, stream)), ids(batch))
  },

  *"refuses among appends at once only those whose condition fails"(store) {
    if (store.append.isConditional !== true) return
    const streams = yield* Effect.replicateEffect(freshStream, 40)
    const [one, other] = [yield* freshStream, yield* freshStream]
    yield* store.append(one, "noStream", yield* freshEvents(1))
    const conditionsOf = (i: number): ReadonlyArray<EventStore.Condition> | undefined =>
      [undefined, [{ stream: one, expected: 0 }], [{ stream: one, expected: "noStream" as const }], [{ stream: other, expected: 5 }]][i % 4]
    const exits = yield* Effect.forEach(
      streams,
      (stream, i) => Effect.exit(Effect.flatMap(freshEvents(1), (batch) => store.append(stream, "noStream", batch, conditionsOf(i)))),
      atOnce
    )
    for (const [i, exit] of exits.entries()) {
      const isWritten = i % 4 < 2
      if (isWritten) assert(Exit.isSuccess(exit), String(exit))
      else assert.equal(conditionFailed(exit).stream, i % 4 === 2 ? one : other)
      assert.equal(yield* store.lastRevision(nth(streams, i)), isWritten ? 0 : "noStream")
    }
  }
}

export const conditionsOfPeers: Contract<readonly [Store, Store]> = {
  *"append only while the condition holds, by the order of the log"([a, b]) {
    if (a.append.isConditional !== true) return
    const premise = yield* freshStream
    const before = yield* a.head
    yield* a.append(premise, "noStream", yield* freshEvents(1))
    let newest = 0
    let isOver = false
    const move = Effect.gen(function* () {
      for (let revision = 0; revision < 40; revision++) {
        yield* Effect.sleep(1)
        yield* a.append(premise, revision, yield* freshEvents(1))
        newest = revision + 1
      }
      isOver = true
    })
    const written: Array<{ readonly expected: number; readonly position: EventStore.Position }> = []
    let refused = 0
    const write = (store: Store) =>
      Effect.gen(function* () {
        while (!isOver) {
          const expected = newest
          const stream = yield* freshStream
          const appended = yield* Effect.exit(store.append(stream, "noStream", yield* freshEvents(1), [{ stream: premise, expected }]))
          if (Exit.isSuccess(appended)) written.push({ expected, position: appended.value.position })
          else {
            assert.equal(conditionFailed(appended).stream, premise)
            refused++
          }
        }
      })
    yield* Effect.all([move, ...Array.from({ length: 8 }, (_, i) => write(i % 2 === 0 ? a : b))], atOnce)
    const moves = yield* readLog(b, before, premise, (events) => events.length === 41)
    for (const { expected, position } of written) {
      assert(position > nth(moves, expected).position, "it is before the event that its condition names")
      assert(expected === 40 || position < nth(moves, expected + 1).position, "it is after the event that ended its condition")
    }
    assert(written.length > 0 && refused > 0, `${written.length} written, ${refused} refused`)
  }
}
