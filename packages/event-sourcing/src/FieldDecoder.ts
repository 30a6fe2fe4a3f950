/**
 * A fast decoder for tagged structs. The compiled decoder of a tag decodes what fits. All else is decoded by the schema, so that results and
 * errors are always those of the schema.
 */
import { Schema, SchemaAST } from "effect"
import * as SchemaJITCompiler from "effect/schema/SchemaJITCompiler"
import * as StructCompiler from "./StructCompiler.ts"

interface Tagged {
  readonly _tag: string
}

export interface FieldDecoder<Event> {
  /** Has the results of `Schema.decodeUnknownSync`. It is faster for structs with a tag. */
  readonly decode: (encoded: Tagged) => Event
  /**
   * Decodes the fields of a struct with this tag; a tag among them is not read. Undefined where {@link decode} must decode them. The tag of the
   * result is the text of the schema: a fold compares it dozens of times, and V8 compares texts of the program by address.
   */
  readonly decodeFields: (tag: string, fields: unknown) => Event | undefined
}

export const make = <Event extends Tagged>(schema: Schema.Codec<Event, Tagged>): FieldDecoder<Event> => {
  SchemaJITCompiler.enable(schema.ast)
  const decode = Schema.decodeUnknownSync(schema)
  const structs = byTag(schema.ast)
  const compiled = new Map<string, StructCompiler.Decode>()
  // Compiled for the first event of its tag, because most processes see few of the hundreds of tags
  const compile = (tag: string): StructCompiler.Decode | undefined => {
    const struct = structs.get(tag)
    if (struct === undefined) return undefined
    const decoder = StructCompiler.compile(struct, "_tag") ?? BY_SCHEMA
    compiled.set(tag, decoder)
    return decoder
  }
  const decodeFields = (tag: string, fields: unknown): Event | undefined => {
    try {
      // Of the schema of this tag, as its result is
      return (compiled.get(tag) ?? compile(tag))?.(fields) as Event | undefined
    } catch {
      return undefined
    }
  }
  return { decodeFields, decode: (encoded) => decodeFields(encoded._tag, encoded) ?? decode(encoded) }
}

const BY_SCHEMA: StructCompiler.Decode = () => undefined

/** The structs of the tags. Empty if the tag does not determine the decoding. */
const byTag = (ast: SchemaAST.AST): ReadonlyMap<string, SchemaAST.AST> => {
  const structs = new Map<string, SchemaAST.AST>()
  const isUnion = SchemaAST.isUnion(ast)
  // A check of a whole union is not one of a tag
  if (isUnion && (ast.encoding ?? ast.encodingChecks ?? ast.checks) !== undefined) return structs
  for (const member of isUnion ? ast.types : [ast]) {
    const tag = tagOf(member)
    if (tag === undefined || structs.has(tag)) return new Map()
    structs.set(tag, member)
  }
  return structs
}

const tagOf = (ast: SchemaAST.AST): string | undefined => {
  if (!SchemaAST.isObjects(ast) || ast.encoding !== undefined || ast.indexSignatures.length > 0) return undefined
  const tag = ast.propertySignatures.find(({ name }) => name === "_tag")?.type
  return tag !== undefined && SchemaAST.isLiteral(tag) && typeof tag.literal === "string" ? tag.literal : undefined
}
