/** What a row has to be asked: its bounds from both sides, one parameter at a time, while all others are as they should be. */
import { type Named, type Parameter, type Place, parametersOf, type Row } from "./Row.ts"

/** By name, wherever each stands. Lists are sent as a query and a body have them. */
export type Input = Readonly<Record<string, unknown>>

export interface Case {
  /** What is said of the input, such as `text: one longer than 50000`. */
  readonly name: string
  readonly input: Input
}

/** A case that is refused, for one field. */
export interface Refusal extends Case {
  readonly field: string
}

type Example = readonly [what: string, value: unknown]

/** A value that will do. */
const sampleOf = (parameter: Parameter): unknown => {
  if ("oneOf" in parameter) return parameter.oneOf[0]
  if (parameter.type === "boolean") return parameter.only ?? true
  if (parameter.type === "strings") return [parameter.item]
  return parameter.sample
}

/** Whether it can be asked for without another call first. */
const hasSample = (parameter: Parameter): boolean => sampleOf(parameter) !== undefined

const inputOf = (parameters: ReadonlyArray<Named>): Input =>
  Object.fromEntries(parameters.map(({ name, parameter }) => [name, sampleOf(parameter)]))

/** What has to be sent, and nothing else. Fails for a row that needs what only another call makes. */
const required = (row: Row): Input => {
  const parameters = parametersOf(row).filter(({ parameter }) => parameter.required)
  const lacking = parameters.filter(({ parameter }) => !hasSample(parameter)).map(({ name }) => name)
  if (lacking.length > 0) throw new Error(`${row.key} needs a sample of ${lacking.join(", ")} to be driven`)
  return { ...inputOf(parameters), ...row.beside }
}

export const least = (row: Row): Case => ({ name: "no more than is required", input: required(row) })

/** What the row's bounds let through, the bounds themselves included. */
export const accepted = (row: Row): ReadonlyArray<Case> => {
  const base = required(row)
  const known = parametersOf(row).filter(({ parameter }) => hasSample(parameter))
  const each = known.flatMap(({ name, parameter }) =>
    good(parameter).map(([what, value]) => ({ name: `${name}: ${what}`, input: { ...base, [name]: value } }))
  )
  return [least(row), ...each, { name: "all there is", input: { ...inputOf(known), ...row.beside } }]
}

/** What is beyond a bound, of another type, missing, or not known. */
export const refused = (row: Row): ReadonlyArray<Refusal> => {
  const base = required(row)
  const each = parametersOf(row).flatMap(({ name, place, parameter }) => {
    const named =
      (field: string) =>
      ([what, value]: Example) => ({ name: `${name}: ${what}`, field, input: { ...base, [name]: value } })
    const lacks = parameter.type === "boolean" ? (parameter.lacks ?? name) : name
    const wrong = [
      ...bad(parameter).map(named(lacks)),
      ...(place === "body" ? otherTypes(parameter) : otherTexts(parameter, place)).map(named(name))
    ]
    // A path without one of its parts is another path
    if (!parameter.required || place === "path") return wrong
    const { [name]: _, ...rest } = base
    return [...wrong, { name: `${name}: missing`, field: name, input: rest }]
  })
  const unknown = row.method === "GET" ? [] : [{ name: "a field that is not known", field: "surprise", input: { ...base, surprise: 1 } }]
  return [...each, ...unknown]
}

/** What is asked of things that are not there. */
export const absent = (row: Row): ReadonlyArray<Case> => {
  const base = required(row)
  return Object.entries(row.parameters.path).flatMap(([name, parameter]) =>
    "unknown" in parameter ? [{ name: `${name}: of nothing there is`, input: { ...base, [name]: parameter.unknown } }] : []
  )
}

const items = (length: number, item: string): ReadonlyArray<string> => Array.from({ length }, () => item)

