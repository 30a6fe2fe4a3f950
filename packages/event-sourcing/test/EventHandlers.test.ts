/** Typed handlers get events of every release in their current form, and no events of other categories or tags. */
import { Effect, Schema } from "effect"
import { describe, expect, test } from "vitest"
import * as Deadlines from "../src/Deadlines.ts"
import * as EventCodec from "../src/EventCodec.ts"
import * as EventHandlers from "../src/EventHandlers.ts"
import { EventStore, position, type RecordedEvent } from "../src/EventStore.ts"
import * as HashChain from "../src/HashChain.ts"
import { toIso } from "../src/Iso.ts"
import * as Projection from "../src/Projection.ts"
import * as Reaction from "../src/Reaction.ts"
import type { StreamName } from "../src/StreamName.ts"
import { settle, testing } from "./Simulated.ts"

const Event = Schema.TaggedUnion({
  Paid: { amount: Schema.Int, note: Schema.optionalKey(Schema.String) },
  Emptied: {},
  Counted: {}
})

const till = {
  category: "till",
  codec: EventCodec.make(Event, {
    // Earlier releases wrote euros, and the note in another field
    PaidEuros: ({ euros, remark }) => ({ _tag: "Paid", amount: Number(euros) * 100, ...(remark === undefined ? {} : { note: remark }) }),
    Closed: () => ({ _tag: "Counted" })
  })
}

const AT = Date.UTC(2026, 0, 1)

const recorded = (type: string, fields: object = {}, stream: StreamName = "till-1", revision = 3): RecordedEvent => ({
  stream,
  revision,
  position: position("p"),
  ...HashChain.seal("hash", stream, revision, { id: "id", type, data: JSON.stringify(fields) }, toIso(AT), "{}")
})

describe("handlers of a category", () => {
  const { dispatch, types, categories } = EventHandlers.of<typeof Event.Type, [by: number], unknown>(till, {
    Paid: ({ amount, note }, { at, id, revision }, by) => ({ amount: amount * by, note, at, id, revision }),
    Emptied: () => "emptied"
  })

  test("get the decoded event, its place and its time", () => {
    expect(dispatch(recorded("Paid", { amount: 5, note: "tip" }), 2)).toEqual({ amount: 10, note: "tip", at: AT, id: "1", revision: 3 })
    expect(dispatch(recorded("Emptied"), 1)).toBe("emptied")
  })

  test("get an event of an earlier release as a current event", () => {
    expect(dispatch(recorded("PaidEuros", { euros: 3, remark: "tip" }), 1)).toMatchObject({ amount: 300, note: "tip" })
  })

  test("get an event that this process decided without parsing it, if their codec encoded it", () => {
    const decided = { codec: till.codec, event: { _tag: "Paid", amount: 7 }, at: AT + 1 }
    const other = { ...decided, codec: EventCodec.make(Event) }
    expect(dispatch({ ...recorded("Paid", { amount: 5 }), decided }, 1)).toMatchObject({ amount: 7, at: AT + 1 })
    expect(dispatch({ ...recorded("Paid", { amount: 5 }), decided: other }, 1)).toMatchObject({ amount: 5 })
  })

  test("are not called for other categories, other tags, or what an upcast makes of them", () => {
    expect(dispatch(recorded("Paid", { amount: 5 }, "shop-1"), 1)).toBeUndefined()
    for (const type of ["Counted", "Closed", "Stolen", "toString"]) expect(dispatch(recorded(type), 1)).toBeUndefined()
  })

  test("select by category and by every type the log may hold", () => {
    expect(categories).toEqual(["till"])
    expect(new Set(types)).toEqual(new Set(["Paid", "Emptied", "PaidEuros", "Closed"]))
  })

  test("throw for an event that cannot be read", () => {
    for (const data of [{ amount: "5" }, {}]) expect(() => dispatch(recorded("Paid", data), 1)).toThrow(EventCodec.UnreadableEvent)
  })
})

