import { Schema } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as EventCodec from "../src/EventCodec.ts"

/** Today's events, and how two earlier releases wrote them. */
const Event = Schema.Union([
  Schema.TaggedStruct("Paid", { amount: Schema.Int, currency: Schema.Literals(["EUR", "USD"]), on: Schema.DateFromString }),
  Schema.TaggedStruct("Closed", {})
])
type Event = typeof Event.Type

const upcasts: EventCodec.Upcasts = {
  // Before there were currencies
  PaidEuros: ({ euros, on }) => ({ _tag: "Paid", amount: Number(euros) * 100, currency: "EUR", on }),
  // The type was renamed
  Shut: () => ({ _tag: "Closed" }),
  Broken: () => ({ _tag: "Paid", amount: "not a number" })
}
const codec = EventCodec.make(Event, upcasts)

const events = fc.oneof(
  fc.record({
    _tag: fc.constant("Paid" as const),
    amount: fc.integer(),
    currency: fc.constantFrom("EUR" as const, "USD" as const),
    on: fc.date({ noInvalidDate: true })
  }),
  fc.constant({ _tag: "Closed" as const })
)

test("what was encoded is decoded the same", () => {
  fc.assert(
    fc.property(events, (event) => {
      const { type, data } = codec.encode(event)
      expect(type).toBe(event._tag)
      expect(JSON.parse(data)).not.toHaveProperty("_tag")
      expect(codec.decode(type, data)).toEqual(event)
    })
  )
})

test("the text of an event is what the log has always held", () => {
  const paid: Event = { _tag: "Paid", amount: 5, currency: "EUR", on: new Date(0) }
  expect(codec.encode(paid)).toEqual({ type: "Paid", data: `{"amount":5,"currency":"EUR","on":"1970-01-01T00:00:00.000Z"}` })
  expect(codec.encode({ _tag: "Closed" })).toEqual({ type: "Closed", data: "{}" })
})

test("an event that is not what its schema says is not written", () => {
  expect(() => codec.encode({ _tag: "Paid", amount: 1.5, currency: "EUR", on: new Date(0) })).toThrow()
})

describe("what earlier releases wrote", () => {
  test("is read as today's event", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_000_000 }), (euros) => {
        const data = JSON.stringify({ euros, on: "2020-02-29T00:00:00.000Z" })
        const event: Event = { _tag: "Paid", amount: euros * 100, currency: "EUR", on: new Date("2020-02-29") }
        expect(codec.decode("PaidEuros", data)).toEqual(event)
      })
    )
    expect(codec.decode("Shut", `{"why":"nobody knows"}`)).toEqual({ _tag: "Closed" })
  })

  test("is held to today's schema", () => {
    expect(() => codec.decode("Broken", "{}")).toThrow(EventCodec.UnreadableEvent)
    expect(() => codec.decode("PaidEuros", `{"euros":"many","on":"2020-02-29"}`)).toThrow(EventCodec.UnreadableEvent)
  })
})

test("a type that nobody knows is refused by its name, also one that every object has", () => {
  for (const type of ["Stolen", "paid", "", "__proto__", "toString", "hasOwnProperty"])
    for (const data of ["{}", `{"_tag":"Closed"}`]) {
      expect(() => codec.decode(type, data)).toThrow(EventCodec.UnreadableEvent)
      expect(() => codec.decode(type, data)).toThrow(`${type}:`)
    }
})

test("data is read by the type that stands beside it, not by one within", () => {
  expect(codec.decode("Closed", `{"_tag":"Paid"}`)).toEqual({ _tag: "Closed" })
})

test("data that is no object, no JSON or lacks something is refused", () => {
  for (const data of ["", "{", "null", "1", `"Paid"`, "[]", "{}", `{"amount":1}`, `{"amount":"1","currency":"EUR","on":"2020-02-29"}`])
    expect(() => codec.decode("Paid", data)).toThrow(EventCodec.UnreadableEvent)
})

test("any text for any type is an event or refused, nothing else", () => {
  fc.assert(
    fc.property(fc.constantFrom("Paid", "Closed", "PaidEuros", "Shut", "Else"), fc.oneof(fc.string(), fc.json()), (type, data) => {
      try {
        expect(["Paid", "Closed"]).toContain(codec.decode(type, data)._tag)
      } catch (error) {
        expect(error).toBeInstanceOf(EventCodec.UnreadableEvent)
      }
    })
  )
})
