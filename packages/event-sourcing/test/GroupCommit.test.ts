import { GroupCommit } from "@millrace/event-sourcing"
import { Deferred, Effect, Exit, type Scope } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"

interface Request {
  readonly id: number
  readonly key: string
}

/** A group whose transactions end when the test says so. */
interface Sent {
  readonly group: ReadonlyArray<Request>
  readonly end: () => void
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Requests that are sent to a store which the test plays. */
const withGroups = (
  { lanes, gathers }: { readonly lanes: number; readonly gathers?: boolean },
  test: (submit: (request: Request, tell: (exit: Exit.Exit<number>) => void) => void, underWay: Array<Sent>) => Promise<void>
): Promise<void> => {
  const underWay: Array<Sent> = []
  const make: Effect.Effect<(request: Request, tell: (exit: Exit.Exit<number>) => void) => void, never, Scope.Scope> =
    GroupCommit.makeSubmit<Request, number, never>({
      send: (group) =>
        Effect.gen(function* () {
          const done = yield* Deferred.make<void>()
          const sent: Sent = {
            group,
            end: () => {
              underWay.splice(underWay.indexOf(sent), 1)
              Deferred.doneUnsafe(done, Exit.void)
            }
          }
          underWay.push(sent)
          yield* Deferred.await(done)
          return group.map(({ id }) => id)
        }),
      closed: () => undefined as never,
      lanes,
      gathers: gathers ?? false,
      count: 100,
      key: ({ key }) => key,
      isRival: () => false
    })
  return Effect.runPromise(Effect.scoped(Effect.flatMap(make, (submit) => Effect.promise(() => test(submit, underWay)))))
}

const requests = (count: number, from = 0): ReadonlyArray<Request> =>
  Array.from({ length: count }, (_, i) => ({ id: from + i, key: `${from + i}` }))

const sizes = (underWay: ReadonlyArray<Sent>) => underWay.map(({ group }) => group.length)

describe("requests that share transactions", () => {
  it("are each answered once with their own answer, in no more lanes than there are, and in order where they have one key", () =>
    fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 3 }),
        fc.boolean(),
        fc.array(fc.record({ keys: fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 50 }), ends: fc.nat({ max: 3 }) }), {
          minLength: 1,
          maxLength: 12
        }),
        (lanes, gathers, steps) =>
          withGroups({ lanes, gathers }, async (submit, underWay) => {
            const asked: Array<Request> = []
            const answers = new Map<number, Array<Exit.Exit<number>>>()
            const ended: Array<Request> = []
            const end = (sent: Sent | undefined) => {
              ended.push(...(sent?.group ?? []))
              sent?.end()
            }
            for (const { keys, ends } of steps) {
              for (const key of keys) {
                const request = { id: asked.length, key }
                asked.push(request)
                submit(request, (exit) => answers.set(request.id, [...(answers.get(request.id) ?? []), exit]))
              }
              await turn()
              await turn()
              expect(underWay.length).toBeLessThanOrEqual(lanes)
              const busy = underWay.flatMap(({ group }) => group.map(({ key }) => key))
              expect(new Set(busy).size).toBe(busy.length)
              for (let n = 0; n < ends; n++) end(underWay[n % Math.max(1, underWay.length)])
            }
            for (let idle = 0; idle < 6; ) {
              await turn()
              idle = underWay.length === 0 ? idle + 1 : 0
              end(underWay[0])
            }
            for (const { id } of asked) expect(answers.get(id)).toEqual([Exit.succeed(id)])
            for (const key of ["a", "b", "c", "d"]) {
              const order = ended.filter((request) => request.key === key).map(({ id }) => id)
              expect(order).toEqual([...order].sort((x, y) => x - y))
            }
          })
      ),
      { numRuns: 60 }
    ))

  it("are spread over the free lanes if they are many", () =>
    withGroups({ lanes: 2 }, async (submit, underWay) => {
      for (const request of requests(64)) submit(request, () => {})
      await turn()
      await turn()
      expect(sizes(underWay)).toEqual([32, 32])
      for (const request of requests(32, 64)) submit(request, () => {})
      underWay[0]?.end()
      await turn()
      await turn()
      expect(sizes(underWay)).toEqual([32, 32])
    }))

  it("share one lane if they are few", () =>
    withGroups({ lanes: 2 }, async (submit, underWay) => {
      for (const request of requests(20)) submit(request, () => {})
      await turn()
      await turn()
      expect(sizes(underWay)).toEqual([20])
    }))

  it("wait for a larger transaction, and open a lane beside one that is no larger", () =>
    withGroups({ lanes: 2 }, async (submit, underWay) => {
      for (const request of requests(20)) submit(request, () => {})
      await turn()
      for (const request of requests(19, 20)) submit(request, () => {})
      await turn()
      await turn()
      expect(sizes(underWay)).toEqual([20])
      submit({ id: 39, key: "39" }, () => {})
      await turn()
      await turn()
      expect(sizes(underWay)).toEqual([20, 20])
      submit({ id: 40, key: "40" }, () => {})
      underWay[0]?.end()
      underWay[0]?.end()
      await turn()
      await turn()
      expect(sizes(underWay)).toEqual([1])
    }))

  it("are answered by a store that throws, and the next are sent", () =>
    Effect.gen(function* () {
      const bug = new Error("a bug of the store")
      const submit = yield* GroupCommit.make<number, number, never>({
        send: ([first = 0]) => {
          if (first === 0) throw bug
          return Effect.succeed([first])
        },
        closed: () => undefined as never,
        count: 1
      })
      expect(yield* Effect.exit(submit(0))).toEqual(Exit.die(bug))
      expect(yield* submit(1)).toBe(1)
    }).pipe(Effect.scoped, Effect.runPromise))

  it("gather while more arrive in each turn of the event loop, if they are told to", () =>
    withGroups({ lanes: 1, gathers: true }, async (submit, underWay) => {
      for (const request of requests(8)) {
        submit(request, () => {})
        await turn()
        expect(sizes(underWay)).toEqual([])
      }
      await turn()
      await turn()
      expect(sizes(underWay)).toEqual([8])
    }))

  it("gather for some turns at most, and no more than a transaction takes", () =>
    withGroups({ lanes: 1, gathers: true }, async (submit, underWay) => {
      let turns = 0
      for (; underWay.length === 0; turns++) {
        submit({ id: turns, key: `${turns}` }, () => {})
        await turn()
      }
      expect(turns).toBeGreaterThan(8)
      expect(turns).toBeLessThan(24)
      expect(sizes(underWay)).toEqual([turns])
      underWay[0]?.end()
      await turn()
      for (const request of requests(100, turns)) submit(request, () => {})
      await turn()
      expect(sizes(underWay)).toEqual([100])
    }))
})
