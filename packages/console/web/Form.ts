/** Forms from a contract: which control a field has, and the request that the texts in its controls make. */
import type { JsonSchema, Operation, Parameter } from "./Contract.ts"

/** How a value is entered. `lines`: one item a line. `json`: as JSON, where no simpler control fits. */
export type Control = "text" | "long" | "number" | "choice" | "truth" | "lines" | "json"

export interface Field extends Parameter {
  readonly control: Control
  readonly choices: ReadonlyArray<string>
  readonly isInteger: boolean
  /** What a value must be, in words; empty where anything goes. */
  readonly hint: string
}

/** What stands in the controls, by the names of the fields. An empty text is no value. */
export type Texts = Readonly<Record<string, string>>

/** The longest text that has a control of one line. */
const ONE_LINE = 300

/** The fields of an operation, the required ones first, each in the order of the contract. */
export const fieldsOf = ({ parameters }: Operation): ReadonlyArray<Field> =>
  parameters.map(fieldOf).toSorted((a, b) => Number(b.required) - Number(a.required))

const fieldOf = (parameter: Parameter): Field => {
  const schema = simple(parameter.schema)
  const control = controlOf(schema, parameter)
  return {
    ...parameter,
    schema,
    control,
    choices: control === "truth" ? ["true", "false"] : (schema.enum ?? []).map(String),
    isInteger: schema.type === "integer",
    hint: hintOf(schema)
  }
}

/** A schema without the alternative of null, which the empty control is. */
const simple = (schema: JsonSchema): JsonSchema => {
  const some = (schema.anyOf ?? schema.oneOf)?.filter(({ type }) => type !== "null")
  return some?.length === 1 && some[0] !== undefined ? { ...schema, ...some[0] } : schema
}

/** What stands in an address is one line, and so is an address itself, however long it may be. */
const isOneLine = ({ name, place }: Pick<Parameter, "name" | "place">): boolean => place === "path" || /(?:^|_)ur[il]$/u.test(name)

const controlOf = ({ enum: choices, items, maxLength, type }: JsonSchema, parameter: Parameter): Control => {
  if (choices !== undefined) return "choice"
  if (type === "boolean") return "truth"
  if (type === "integer" || type === "number") return "number"
  if (type === "string" && isOneLine(parameter)) return "text"
  if (type === "string") return maxLength === undefined || maxLength > ONE_LINE ? "long" : "text"
  return type === "array" && items?.type === "string" ? "lines" : "json"
}

const hintOf = (schema: JsonSchema): string => {
  const { items, maxItems, maxLength, maximum, minimum, minItems, type } = schema
  if (type === "integer" || type === "number") {
    if (minimum !== undefined && maximum !== undefined) return `${minimum} to ${maximum}`
    return minimum === undefined ? (maximum === undefined ? "" : `at most ${maximum}`) : `at least ${minimum}`
  }
  if (type === "array" && items?.type === "string")
    return maxItems === undefined ? "one a line" : `${minItems ?? 0} to ${maxItems.toLocaleString("en")}, one a line`
  if (type === "string" && schema.enum === undefined && maxLength !== undefined) return `up to ${maxLength.toLocaleString("en")} characters`
  return type === undefined || type === "object" ? "JSON" : ""
}

/** The texts of the example that the contract gives. */
export const exampleOf = (fields: ReadonlyArray<Field>): Texts =>
  Object.fromEntries(fields.flatMap(({ control, example, name }) => (example === undefined ? [] : [[name, textOf(control, example)]])))

const textOf = (control: Control, value: unknown): string => {
  if (control === "lines" && Array.isArray(value)) return value.join("\n")
  return typeof value === "string" && control !== "json" ? value : JSON.stringify(value)
}

/** A request, or what is wrong with the texts by the names of the fields. */
export type Made =
  | { readonly ok: true; readonly method: string; readonly path: string; readonly body: Readonly<Record<string, unknown>> | undefined }
  | { readonly ok: false; readonly wrong: Readonly<Record<string, string>> }

/** Makes the request of an operation from the texts. What only the server can know is left to the server. */
export const requestOf = ({ method, path }: Operation, fields: ReadonlyArray<Field>, texts: Texts): Made => {
  const wrong: Record<string, string> = {}
  const values = new Map<Field, unknown>()
  for (const field of fields) {
    const read = valueOf(field, texts[field.name] ?? "")
    if (read.wrong !== undefined) wrong[field.name] = read.wrong
    else if (read.value !== undefined) values.set(field, read.value)
  }
  if (Object.keys(wrong).length > 0) return { ok: false, wrong }
  const ofPlace = (place: Parameter["place"]) => [...values].filter(([field]) => field.place === place)
  const filled = ofPlace("path").reduce((text, [{ name }, value]) => text.replace(`{${name}}`, encodeURIComponent(String(value))), path)
  const query = new URLSearchParams(
    ofPlace("query").flatMap(([{ name }, value]) =>
      (Array.isArray(value) ? value : [value]).map((one): [string, string] => [name, String(one)])
    )
  ).toString()
  const hasBody = fields.some(({ place }) => place === "body")
  return {
    ok: true,
    method,
    path: query === "" ? filled : `${filled}?${query}`,
    body: hasBody ? Object.fromEntries(ofPlace("body").map(([{ name }, value]) => [name, value])) : undefined
  }
}

interface Read {
  readonly value?: unknown
  readonly wrong?: string
}

const valueOf = ({ control, isInteger, name, required, schema }: Field, text: string): Read => {
  if (text.trim() === "") return required ? { wrong: `Give a value for ${name}.` } : {}
  switch (control) {
    case "number": {
      const value = Number(text)
      if (!Number.isFinite(value) || (isInteger && !Number.isInteger(value)))
        return { wrong: `Give ${isInteger ? "a whole number" : "a number"}.` }
      if (schema.minimum !== undefined && value < schema.minimum) return { wrong: `Give at least ${schema.minimum}.` }
      if (schema.maximum !== undefined && value > schema.maximum) return { wrong: `Give at most ${schema.maximum}.` }
      return { value }
    }
    case "choice":
      return { value: schema.enum?.find((choice) => String(choice) === text) ?? text }
    case "truth":
      return { value: text === "true" }
    case "lines":
      return { value: text.split("\n").flatMap((line) => (line.trim() === "" ? [] : [line.trim()])) }
    case "json":
      try {
        return { value: JSON.parse(text) }
      } catch {
        return { wrong: "This is no JSON." }
      }
    default:
      return { value: text }
  }
}

/** The units that a request will be priced for, where the contract shows it: the items of its only list, else one. */
export const quantityOf = (fields: ReadonlyArray<Field>, texts: Texts): number => {
  const lists = fields.filter(({ control, required }) => control === "lines" && required)
  const [list] = lists
  if (list === undefined || lists.length > 1) return 1
  return Math.max(1, (texts[list.name] ?? "").split("\n").filter((line) => line.trim() !== "").length)
}
