/**
 * A fast decoder for tagged structs. A schema that only checks compiles to one function (`SchemaJITCompiler`). A schema that transforms a
 * field, such as a time, does not. So the transformed fields are decoded first, one by one, and then the compiled check of the tag runs on
 * the result. If anything fails, the schema decodes the original value, so that results and errors are always those of the schema.
 */
import { Schema, SchemaAST, SchemaParser } from "effect"
import * as SchemaJITCompiler from "effect/schema/SchemaJITCompiler"

interface Tagged {
  readonly _tag: string
}

type Decode = (value: unknown) => unknown

/** How the events of one tag are decoded. */
interface OfTag {
  /** Decoders of the transformed fields. */
  readonly fields: ReadonlyArray<readonly [name: string, decode: Decode]>
  /** Checks an event whose fields are decoded. Returns it without the fields that the schema does not know. */
  readonly check: Decode
}

/** Returns a decoder with the results of `Schema.decodeUnknownSync`. It is faster for structs with a tag. */
export const make = <Event extends Tagged>(schema: Schema.Codec<Event, Tagged>): ((encoded: Tagged) => Event) => {
  SchemaJITCompiler.enable(schema.ast)
  const decode = Schema.decodeUnknownSync(schema)
  const tags = byTag(schema.ast)
  return (encoded) => {
    const ofTag = tags.get(encoded._tag)
    if (ofTag === undefined || Array.isArray(encoded)) return decode(encoded)
    try {
      // Of the schema of this tag, as its result is
      return ofTag.check(withFields(encoded, ofTag.fields)) as Event
    } catch {
      return decode(encoded)
    }
  }
}

const withFields = (encoded: Tagged, fields: OfTag["fields"]): unknown => {
  if (fields.length === 0) return encoded
  const event: Record<string, unknown> = { ...encoded }
  for (const [name, decodeField] of fields) if (Object.hasOwn(event, name)) event[name] = decodeField(event[name])
  return event
}

/** How each tag is decoded; without the tags whose fields are not all there is to decode. Empty if the tag does not determine the decoding. */
const byTag = (ast: SchemaAST.AST): ReadonlyMap<string, OfTag> => {
  const tags = new Map<string, OfTag>()
  // A check of a whole union is not one of a tag
  if (!isPlain(ast) || (SchemaAST.isUnion(ast) && ast.checks !== undefined)) return tags
  const seen = new Set<string>()
  for (const member of SchemaAST.isUnion(ast) ? ast.types : [ast]) {
    const tag = tagOf(member)
    if (tag === undefined || seen.has(tag)) return new Map()
    seen.add(tag)
    const changing = SchemaAST.isObjects(member) ? member.propertySignatures.filter(({ type }) => SchemaAST.toType(type) !== type) : []
    if (changing.every(({ type }) => !fillsInMissing(type)))
      tags.set(tag, {
        fields: changing.map(({ name, type }) => [String(name), transformOf(type) ?? compiled(type)]),
        check: compiled(SchemaAST.toType(member))
      })
  }
  return tags
}

/**
 * The function of a schema that only transforms texts, as that of times does; undefined for other schemas. It does not check its results,
 * because the check of the event does.
 */
const transformOf = ({ encoding }: SchemaAST.AST): Decode | undefined => {
  const [link, ...more] = encoding ?? []
  if (link === undefined || more.length > 0 || !isAnyText(link.to) || link.transformation._tag !== "Transformation") return undefined
  const { decode } = link.transformation
  if (decode._tag !== "Transform") return undefined
  return (text) => {
    if (typeof text !== "string") throw new TypeError("Not a text")
    return decode.transform(text)
  }
}

const isAnyText = (ast: SchemaAST.AST): boolean => SchemaAST.isString(ast) && ast.encoding === undefined && ast.checks === undefined

/** The parser of a schema, compiled where it only checks. What it throws tells less than what a schema throws. */
const compiled = (ast: SchemaAST.AST): Decode => {
  SchemaJITCompiler.enable(ast)
  return SchemaParser.decodeUnknownSync(Schema.make<Schema.Codec<unknown>>(ast))
}

/** The tags of a union of tagged structs, or of one, by their text. */
export const tagsOf = ({ ast }: Schema.Codec<Tagged, Tagged>): ReadonlyMap<string, string> =>
  new Map((SchemaAST.isUnion(ast) ? ast.types : [ast]).flatMap((member) => tagOf(member) ?? []).map((tag) => [tag, tag]))

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
