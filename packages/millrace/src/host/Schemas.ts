/**
 * Schemas of other libraries, by [Standard Schema](https://standardschema.dev): zod 4.2, arktype 2.1.28, valibot with
 * `@valibot/to-json-schema`, and Effect's own. The library validates values; its JSON Schema is for the OpenAPI document.
 */
import { Effect, Function, Schema, type StandardSchema } from "effect"
import { Mistake } from "./Given.ts"

// biome-ignore-start lint/suspicious/noExplicitAny: schemas of any type
/** A schema that implements Standard Schema, or one of Effect's. */
export type AnySchema = StandardSchema.StandardSchemaV1<any, any> | Schema.Codec<any, any>

/** What a value may be before it is validated. */
export type InputOf<S> = S extends StandardSchema.StandardSchemaV1<infer I, any> ? I : S extends Schema.Codec<any, infer I> ? I : {}
/** What a validated value is. */
export type OutputOf<S> = S extends StandardSchema.StandardSchemaV1<any, infer O> ? O : S extends Schema.Codec<infer O, any> ? O : {}
/**
 * What a host reads of a value that was stored as JSON. Effect's schemas decode it: a `Date` is a `Date` again. Other libraries cannot turn
 * JSON back into what their schemas made, so a value of theirs is read as its JSON.
 */
export type DataOf<S> = S extends Schema.Codec<infer O, any> ? O : S extends StandardSchema.StandardSchemaV1<any, infer O> ? JsonOf<O> : {}

type Scalar = string | number | boolean | null | undefined

/** A value after `JSON.stringify` and `JSON.parse`: a `Date` is text. What is JSON already keeps its type. */
export type JsonOf<A> = 0 extends 1 & A
  ? A
  : A extends Scalar
    ? A
    : A extends { readonly toJSON: (...args: any) => infer J }
      ? JsonOf<J>
      : A extends ((...args: any) => unknown) | bigint | symbol
        ? never
        : A extends object
          ? { [K in keyof A]: JsonOf<A[K]> }
          : A
// biome-ignore-end lint/suspicious/noExplicitAny: as above

/** Something wrong with a value: `field` is a path such as `items.0.name`, empty for the value itself. */
export interface Issue {
  readonly field: string
  readonly message: string
}

/** A schema in the two forms that an operation needs. */
export interface Converted {
  /** Validates a value, and returns it as the schema's library makes it. */
  readonly validate: (value: unknown) => Effect.Effect<unknown, ReadonlyArray<Issue>>
  readonly jsonSchema: JsonSchema
}

/** A schema of what the work makes: a result or a checkpoint, which is stored as JSON. */
export interface Output extends Converted {
  /** The JSON of a value that was validated, as the JSON Schema documents it. Throws for what is not JSON. */
  readonly encode: (value: unknown) => Schema.Json
  /** Reads the JSON back. Undefined where the JSON is the value. */
  readonly decode: Decode | undefined
}

export type Decode = (json: unknown) => Effect.Effect<unknown, Schema.SchemaError>

export type JsonSchema = { readonly [keyword: string]: unknown }

type Standard = StandardSchema.StandardSchemaV1 & Partial<StandardSchema.StandardJSONSchemaV1>

/** Converts a schema. `where` names it in errors, such as `the body of "text.shout"`. Throws if it cannot be documented. */
export const convert = (schema: AnySchema, side: "input" | "output", where: string): Converted => {
  const standard = standardOf(schema, where)
  const validated = (value: unknown) => standard["~standard"].validate(value)
  return {
    validate: (value) =>
      Effect.flatMap(
        Effect.promise(async () => validated(value)),
        (result) => (result.issues === undefined ? Effect.succeed(result.value) : Effect.fail(result.issues.map(issueOf)))
      ),
    jsonSchema: jsonSchemaOf(standard, side, where)
  }
}

/** Converts the schema of what the work makes. Throws as {@link convert} does. */
export const output = (schema: AnySchema, where: string): Output => {
  const codec = Schema.isSchema(schema) ? codecOf(schema as Schema.Codec<unknown>) : undefined
  const encoded = codec === undefined ? Function.identity : Schema.encodeUnknownSync(codec)
  return {
    ...convert(schema, "output", where),
    // The round trip drops what JSON has not, such as fields that are undefined
    encode: (value) => JSON.parse(JSON.stringify(encoded(value))),
    decode: codec && Schema.decodeUnknownEffect(codec)
  }
}

/**
 * Between what an Effect schema makes and its JSON. It has none of the schema's own transformations, which ran when the value was validated.
 * Undefined where the two are the same.
 */
