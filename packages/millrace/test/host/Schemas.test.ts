/** Schemas of four libraries behave alike in an operation: what they accept, what they say, and what stands in the document. */
import { toStandardJsonSchema } from "@valibot/to-json-schema"
import { type } from "arktype"
import { Effect, Result, Schema } from "effect"
import fc from "fast-check"
import * as v from "valibot"
import { describe, expect, it } from "vitest"
import { z } from "zod"
import * as Schemas from "../../src/host/Schemas.ts"

/** The same object in each library: a name of 2 to 20 characters, and an optional whole number. */
const LIBRARIES: Readonly<Record<string, Schemas.AnySchema>> = {
  zod: z.object({ name: z.string().min(2).max(20), age: z.int().optional() }),
  valibot: toStandardJsonSchema(
    v.object({ name: v.pipe(v.string(), v.minLength(2), v.maxLength(20)), age: v.optional(v.pipe(v.number(), v.integer())) })
  ),
  arktype: type({ name: "2 <= string <= 20", "age?": "number.integer" }),
  effect: Schema.Struct({
    name: Schema.String.check(Schema.isMinCodePoints(2), Schema.isMaxCodePoints(20)),
    age: Schema.optionalKey(Schema.Int)
  })
}

const each = Object.entries(LIBRARIES)
const converted = (schema: Schemas.AnySchema) => Schemas.convert(schema, "input", "the body")
const validate = (schema: Schemas.AnySchema, value: unknown) => Effect.runPromise(Effect.result(converted(schema).validate(value)))

const candidate = fc.record(
  {
    name: fc.oneof(fc.string({ unit: "grapheme-ascii", maxLength: 25 }), fc.integer()),
    age: fc.oneof(fc.integer(), fc.double({ noNaN: true, min: -1e6, max: 1e6 }), fc.string())
  },
  { requiredKeys: [] }
)

describe.each(each)("a schema of %s", (_, schema) => {
  it("accepts what it should, and names the field of each issue", async () => {
    await fc.assert(
      fc.asyncProperty(candidate, async (value) => {
        const isName = typeof value.name === "string" && value.name.length >= 2 && value.name.length <= 20
        const isAge = value.age === undefined || Number.isSafeInteger(value.age)
        const result = await validate(schema, value)
        expect(Result.isSuccess(result)).toBe(isName && isAge)
        if (Result.isFailure(result)) for (const { field } of result.failure) expect(["name", "age"]).toContain(field)
      })
    )
  })

  it("stands in the document by its fields", () => {
    const fields = Schemas.fieldsOf(converted(schema), "the body")
    const { schema: document } = Schema.toJsonSchemaDocument(Schema.Struct(fields))
    expect(document).toMatchObject({
      type: "object",
      properties: { name: { type: "string", minLength: 2, maxLength: 20 }, age: { type: "integer" } },
      required: ["name"]
    })
  })
})

it("reads the texts of a query as the numbers, booleans and lists that its schema names", () => {
  const query = converted(z.object({ n: z.number(), on: z.boolean(), ids: z.array(z.int()), text: z.string() }))
  expect(Schemas.typed(query, { n: "-1.5", on: "true", ids: "7", text: "7" })).toEqual({ n: -1.5, on: true, ids: [7], text: "7" })
  expect(Schemas.typed(query, { n: "1e", on: "yes", ids: ["1", "x"], text: "" })).toEqual({ n: "1e", on: "yes", ids: [1, "x"], text: "" })
})

it("validates by a schema that is async", async () => {
  const schema = z.object({ name: z.string().refine(async (name) => name !== "taken", "is taken") })
  expect(await validate(schema, { name: "taken" })).toMatchObject({ failure: [{ field: "name", message: "is taken" }] })
  expect(await validate(schema, { name: "free" })).toMatchObject({ success: { name: "free" } })
})

it("puts definitions where they are used, and leaves recursive parts open", () => {
  const Tree: z.ZodType = z.object({
    name: z.string(),
    get kids() {
      return z.array(Tree)
    }
  })
  const { jsonSchema } = converted(z.object({ tree: Tree }))
  expect(JSON.stringify(jsonSchema)).not.toContain("$ref")
  expect(jsonSchema).toMatchObject({ properties: { tree: { type: "object", properties: { name: { type: "string" } } } } })
})

describe("a schema that cannot be used", () => {
  it.each([
    [
      "a valibot schema without a converter",
      v.object({ name: v.string() }),
      /cannot be documented.*toStandardJsonSchema of @valibot\/to-json-schema/u
    ],
    ["a type that JSON does not have", z.object({ at: z.date() }), /the body cannot be documented: /u],
    ["no schema at all", { name: "string" }, /the body is not a schema: give one of zod, valibot, arktype or effect/u]
  ])("is refused in a sentence: %s", (_, schema, message) => {
    expect(() => converted(schema as Schemas.AnySchema)).toThrow(message)
  })

  it("must have named fields where a request has fields", () => {
    expect(() => Schemas.fieldsOf(converted(z.string()), "the body")).toThrow("the body must be a schema of an object with named fields")
    expect(() => Schemas.fieldsOf(converted(z.record(z.string(), z.string())), "the body")).toThrow("with named fields")
  })
})
