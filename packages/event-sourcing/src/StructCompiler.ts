/**
 * Compiles the schema of a struct to one JavaScript function. `SchemaJITCompiler` of Effect does so too, but calls a function for each check of
 * a number, and adds field after field to its result. Here the checks are part of the function, and the result is an object literal.
 *
 * The function decodes what fits. For all else it returns undefined, or throws, and the schema itself must decode the value. So a field of
 * a form that is not known here is decoded by Effect, and results are those of the schema.
 */
import { Schema, SchemaAST, SchemaParser } from "effect"
import * as SchemaJITCompiler from "effect/schema/SchemaJITCompiler"

/** Decodes the fields of a struct; undefined, or an error, where the schema must decode them. */
export type Decode = (fields: unknown) => unknown

/**
 * The decoder of a struct. It does not read the field `tag`, a literal, whose value the caller knows. Undefined for a struct that has more than
 * fields, or where code must not be made from text.
 */
export const compile = (ast: SchemaAST.AST, tag: string): Decode | undefined => {
  const code = new Code()
  const decoded = code.struct(ast, "value", tag)
  if (decoded === undefined) return undefined
  const { constants } = code
  // V8 knows the value of a constant of the outer function, and not that of an element of an array
  const names = constants.map((_, i) => `c${i}`)
  const decode = `(value) => { ${[...code.statements, `return ${decoded}`].join("; ")} }`
  try {
    return new Function(...names, `"use strict"; return ${decode}`)(...constants)
  } catch {
    return undefined
  }
}

/** What all parts of a function share. */
interface Shared {
  readonly constants: Array<unknown>
  names: number
}

/** Statements of a function. Each method adds those that check an expression, and returns the expression of what it is decoded to. */
class Code {
  readonly statements: Array<string> = []
  readonly #shared: Shared

  constructor(shared: Shared = { constants: [], names: 0 }) {
    this.#shared = shared
  }

  get constants(): ReadonlyArray<unknown> {
    return this.#shared.constants
  }

  struct(ast: SchemaAST.AST, value: string, tag?: string): string | undefined {
    if (!isOfFields(ast)) return undefined
    this.#require(`typeof ${value} === "object" && ${value} !== null && !Array.isArray(${value})`)
    const fields = ast.propertySignatures
    const firstOptional = fields.findIndex(({ type }) => isOptional(type))
    const always = firstOptional < 0 ? fields : fields.slice(0, firstOptional)
    const decoded = always.map((field) => `${JSON.stringify(field.name)}: ${this.#required(field, value, tag)}`)
    const result = this.#keep(`{ ${decoded.join(", ")} }`)
    // In the order of the schema: encoded events are text, and the same event is always the same text
    for (const field of fields.slice(always.length)) this.#add(field, value, result)
    return result
  }

  #add(field: SchemaAST.PropertySignature, value: string, result: string): void {
    const name = JSON.stringify(field.name)
    if (!isOptional(field.type)) this.statements.push(`${result}[${name}] = ${this.#required(field, value)}`)
    else
      this.#within(`if (${name} in ${value})`, (code) => `${result}[${name}] = ${code.#field(field.type, code.#keep(`${value}[${name}]`))}`)
  }

  #required({ name, type }: SchemaAST.PropertySignature, value: string, tag?: string): string {
    if (name === tag && SchemaAST.isLiteral(type)) return this.#constant(type.literal)
    const key = JSON.stringify(name)
    this.#require(`${key} in ${value}`)
    return this.#field(type, this.#keep(`${value}[${key}]`))
  }

  #field(ast: SchemaAST.AST, value: string): string {
    const to = SchemaAST.toType(ast)
    if (to === ast) return this.#checked(ast, value)
    const transform = transformOf(ast)
    if (transform === undefined) return this.#byEffect(ast, value)
    this.#require(`typeof ${value} === "string"`)
    return this.#checked(to, this.#keep(`${this.#constant(transform)}(${value})`))
  }

  /** A value of a schema that only checks. */
  #checked(ast: SchemaAST.AST, value: string): string {
    if (SchemaAST.isArrays(ast)) return this.#list(ast, value) ?? this.#byEffect(ast, value)
    if (SchemaAST.isObjects(ast)) return this.struct(ast, value) ?? this.#byEffect(ast, value)
    const condition = conditionOf(ast, value, (literal) => this.#constant(literal))
    if (condition === undefined) return this.#byEffect(ast, value)
    this.#require(condition)
    return value
  }

  #list({ checks, elements, encodingChecks, rest }: SchemaAST.Arrays, value: string): string | undefined {
    const [element, ...more] = rest
    if (checks !== undefined || encodingChecks !== undefined || elements.length > 0 || element === undefined || more.length > 0)
      return undefined
    this.#require(`Array.isArray(${value})`)
    const list = this.#keep(`new Array(${value}.length)`)
    this.#within(`for (let i = 0; i < ${value}.length; i++)`, (code) => `${list}[i] = ${code.#checked(element, code.#keep(`${value}[i]`))}`)
    return list
  }

  #byEffect(ast: SchemaAST.AST, value: string): string {
    SchemaJITCompiler.enable(ast)
    // What it throws tells less than what a schema throws
    return `${this.#constant(SchemaParser.decodeUnknownSync(Schema.make<Schema.Codec<unknown>>(ast)))}(${value})`
  }

  #within(head: string, body: (code: Code) => string): void {
    const code = new Code(this.#shared)
    const last = body(code)
    this.statements.push(`${head} { ${[...code.statements, last].join("; ")} }`)
  }

  #require(condition: string): void {
    this.statements.push(`if (!(${condition})) return undefined`)
  }

  #keep(expression: string): string {
    const name = `v${this.#shared.names++}`
    this.statements.push(`const ${name} = ${expression}`)
    return name
  }

  #constant(value: unknown): string {
    return `c${this.#shared.constants.push(value) - 1}`
  }
}

