/**
 * A fast decoder for tagged structs. A schema that only checks compiles to one function (`SchemaJITCompiler`). A schema that transforms a
 * field, such as a time, does not. So the transformed fields are decoded first, one by one, and then the compiled check runs on the result.
 * If anything fails, the schema decodes the original value, so that results and errors are always those of the schema.
 */
import { Schema, SchemaAST } from "effect"
import * as SchemaJITCompiler from "effect/schema/SchemaJITCompiler"

interface Tagged {
  readonly _tag: string
}

/** Decoders of the transformed fields, by name. */
type Fields = ReadonlyArray<readonly [name: string, decode: (value: unknown) => unknown]>

/** Returns a decoder with the results of `Schema.decodeUnknownSync`. It is faster for structs with a tag. */
export const make = <Event extends Tagged>(schema: Schema.Codec<Event, Tagged>): ((encoded: Tagged) => Event) => {
  const decode = Schema.decodeUnknownSync(schema)
  const type = Schema.toType(schema)
  SchemaJITCompiler.enable(schema.ast)
  SchemaJITCompiler.enable(type.ast)
  const check = Schema.decodeUnknownSync(type)
  const fieldsOf = changingFields(schema.ast)
  return (encoded) => {
    const fields = fieldsOf.get(encoded._tag)
    if (fields === undefined || Array.isArray(encoded)) return decode(encoded)
    try {
      const event: Record<string, unknown> = { ...encoded }
      for (const [name, decodeField] of fields) if (Object.hasOwn(event, name)) event[name] = decodeField(event[name])
      return check(event)
    } catch {
      return decode(encoded)
    }
  }
}

/** Keeps the last result. Events that are decided together have the same times, and decoding one costs more than the rest of its event. */
const remembering = (decode: (value: unknown) => unknown): ((value: unknown) => unknown) => {
  let last: unknown = {}
  let decoded: unknown
  return (value) => {
    if (Object.is(value, last)) return decoded
    const result = decode(value)
    // An object may be changed by whoever has it
    if (isUnchanging(value) && isUnchanging(result)) {
      last = value
      decoded = result
    }
    return result
  }
}

const isUnchanging = (value: unknown): boolean => typeof value === "string" || typeof value === "number"

/** The transformed fields by tag. Empty if the tag does not determine the decoding. */
const changingFields = (ast: SchemaAST.AST): ReadonlyMap<string, Fields> => {
  const fieldsOf = new Map<string, Fields>()
  if (!isPlain(ast)) return fieldsOf
  const tags = new Set<string>()
  for (const member of SchemaAST.isUnion(ast) ? ast.types : [ast]) {
    const tag = tagOf(member)
    if (tag === undefined || tags.has(tag)) return new Map()
    tags.add(tag)
    const changing = SchemaAST.isObjects(member) ? member.propertySignatures.filter(({ type }) => SchemaAST.toType(type) !== type) : []
    if (changing.length > 0 && changing.every(({ type }) => !fillsInMissing(type)))
      fieldsOf.set(
        tag,
        changing.map(({ name, type }) => [String(name), remembering(Schema.decodeUnknownSync(Schema.make<Schema.Codec<unknown>>(type)))])
      )
  }
  return fieldsOf
}

/** Whether decoding the fields is enough to decode this schema. */
const isPlain = (ast: SchemaAST.AST): boolean =>
  ast.encoding === undefined && (SchemaAST.isUnion(ast) || SchemaAST.isObjects(ast)) && ast.encodingChecks === undefined

const tagOf = (ast: SchemaAST.AST): string | undefined => {
  if (!isPlain(ast) || !SchemaAST.isObjects(ast) || ast.indexSignatures.length > 0) return undefined
  const tag = ast.propertySignatures.find(({ name }) => name === "_tag")?.type
  return tag !== undefined && SchemaAST.isLiteral(tag) && typeof tag.literal === "string" ? tag.literal : undefined
}

/** Whether decoding produces a value for a missing field, as a default does. */
const fillsInMissing = (ast: SchemaAST.AST): boolean =>
  ast.encoding?.some(
    ({ transformation }) => transformation._tag === "Middleware" || transformation.decode._tag.startsWith("TransformOptional")
  ) ?? false
