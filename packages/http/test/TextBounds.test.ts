/** JSON Schema counts the length of a text in Unicode code points, and so do all operations. */
import { Schema } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { Api } from "../src/index.ts"

interface JsonSchema {
  readonly type?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly items?: JsonSchema
  readonly allOf?: ReadonlyArray<JsonSchema>
}

interface Field {
  readonly name: string
  readonly minLength: number
  readonly maxLength: number
  readonly accepts: (text: string) => boolean
}

/** The bounds of a text, wherever in the schema they stand. */
const boundsOf = (schema: JsonSchema): { readonly minLength: number; readonly maxLength: number } => {
  const all = [schema, ...(schema.allOf ?? [])]
  return {
    minLength: Math.max(...all.map(({ minLength = 0 }) => minLength)),
    maxLength: Math.min(...all.map(({ maxLength = Number.POSITIVE_INFINITY }) => maxLength))
  }
}

const { operations } = Api.make(Api.standard)

const fieldsOf = ({ key, route }: (typeof operations)[number]): ReadonlyArray<Field> =>
  Object.entries<Schema.Codec<unknown, unknown>>({ ...route.params, ...route.query, ...route.body }).flatMap(([name, schema]) => {
    const document: JsonSchema = Schema.toJsonSchemaDocument(schema).schema
    const isList = document.type === "array"
    const bounds = boundsOf(isList ? (document.items ?? {}) : document)
    const is = Schema.is(schema)
    return bounds.maxLength === Number.POSITIVE_INFINITY
      ? []
      : [{ name: `${key} ${name}`, ...bounds, accepts: (text: string) => is(isList ? [text] : text) }]
  })

const fields = operations.flatMap(fieldsOf)

describe("the length limits of texts", () => {
  test("cover all fields that publish one", () => {
    expect(fields.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["grammar.check text", "email.validateBatch emails", "speech.synthesize text", "image.generate prompt"])
    )
    expect(fields.length).toBeGreaterThan(12)
  })

  test.each(fields)("of $name count code points", ({ minLength, maxLength, accepts }) => {
    const character = fc.constantFrom("😀", "𝕋", "a", "é", "\u{10ffff}")
    const ofLength = (length: number) =>
      fc.array(character, { minLength: 1, maxLength: 8 }).map((some) => Array.from({ length }, (_, i) => some[i % some.length]).join(""))
    fc.assert(
      fc.property(ofLength(maxLength), ofLength(maxLength + 1), ofLength(minLength), (longest, tooLong, shortest) => {
        expect([accepts(longest), accepts(tooLong), accepts(shortest)]).toEqual([true, false, true])
      }),
      { numRuns: 20 }
    )
  })
})