/** The condition of a value that is neither a list nor an object; undefined if it has no short one. */
const conditionOf = (ast: SchemaAST.AST, value: string, constant: (literal: unknown) => string): string | undefined => {
  if (SchemaAST.isNumber(ast))
    return all([`typeof ${value} === "number"`, ...(ast.checks ?? []).map((check) => conditionOfNumber(check, value))])
  if (ast.checks !== undefined) return undefined
  if (SchemaAST.isString(ast)) return `typeof ${value} === "string"`
  if (SchemaAST.isBoolean(ast)) return `typeof ${value} === "boolean"`
  if (SchemaAST.isNull(ast)) return `${value} === null`
  if (SchemaAST.isLiteral(ast)) return `${value} === ${constant(ast.literal)}`
  if (!SchemaAST.isUnion(ast) || ast.encodingChecks !== undefined || ast.options?.mode === "oneOf") return undefined
  return all(
    ast.types.map((type) => conditionOf(type, value, constant)),
    " || "
  )
}

const all = (conditions: ReadonlyArray<string | undefined>, by = " && "): string | undefined =>
  conditions.includes(undefined) ? undefined : conditions.map((condition) => `(${condition})`).join(by)

/** The condition of a check that Effect names. */
const conditionOfNumber = ({ _tag, annotations }: SchemaAST.Check<never>, value: string): string | undefined => {
  const representation = _tag === "Filter" ? annotations?.["representation"] : undefined
  const { id, payload } = (representation ?? {}) as { readonly id?: string; readonly payload?: Readonly<Record<string, unknown>> }
  if (id === "effect/schema/isInt") return `Number.isSafeInteger(${value})`
  if (id !== "effect/schema/isBetween") return undefined
  const { maximum, minimum, ...exclusive } = payload ?? {}
  return Object.keys(exclusive).length > 0 ? undefined : `${value} >= ${Number(minimum)} && ${value} <= ${Number(maximum)}`
}

/**
 * The function of a schema that only transforms texts, as that of times does; undefined for other schemas. It does not check its results.
 */
const transformOf = ({ encoding }: SchemaAST.AST): ((text: string) => unknown) | undefined => {
  const [link, ...more] = encoding ?? []
  if (link === undefined || more.length > 0 || !isAnyText(link.to) || link.transformation._tag !== "Transformation") return undefined
  const { decode } = link.transformation
  return decode._tag === "Transform" ? decode.transform : undefined
}

const isAnyText = (ast: SchemaAST.AST): boolean => SchemaAST.isString(ast) && ast.encoding === undefined && ast.checks === undefined

/** Whether decoding the fields decodes the struct. */
const isOfFields = (ast: SchemaAST.AST): ast is SchemaAST.Objects =>
  SchemaAST.isObjects(ast) &&
  ast.encoding === undefined &&
  ast.encodingChecks === undefined &&
  ast.checks === undefined &&
  ast.indexSignatures.length === 0 &&
  ast.propertySignatures.length > 0 &&
  ast.propertySignatures.every(({ name, type }) => typeof name === "string" && name !== "__proto__" && !fillsInMissing(type))

const isOptional = ({ context }: SchemaAST.AST): boolean => context?.isOptional ?? false

/** Whether decoding produces a value for a missing field, as a default does, or none for one that is there. */
const fillsInMissing = (ast: SchemaAST.AST): boolean =>
  isOptional(SchemaAST.toEncoded(ast)) !== isOptional(ast) ||
  (ast.encoding?.some(
    ({ transformation }) => transformation._tag === "Middleware" || transformation.decode._tag.startsWith("TransformOptional")
  ) ??
    false)
