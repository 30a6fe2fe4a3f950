/**
 * Decodes tagged structs of which some fields are something else in memory than in the log, as times are. A schema that only checks
 * compiles to one function (`SchemaJITCompiler`), one that changes something does not. So those fields are decoded first, each by
 * itself, and the struct is then checked as what it is in memory. What that refuses is asked of the schema as it stands: nothing is
 * decoded otherwise than it says, and refusals are its own.
 */
import { Schema, SchemaAST } from "effect"
import * as SchemaJITCompiler from "effect/schema/SchemaJITCompiler"

interface Tagged {
  readonly _tag: string
}

/** Decoders of the fields that change, by name. */
type Fields = ReadonlyArray<readonly [name: string, decode: (value: unknown) => unknown]>

/** What `Schema.decodeUnknownSync` is, for structs with a tag; of other schemas no more than that. */
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

/** By tag. None where a tag alone does not tell how to decode. */
const changingFields = (ast: SchemaAST.AST): ReadonlyMap<string, Fields> => {
  const fieldsOf = new Map<string, Fields>()
  if (!isPlain(ast)) return fieldsOf
  const tags = new Set<string>()
  for (const member of SchemaAST.isUnion(ast) ? ast.types : [ast]) {
    const tag = tagOf(member)
    if (tag === undefined || tags.has(tag)) return new Map()
    tags.add(tag)
    const changing = SchemaAST.isObjects(member) ? member.propertySignatures.filter(({ type }) => SchemaAST.toType(type) !== type) : []
    if (changing.length > 0 && changing.every(({ type }) => !makesUpWhatIsMissing(type)))
      fieldsOf.set(
        tag,
        changing.map(({ name, type }) => [String(name), Schema.decodeUnknownSync(Schema.make<Schema.Codec<unknown>>(type))])
      )
  }
  return fieldsOf
}

/** Whether it is decoded by its parts, and nothing else happens to the whole. */
const isPlain = (ast: SchemaAST.AST): boolean =>
  ast.encoding === undefined && (SchemaAST.isUnion(ast) || SchemaAST.isObjects(ast)) && ast.encodingChecks === undefined

const tagOf = (ast: SchemaAST.AST): string | undefined => {
  if (!isPlain(ast) || !SchemaAST.isObjects(ast) || ast.indexSignatures.length > 0) return undefined
  const tag = ast.propertySignatures.find(({ name }) => name === "_tag")?.type
  return tag !== undefined && SchemaAST.isLiteral(tag) && typeof tag.literal === "string" ? tag.literal : undefined
}

/** As defaults do. */
const makesUpWhatIsMissing = (ast: SchemaAST.AST): boolean =>
  ast.encoding?.some(
    ({ transformation }) => transformation._tag === "Middleware" || transformation.decode._tag.startsWith("TransformOptional")
  ) ?? false
