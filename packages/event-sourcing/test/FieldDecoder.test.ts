import { Effect, Schema, SchemaGetter } from "effect"
import fc from "fast-check"
import { describe, expect, test, vi } from "vitest"
import * as FieldDecoder from "../src/FieldDecoder.ts"

type Tagged = { readonly _tag: string }
type Events = Schema.Codec<Tagged, Tagged>

const Day = Schema.DateFromString
const Lowercase = Schema.String.pipe(
  Schema.decodeTo(Schema.String, {
    decode: SchemaGetter.transform((text: string) => text.toLowerCase()),
    encode: SchemaGetter.passthrough()
  })
)

/** Leaves nothing of short texts. */
const shortened = {
  decode: SchemaGetter.transform((text: string) => text.slice(8)),
  encode: SchemaGetter.passthrough<string>()
}

const Called = Schema.TaggedStruct("Timed", {
  text: Schema.String.pipe(
    Schema.decodeTo(Schema.String, {
      decode: SchemaGetter.transform((text: string) => `${text}!`),
      encode: SchemaGetter.passthrough()
    })
  )
})

/** Schemas that transform a field, a nested field, a missing field, a field's name, or the whole. */
const schemas: Readonly<Record<string, Events>> = {
  "a union": Schema.Union([
    Schema.TaggedStruct("Plain", { text: Schema.String, amount: Schema.optionalKey(Schema.Int) }),
    Schema.TaggedStruct("Timed", { on: Day, until: Schema.optionalKey(Day), text: Lowercase }),
    Schema.TaggedStruct("Deep", { days: Schema.Array(Schema.Struct({ on: Day })), until: Schema.NullOr(Day) }),
    Schema.TaggedStruct("Other", {})
  ]),
  "numbers in a range": Schema.TaggedStruct("Plain", {
    amount: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10 })),
    at: Schema.optionalKey(Schema.Number.check(Schema.isBetween({ minimum: -1, maximum: 10 })))
  }),
  "numbers below a bound": Schema.TaggedStruct("Plain", {
    amount: Schema.Number.check(Schema.isBetween({ minimum: -1, maximum: 10, exclusiveMaximum: true }))
  }),
  "numbers with other checks": Schema.TaggedStruct("Plain", {
    amount: Schema.Int.check(Schema.makeFilter((n) => n !== 10 || "expected something else")),
    at: Schema.optionalKey(Schema.Finite)
  }),
  "choices, and what may be null": Schema.TaggedStruct("Plain", {
    text: Schema.Literals(["", "nothing", "SOME text"]),
    amount: Schema.NullOr(Schema.Int),
    on: Schema.optionalKey(Schema.Union([Schema.Boolean, Schema.Null, Schema.Literals([10, "nothing"])])),
    until: Schema.optionalKey(Schema.UndefinedOr(Schema.String)),
    days: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.Struct({ on: Schema.String }))))
  }),
  "structs and lists within": Schema.TaggedStruct("Plain", {
    days: Schema.Array(Schema.Struct({ on: Schema.String, at: Schema.optionalKey(Schema.Int) })),
    until: Schema.optionalKey(Schema.Array(Schema.Array(Schema.Int))),
    on: Schema.optionalKey(Schema.Struct({ on: Schema.optionalKey(Schema.NullOr(Schema.Int)), at: Schema.Int }))
  }),
  "what may be missing before what may not": Schema.TaggedStruct("Timed", {
    until: Schema.optionalKey(Day),
    on: Day,
    at: Schema.optionalKey(Schema.String),
    text: Schema.String
  }),
  "anything that is there": Schema.TaggedStruct("Plain", { on: Schema.Unknown, text: Schema.Undefined.pipe(Schema.optionalKey) }),
  "one struct": Schema.TaggedStruct("Timed", { on: Schema.optionalKey(Day), text: Schema.optional(Lowercase) }),
  "fields that may all be missing": Schema.TaggedStruct("Timed", { until: Schema.optionalKey(Day) }),
  "a default": Schema.TaggedStruct("Timed", {
    on: Day,
    text: Lowercase.pipe(Schema.withDecodingDefaultKey(Effect.succeed("NOTHING")))
  }),
  "what comes of nothing, where there may be nothing": Schema.TaggedStruct("Timed", {
    text: Schema.optionalKey(Schema.String).pipe(
      Schema.decodeTo(Schema.optionalKey(Schema.String), {
        decode: SchemaGetter.withDefault(Effect.succeed("nothing")),
        encode: SchemaGetter.passthrough()
      })
    ),
    on: Schema.optionalKey(Day)
  }),
  "two of one tag": Schema.Union([
    Schema.TaggedStruct("Timed", { on: Schema.String, amount: Schema.Int }),
    Schema.TaggedStruct("Timed", { on: Schema.Union([Day, Schema.String]), text: Lowercase })
  ]),
  "one of any tag before": Schema.Union([
    Schema.Struct({ _tag: Schema.String, text: Schema.String }),
    Schema.TaggedStruct("Timed", { text: Lowercase })
  ]),
  "fields of any name": Schema.StructWithRest(Schema.TaggedStruct("Timed", { text: Lowercase }), [Schema.Record(Schema.String, Lowercase)]),
  "a check of the whole": Schema.TaggedStruct("Timed", { on: Day, text: Schema.String }).check(
    Schema.makeFilter(({ on, text }) => on.toISOString().startsWith(text) || "expected the same day twice")
  ),
  "a check of a whole union": Schema.Union([
    Schema.TaggedStruct("Timed", { on: Day, text: Schema.String }),
    Schema.TaggedStruct("Other", { text: Schema.optionalKey(Schema.String) })
  ]).check(Schema.makeFilter(({ text }) => text !== "nothing" || "expected something")),
  "texts that are checked before": Schema.TaggedStruct("Timed", {
    text: Schema.String.check(Schema.isMinLength(8)).pipe(Schema.decodeTo(Schema.String, shortened))
  }),
  "texts that are checked afterwards": Schema.TaggedStruct("Timed", {
    text: Schema.String.pipe(Schema.decodeTo(Schema.String.check(Schema.isMinLength(1)), shortened))
  }),
  "texts that are transformed twice": Schema.TaggedStruct("Timed", {
    text: Lowercase.pipe(Schema.decodeTo(Schema.String, shortened)),
    on: Schema.String.pipe(Schema.decodeTo(Lowercase, shortened))
  }),
  "a transformation that throws": Schema.TaggedStruct("Timed", {
    text: Schema.String.pipe(
      Schema.decodeTo(Schema.Finite, {
        decode: SchemaGetter.transform((text: string) => {
          if (text === "") throw new Error("nothing to measure")
          return text.length
        }),
        encode: SchemaGetter.transform(String)
      })
    ),
    on: Schema.optionalKey(Schema.String)
  }),
  "a check of the whole as it is written": Schema.flip(
    Schema.TaggedStruct("Timed", { on: Schema.flip(Day), text: Schema.String }).check(
      Schema.makeFilter(({ on, text }) => on.startsWith(text) || "expected the same day twice")
    )
  ),
  "other names": Schema.TaggedStruct("Timed", { at: Day, text: Lowercase }).pipe(Schema.encodeKeys({ at: "on" })),
  "a union that is decoded twice": Schema.Union([Called, Schema.TaggedStruct("Other", {})]).pipe(
    Schema.decodeTo(Schema.Union([Schema.TaggedStruct("Timed", { text: Lowercase }), Schema.TaggedStruct("Other", {})]))
  ),
  "a struct that is decoded twice": Schema.Union([
    Called.pipe(Schema.decodeTo(Schema.TaggedStruct("Timed", { text: Lowercase }))),
    Schema.TaggedStruct("Other", {})
  ])
}