const codecOf = (schema: Schema.Codec<unknown>): Schema.Codec<unknown, Schema.Json> | undefined => {
  const made = Schema.toType(schema)
  const codec = Schema.toCodecJson(made)
  return codec.ast === made.ast ? undefined : codec
}

const standardOf = (schema: AnySchema, where: string): Standard => {
  if (Schema.isSchema(schema)) {
    const codec = schema as Schema.Codec<unknown>
    return Object.assign({}, Schema.toStandardSchemaV1(codec), {
      "~standard": { ...Schema.toStandardSchemaV1(codec)["~standard"], ...Schema.toStandardJSONSchemaV1(codec)["~standard"] }
    }) as Standard
  }
  const given: unknown = schema
  if ((typeof given !== "object" && typeof given !== "function") || given === null || !("~standard" in given))
    throw new Mistake(`${where} is not a schema: give one of zod, valibot, arktype or effect, or any other that implements Standard Schema`)
  return given as Standard
}

const HINTS: Readonly<Record<string, string>> = {
  zod: "zod has one since 4.2",
  arktype: "arktype has one since 2.1.28",
  valibot: "wrap the schema by toStandardJsonSchema of @valibot/to-json-schema"
}

const jsonSchemaOf = (schema: Standard, side: "input" | "output", where: string): JsonSchema => {
  const { jsonSchema, vendor } = schema["~standard"]
  if (jsonSchema === undefined)
    throw new Mistake(`${where} cannot be documented: ${vendor} gives no JSON Schema${HINTS[vendor] ? `; ${HINTS[vendor]}` : ""}`)
  try {
    const { $schema, $defs, ...rest } = jsonSchema[side]({ target: "draft-2020-12" })
    return inlined(rest, $defs as JsonSchema | undefined, []) as JsonSchema
  } catch (error) {
    throw new Mistake(`${where} cannot be documented: ${error instanceof Error ? error.message : String(error)}`)
  }
}

const LOCAL = "#/$defs/"

/** The schema without references to its own definitions. A recursive part accepts anything in the document; it is validated all the same. */
const inlined = (schema: unknown, definitions: JsonSchema = {}, within: ReadonlyArray<string>): unknown => {
  if (Array.isArray(schema)) return schema.map((item) => inlined(item, definitions, within))
  if (typeof schema !== "object" || schema === null) return schema
  const { $ref, ...rest } = schema as JsonSchema
  const own = Object.fromEntries(Object.entries(rest).map(([keyword, value]) => [keyword, inlined(value, definitions, within)]))
  if (typeof $ref !== "string" || !$ref.startsWith(LOCAL)) return $ref === undefined ? own : { ...own, $ref }
  const name = $ref.slice(LOCAL.length)
  if (within.includes(name)) return own
  return { ...(inlined(definitions[name], definitions, [...within, name]) as JsonSchema), ...own }
}

const issueOf = ({ message, path = [] }: StandardSchema.StandardSchemaV1.Issue): Issue => ({
  field: path.map((key) => String(typeof key === "object" ? key.key : key)).join("."),
  message
})

/** A schema of Millrace's that accepts any JSON and stands in the document as `jsonSchema`. */
export const documented = (jsonSchema: JsonSchema): Schema.Codec<Schema.Json> =>
  Schema.Json.check(Schema.makeFilter(() => true, { toJsonSchema: () => jsonSchema }))

/** The fields of an object, for a route. */
export const fieldsOf = ({ jsonSchema }: Converted, where: string): Schema.Struct.Fields => {
  const {
    properties,
    required = [],
    type
  } = jsonSchema as { properties?: Record<string, JsonSchema>; required?: Array<string>; type?: string }
  if (type !== "object" || properties === undefined) throw new Mistake(`${where} must be a schema of an object with named fields`)
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => {
      const field = documented(property)
      return [name, required.includes(name) ? field : Schema.optionalKey(field)]
    })
  )
}

/** Reads the texts of a path or a query as the types that the schema names: numbers, booleans, and lists of them. */
export const typed = ({ jsonSchema }: Converted, input: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  const properties = (jsonSchema["properties"] ?? {}) as Record<string, JsonSchema>
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [name, valueOf(properties[name] ?? {}, value)]))
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/u

const valueOf = (schema: JsonSchema, value: unknown): unknown => {
  const { items = {}, type } = schema
  if (type === "array" && value !== undefined)
    return (Array.isArray(value) ? value : [value]).map((item) => valueOf(items as JsonSchema, item))
  if (typeof value !== "string") return value
  if ((type === "number" || type === "integer") && NUMBER.test(value)) return Number(value)
  if (type === "boolean" && (value === "true" || value === "false")) return value === "true"
  return value
}
