/**
 * A node in a process of its own is killed and restarted under load while two hosts keep working. No acknowledged event is lost, none is
 * written twice, appends in doubt are settled, and the follower at each host sees each event once. An unhandled rejection of the client
 * library fails this test, because vitest reports it.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { EventStore, Following } from "@millrace/event-sourcing"
import { Effect, Fiber, type Result, Stream } from "effect"
import { expect, it, vi } from "vitest"
import { kill, type Running, start } from "./NodeProcesses.ts"
import { failsafe, freshEvents, freshStream, ids, openOn, patiently, readIds, type Store } from "./Store.ts"

const SNAPSHOT = "factsSnapshot.v1-1"
const CYCLES = 3
const HOSTS = 2
/** Writers at each host. */
const WRITERS = 8
const APPENDS_A_CYCLE = 150

vi.setConfig({ testTimeout: 120_000 })

it("kill -9 under load loses and doubles no event: appends in doubt are settled, and the follower at each of two hosts sees each event once", () =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "millrace-kurrentdb-"))),
      (made) => Effect.sync(() => rmSync(made, { recursive: true }))
    )
    const file = join(folder, "log.jsonl")
    let node: Running = yield* start(file)
    yield* Effect.addFinalizer(() => Effect.suspend(() => kill(node)))
    const { port } = node
    const host = Effect.map(openOn(`kurrentdb://127.0.0.1:${port}?tls=false`, { deadline: 1_000 }), ({ store }) => store)
    const stores = yield* Effect.replicateEffect(host, HOSTS)

    let acknowledged = 0
    let unanswered = 0
    let isOver = false
    const followers = yield* Effect.forEach(stores, (store) =>
      Effect.gen(function* () {
        const seen: Array<string> = []
        let at = EventStore.start
        const take = ({ events }: EventStore.Batch) =>
          Effect.sync(() => {
            seen.push(...ids(events))
            at = events.at(-1)?.position ?? at
          })
        yield* Effect.forkScoped(
          Following.follow(
            () => at,
            take,
            () => {}
          ).pipe(Effect.provideService(EventStore.EventStore, store))
        )
        return seen
      })
    )
    let saved = 0
    const save = (store: Store): Effect.Effect<number> =>
      Effect.suspend(() => {
        if (isOver) return Effect.succeed(saved)
        const revision = ++saved
        return Effect.andThen(
          Effect.ignore(store.saveSnapshot(SNAPSHOT, { revision, data: `[${revision}]` })),
          Effect.delay(save(store), 20)
        )
      })
    /** The ids that were acknowledged to one writer, in order. */
    const write = Effect.fnUntraced(function* (store: Store) {
      const stream = freshStream()
      const written: Array<string> = []
      for (let last: EventStore.ExpectedRevision = "noStream"; !isOver; ) {
        const batch = freshEvents(2)
        for (;;) {
          const answer: Result.Result<EventStore.Appended, { readonly _tag: string }> = yield* Effect.result(
            store.append(stream, last, batch)
          )
          if (answer._tag === "Success") {
            last = answer.success.revision
            break
          }
          // This writer is the only one of its stream
          if (answer.failure._tag === "WrongRevision" || answer.failure._tag === "AppendTooLarge") return yield* Effect.fail(answer.failure)
          unanswered++
          yield* Effect.sleep(10)
        }
        acknowledged++
        written.push(...ids(batch))
      }
      return { stream, written }
    })
    const writers = (yield* Effect.forEach(stores, (store) => Effect.replicateEffect(Effect.forkScoped(write(store)), WRITERS))).flat()
    const savers = yield* Effect.forEach(stores, (store) => Effect.forkScoped(save(store)))
    const reach = (count: number) =>
      failsafe(
        Effect.repeat(
          Effect.andThen(
            Effect.sleep(5),
            Effect.sync(() => acknowledged)
          ),
          { until: (now) => now >= count }
        )
      )

    for (let cycle = 1; cycle <= CYCLES; cycle++) {
      yield* reach(acknowledged + APPENDS_A_CYCLE)
      yield* kill(node)
      node = yield* start(file, port)
    }
    yield* reach(acknowledged + APPENDS_A_CYCLE)
    isOver = true
    const all = yield* Effect.forEach(writers, (writer) => failsafe(Fiber.join(writer)))

    for (const saver of savers) yield* failsafe(Fiber.join(saver))

    expect(unanswered).toBeGreaterThan(0)
    const [store, other] = stores
    if (store === undefined || other === undefined) return
    for (const { stream, written } of all) expect(yield* patiently(readIds(store, stream))).toEqual(written)
    const total = all.flatMap(({ written }) => written)
    expect(total).toHaveLength(acknowledged * 2)
    const log = yield* patiently(Stream.runCollect(store.readAll(EventStore.start)))
    expect(ids(log).toSorted()).toEqual(total.toSorted())
    for (const seen of followers) {
      yield* failsafe(Effect.repeat(Effect.sleep(5), { until: () => Effect.sync(() => seen.length >= log.length) }))
      expect(seen).toEqual(ids(log))
    }
    // The stored snapshot is complete, if not the newest, and a newer one can be saved
    const snapshot = yield* patiently(other.loadSnapshot(SNAPSHOT))
    expect(snapshot?.data).toBe(`[${snapshot?.revision}]`)
    yield* patiently(other.saveSnapshot(SNAPSHOT, { revision: saved + 1, data: "[]" }))
    expect(yield* patiently(store.loadSnapshot(SNAPSHOT))).toEqual({ revision: saved + 1, data: "[]" })
  }).pipe(Effect.scoped, Effect.runPromise))