const text = fc.constantFrom("", "2026-01-31", "2026-01-31T00:00:00.000Z", "SOME text", "nothing")
const number = fc.constantFrom(-2, -1, -0, 0, 1.5, 10, 10.5, 11, 2 ** 53)
const struct = fc.record({ on: fc.oneof(text, number, fc.constant(null)), at: number, other: text }, { requiredKeys: [] })
const days = fc.array(fc.record({ on: text }))
const list = fc.array(fc.oneof(struct, fc.array(number)))
const field = fc.oneof(text, number, fc.integer(), fc.constantFrom(null, true, false), struct, days, list)
/** Mostly of this form. */
const mostly = (form: fc.Arbitrary<unknown>) => fc.oneof({ weight: 4, arbitrary: form }, { weight: 1, arbitrary: field })
const fields = {
  text: mostly(text),
  amount: mostly(number),
  on: mostly(fc.oneof(text, number)),
  until: mostly(text),
  days: mostly(fc.oneof(days, fc.array(struct))),
  at: mostly(fc.oneof(text, number))
}
const encoded = fc
  .tuple(
    fc.constantFrom("Plain", "Timed", "Deep", "Other", "None", "toString"),
    fc.oneof({ weight: 20, arbitrary: fc.record(fields, { requiredKeys: [] }) }, { weight: 1, arbitrary: fc.array(text) })
  )
  // As JSON.parse returns it
  .map(([_tag, event]): Tagged => Object.assign(JSON.parse(JSON.stringify(event)), { _tag }))

