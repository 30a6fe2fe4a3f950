import { Schema } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import * as EventCodec from "../src/EventCodec.ts"

/** The current events, and their form in two earlier releases. */
const Event = Schema.Union([
  Schema.TaggedStruct("Paid", { amount: Schema.Int, currency: Schema.Literals(["EUR", "USD"]), on: Schema.DateFromString }),
  Schema.TaggedStruct("Closed", {})
])
type Event = typeof Event.Type

const upcasts: EventCodec.Upcasts = {
  // Written before currencies existed
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

test("decoding returns the event that was encoded", () => {
  fc.assert(
    fc.property(events, (event) => {
      const { type, data } = codec.encode(event)
      expect(type).toBe(event._tag)
      expect(JSON.parse(data)).not.toHaveProperty("_tag")
      expect(codec.decode(type, data)).toEqual(event)
    })
  )
})

test("the encoded text of an event never changes", () => {
  const paid: Event = { _tag: "Paid", amount: 5, currency: "EUR", on: new Date(0) }
  expect(codec.encode(paid)).toEqual({ type: "Paid", data: `{"amount":5,"currency":"EUR","on":"1970-01-01T00:00:00.000Z"}` })
  expect(codec.encode({ _tag: "Closed" })).toEqual({ type: "Closed", data: "{}" })
})

test("an event that does not match its schema is not encoded", () => {
  expect(() => codec.encode({ _tag: "Paid", amount: 1.5, currency: "EUR", on: new Date(0) })).toThrow()
})

describe("an event of an earlier release", () => {
  test("is decoded as a current event", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_000_000 }), (euros) => {
        const data = JSON.stringify({ euros, on: "2020-02-29T00:00:00.000Z" })
        const event: Event = { _tag: "Paid", amount: euros * 100, currency: "EUR", on: new Date("2020-02-29") }
        expect(codec.decode("PaidEuros", data)).toEqual(event)
      })
    )
    expect(codec.decode("Shut", `{"why":"nobody knows"}`)).toEqual({ _tag: "Closed" })
  })

  test("must match the current schema after its upcast", () => {
    expect(() => codec.decode("Broken", "{}")).toThrow(EventCodec.UnreadableEvent)
    expect(() => codec.decode("PaidEuros", `{"euros":"many","on":"2020-02-29"}`)).toThrow(EventCodec.UnreadableEvent)
  })
})

test("an unknown type is refused by its name, even the name of a property of every object", () => {
  for (const type of ["Stolen", "paid", "", "__proto__", "toString", "hasOwnProperty"])
    for (const data of ["{}", `{"_tag":"Closed"}`]) {
      expect(() => codec.decode(type, data)).toThrow(EventCodec.UnreadableEvent)
      expect(() => codec.decode(type, data)).toThrow(`${type}:`)
    }
})

test("data is decoded by the recorded type, not by a tag inside the data", () => {
  expect(codec.decode("Closed", `{"_tag":"Paid"}`)).toEqual({ _tag: "Closed" })
})

test("data that is not JSON, not an object, or incomplete is refused", () => {
  for (const data of ["", "{", "null", "1", `"Paid"`, "[]", "{}", `{"amount":1}`, `{"amount":"1","currency":"EUR","on":"2020-02-29"}`])
    expect(() => codec.decode("Paid", data)).toThrow(EventCodec.UnreadableEvent)
})

const written = events.map((event) => codec.encode(event).data)

test("any text of any type is decoded or refused as UnreadableEvent, in two steps as in one", () => {
  fc.assert(
    fc.property(fc.constantFrom("Paid", "Closed", "PaidEuros", "Shut", "Else"), fc.oneof(fc.string(), fc.json(), written), (type, data) => {
      const stepwise = codec.decodeParsed(type, EventCodec.parse(data))
      try {
        const event = codec.decode(type, data)
        expect(["Paid", "Closed"]).toContain(event._tag)
        expect(stepwise).toEqual(event)
      } catch (error) {
        expect(error).toBeInstanceOf(EventCodec.UnreadableEvent)
        expect(stepwise).toEqual(error)
      }
    })
  )
})