const good = (parameter: Parameter): ReadonlyArray<Example> => {
  if ("oneOf" in parameter) return parameter.oneOf.map((value) => [`${value}`, value])
  switch (parameter.type) {
    case "string": {
      const { ofLength, minLength, maxLength, sample } = parameter
      const ofBound = (length: number | undefined): ReadonlyArray<Example> =>
        length === undefined || ofLength === null ? [] : [[`${length} characters`, ofLength(length)]]
      return [["a sample", sample], ...ofBound(minLength), ...ofBound(maxLength)]
    }
    case "integer":
    case "number": {
      const bounds = [parameter.minimum, parameter.maximum].filter((bound) => bound !== undefined)
      return [["a sample", parameter.sample], ...bounds.map((bound): Example => [`${bound}`, bound])]
    }
    case "boolean":
      return [true, false].filter((value) => parameter.only !== !value).map((value) => [`${value}`, value])
    case "strings": {
      const bounds = [parameter.minItems, parameter.maxItems].filter((bound) => bound !== undefined)
      return bounds.map((bound) => [`${bound} items`, items(bound, parameter.item)])
    }
  }
}

/** Of the right type. */
const bad = (parameter: Parameter): ReadonlyArray<Example> => {
  if ("oneOf" in parameter) {
    return parameter.type === "string"
      ? [
          ["none of the values", "none of these"],
          ["empty", ""]
        ]
      : [["none of the values", 31]]
  }
  switch (parameter.type) {
    case "string": {
      const { minLength = 0, maxLength, malformed } = parameter
      const ofLength = parameter.ofLength ?? ((length: number) => "x".repeat(length))
      return [
        ...(minLength > 1 ? [[`one shorter than ${minLength}`, ofLength(minLength - 1)] as const] : []),
        ...(maxLength === undefined ? [] : [[`one longer than ${maxLength}`, ofLength(maxLength + 1)] as const]),
        ...malformed.map((value) => [JSON.stringify(value), value] as const)
      ]
    }
    case "integer":
    case "number": {
      const { minimum, maximum } = parameter
      return [
        ...(minimum === undefined ? [] : [[`one less than ${minimum}`, minimum - 1] as const]),
        ...(maximum === undefined ? [] : [[`one more than ${maximum}`, maximum + 1] as const])
      ]
    }
    case "boolean":
      return parameter.only === undefined ? [] : [[`${!parameter.only}`, !parameter.only]]
    case "strings": {
      const { minItems = 0, maxItems, item } = parameter
      return [
        ...(minItems > 0 ? [[`one item less than ${minItems}`, items(minItems - 1, item)] as const] : []),
        ...(maxItems === undefined ? [] : [[`one item more than ${maxItems}`, items(maxItems + 1, item)] as const])
      ]
    }
  }
}

/** Values of JSON, by the type that they are of. */
const JSON_VALUES: ReadonlyArray<readonly [type: string, value: unknown]> = [
  ["string", "seven"],
  ["string", "7"],
  ["string", "true"],
  ["integer", 7],
  ["number", 7.5],
  ["boolean", true],
  ["null", null],
  ["strings", ["a"]],
  ["numbers", [7]],
  ["object", {}]
]

const otherTypes = ({ type }: Parameter): ReadonlyArray<Example> =>
  JSON_VALUES.filter(([other]) => other !== type && !(type === "number" && other === "integer")).map(([, value]) => [
    JSON.stringify(value),
    value
  ])

/** In a path, a query and a header everything is text: what is no number, and two where one is meant. */
const otherTexts = (parameter: Parameter, place: Place): ReadonlyArray<Example> => {
  const twice: ReadonlyArray<Example> =
    place === "query" && parameter.type !== "strings" ? [["twice", [sampleOf(parameter), sampleOf(parameter)]]] : []
  const numbers = parameter.type === "integer" ? ["seven", "1.5", ""] : parameter.type === "number" ? ["seven", "Infinity", ""] : []
  return [...twice, ...numbers.map((value): Example => [JSON.stringify(value), value])]
}