const outcome = (decode: (encoded: Tagged) => Tagged, event: Tagged) => {
  try {
    return { event: decode(event) }
  } catch (error) {
    return { refusal: error instanceof Error ? error.message : error }
  }
}

describe("a field decoder decodes or refuses an event exactly as its schema does", () => {
  test.each(Object.entries(schemas))("%s", (_, schema) => {
    const { decode, decodeFields } = FieldDecoder.make(schema)
    const asSaid = Schema.decodeUnknownSync(schema)
    let decoded = 0
    fc.assert(
      fc.property(encoded, (event) => {
        const before = structuredClone(event)
        const due = outcome(asSaid, event)
        expect(outcome(decode, event)).toStrictEqual(due)
        expect(event).toStrictEqual(before)
        if (due.event === undefined) return
        decoded++
        // An event in the log is text: its fields have an order
        expect(JSON.stringify(decode(event))).toBe(JSON.stringify(due.event))
        const { _tag, ...fields } = event
        expect([due.event, undefined]).toContainEqual(decodeFields(_tag, { ...fields, _tag: "Closed" }))
      }),
      { numRuns: 2_000 }
    )
    expect(decoded).toBeGreaterThan(0)
  })
})

test("code that is made from text decodes events of the usual forms, and nothing depends on it", () => {
  const schema = schemas["a union"]
  if (schema === undefined) throw new Error("No schema")
  const fields = { text: "some", amount: 5, more: 1 }
  const event = { _tag: "Plain", text: "some", amount: 5 }
  expect(FieldDecoder.make(schema).decodeFields("Plain", fields)).toStrictEqual(event)
  vi.stubGlobal("Function", () => {
    throw new EvalError("Code generation from strings disallowed for this context")
  })
  const { decode, decodeFields } = FieldDecoder.make(schema)
  const [byFields, bySchema] = [decodeFields("Plain", fields), decode({ _tag: "Plain", ...fields })]
  vi.unstubAllGlobals()
  expect(byFields).toBeUndefined()
  expect(bySchema).toStrictEqual(event)
})

test("what is no struct, or has fields of an object's prototype, is as the schema says", () => {
  const schema = Schema.TaggedStruct("Plain", { toString: Schema.optionalKey(Schema.String), constructor: Schema.optionalKey(Schema.Int) })
  const { decode, decodeFields } = FieldDecoder.make(schema)
  for (const text of ["null", "5", "[]", "{}", `"text"`, `{"__proto__":{"constructor":5}}`, `{"constructor":5}`]) {
    const fields = JSON.parse(text)
    const event = Object.assign(Object(fields ?? {}), { _tag: "Plain" })
    const due = outcome(Schema.decodeUnknownSync(schema), event)
    expect(outcome(decode, event)).toStrictEqual(due)
    expect([due.event, undefined]).toContainEqual(decodeFields("Plain", fields))
  }
})