describe("a handler of events with a field", () => {
  const { dispatch } = EventHandlers.of<typeof Event.Type, [], unknown>(
    till,
    { Paid: ({ note }) => note, Emptied: () => "emptied" },
    { onlyWith: { Paid: "note" } }
  )

  test("is called for events with the field, also where an earlier release named it differently", () => {
    expect(dispatch(recorded("Paid", { amount: 5, note: "tip" }))).toBe("tip")
    expect(dispatch(recorded("PaidEuros", { euros: 3, remark: "tip" }))).toBe("tip")
    expect(dispatch(recorded("Emptied"))).toBe("emptied")
  })

  test("is not called for other events, which are not parsed", () => {
    expect(dispatch(recorded("Paid", { amount: 5 }))).toBeUndefined()
    expect(dispatch(recorded("PaidEuros", { euros: 3 }))).toBeUndefined()
    expect(dispatch({ ...recorded("Paid"), data: "no JSON" })).toBeUndefined()
  })
})

describe("projections, deadlines and reactions", () => {
  const write = Effect.fnUntraced(function* (...events: ReadonlyArray<RecordedEvent>) {
    const store = yield* EventStore
    for (const { stream, id, type, data, metadata } of events)
      yield* store.append(stream, yield* store.lastRevision(stream), [{ id: `${id} ${type}`, type, data, metadata }])
  })
  const log = [recorded("PaidEuros", { euros: 1 }), recorded("Counted"), recorded("Paid", { amount: 5 }), recorded("Paid", {}, "shop-1")]

  testing(
    "call the handlers for events of earlier releases and of this one",
    Effect.gen(function* () {
      yield* write(...log)
      const sum = yield* Projection.make({
        name: "sum",
        version: 1,
        state: Schema.Int,
        initial: () => 0,
        ...Projection.of<number, typeof Event.Type>(till, { Paid: ({ amount }, _, sum) => sum + amount })
      })
      const { list } = yield* Deadlines.make({
        name: "paid",
        version: 1,
        ...Deadlines.all(
          Deadlines.of(till, { Paid: ({ amount }, { at, id }) => [{ _tag: "set", key: `${id} ${amount}`, dueAt: at + amount }] }),
          Deadlines.of({ ...till, category: "shop" }, {}),
          Deadlines.of(till, { Paid: (_, { at }) => [{ _tag: "set", key: "last", dueAt: at + 1_000 }] })
        ),
        onDue: () => Effect.void
      })
      const noted: Array<number> = []
      yield* Reaction.make({
        name: "noting",
        start: "beginning",
        ...Reaction.of(till, { Paid: ({ amount }) => Effect.sync(() => void noted.push(amount)) })
      })
      yield* settle
      expect((yield* sum.caughtUp()).state).toBe(105)
      expect((yield* list()).map(({ dueAt, key }) => [key, dueAt - AT])).toEqual([
        ["1 5", 5],
        ["1 100", 100],
        ["last", 1_000]
      ])
      expect(noted).toEqual([100, 5])
    })
  )

  testing(
    "do not skip an event that cannot be read: a projection stops, a reaction retries",
    Effect.gen(function* () {
      yield* write(recorded("Paid", { amount: "many" }))
      const { status } = yield* Projection.make({
        name: "sum",
        version: 1,
        state: Schema.Int,
        initial: () => 0,
        ...Projection.of<number, typeof Event.Type>(till, { Paid: ({ amount }, _, sum) => sum + amount })
      })
      const reaction = yield* Reaction.make({ name: "r", start: "beginning", ...Reaction.of(till, { Paid: () => Effect.void }) })
      yield* settle
      expect((yield* status).stopped).toMatchObject({ stream: "till-1", revision: 0 })
      expect((yield* reaction.status).failing).toMatchObject({ stream: "till-1", type: "Paid" })
    })
  )
})
