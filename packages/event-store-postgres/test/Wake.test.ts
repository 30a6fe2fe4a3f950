/** Notifications: a process holds its own back while others notify. */
import { EventStore } from "@millrace/event-sourcing"
import { PostgresEventStore } from "@millrace/event-store-postgres"
import { Array as Arr, Effect, Stream } from "effect"
import fc from "fast-check"
import { expect, it } from "vitest"
import { heldBack } from "../src/Wake.ts"
import { schema } from "./Postgres.ts"
import { event, until } from "./Writing.ts"

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

it("a notification waits while others are heard, but not for long", () =>
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 80 }), { maxLength: 20 }), random, (pauses, random) => {
      // Another process is heard after each pause. Ours is due from 0 on
      const heard = pauses.map((_, n) => pauses.slice(0, n + 1).reduce((sum, pause) => sum + pause, 0))
      let now = 0
      for (;;) {
        const left = heldBack({ since: 0, heardAt: heard.findLast((at) => at <= now) ?? Number.NEGATIVE_INFINITY, now, random })
        if (left === 0) break
        now += left
      }
      const last = heard.findLast((at) => at <= now)
      if (last === undefined) expect(now).toBe(0)
      else expect(now - last >= 25 || now === 100).toBe(true)
      expect(now).toBeLessThanOrEqual(100)
    })
  ))

it("of several processes that wait at once, one speaks first", () =>
  fc.assert(
    fc.property(random, random, (one, other) => {
      fc.pre(Math.abs(one - other) > 0.01)
      const left = (random: number) => heldBack({ since: 0, heardAt: 0, now: 0, random })
      expect(left(one) - left(other)).toBeCloseTo(25 * (one - other))
    })
  ))

it("the last write of a host is told, though others were heard just before", () =>
  Effect.gen(function* () {
    const options = yield* schema
    const [one, other, reader] = yield* Effect.all(Arr.makeBy(3, () => PostgresEventStore.make(options)))
    if (one === undefined || other === undefined || reader === undefined) return expect.fail("no stores")
    let followed = 0
    const take = ({ events }: EventStore.Batch) =>
      Effect.sync(() => {
        followed += events.length
      })
    yield* Effect.forkScoped(Stream.runForEach(reader.subscribe(EventStore.start), take))
    const waits: Array<number> = []
    for (let n = 0; n < 12; n++) {
      yield* one.append("a-1", EventStore.expectedOf(n - 1), [event()])
      // When the notification of the first is about to be heard
      yield* Effect.sleep(n)
      yield* other.append("a-2", EventStore.expectedOf(n - 1), [event()])
      const began = performance.now()
      yield* until(
        "both are followed",
        Effect.sync(() => followed === 2 * (n + 1))
      )
      waits.push(performance.now() - began)
    }
    // Sooner than the store looks at the end of the log by itself, which is once in a second
    expect(waits.sort((a, b) => a - b)[6]).toBeLessThan(400)
  }).pipe(Effect.scoped, Effect.runPromise))
