/** The operations of the host, as its OpenAPI document describes them. Whatever the document does not have is not shown. */

/** The part of JSON Schema that the forms read. */
export interface JsonSchema {
  readonly type?: string | ReadonlyArray<string>
  readonly enum?: ReadonlyArray<string | number>
  readonly const?: unknown
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly items?: JsonSchema
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly oneOf?: ReadonlyArray<JsonSchema>
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly description?: string
  readonly default?: unknown
  readonly $ref?: string
}

export interface Price {
  readonly credits: number
  /** What is counted: `call`, or for example `address`. */
  readonly unit: string
  /** The price of a unit in `currency`, a decimal. */
  readonly value: string
  readonly currency: string
}

export type Place = "path" | "query" | "body"

export interface Parameter {
  readonly name: string
  readonly place: Place
  readonly schema: JsonSchema
  readonly required: boolean
  readonly example: unknown
  readonly description: string | undefined
}

export interface Operation {
  readonly key: string
  readonly group: string
  readonly method: string
  /** With `{parameters}`. */
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly price: Price | undefined
  /** No key is needed. */
  readonly isPublic: boolean
  /** It takes `Prefer: wait`. */
  readonly waits: boolean
  readonly parameters: ReadonlyArray<Parameter>
  /** The media types of its success. */
  readonly answers: ReadonlyArray<string>
  /** What can be done with the answer: an operation, and which field of the data is which of its parameters. */
  readonly links: ReadonlyArray<Link>
}

export interface Link {
  readonly operation: string
  /** By parameter: the name of a field of the data. */
  readonly parameters: Readonly<Record<string, string>>
}

export interface Contract {
  /** How the host calls itself. */
  readonly title?: string
  readonly operations: ReadonlyArray<Operation>
  readonly groups: ReadonlyArray<{ readonly name: string; readonly description: string }>
  /** The operation of a method and path; undefined where the host does not offer it. */
  readonly find: (method: string, path: string) => Operation | undefined
  readonly byKey: (key: string) => Operation | undefined
  /** Whether the host has the operator view. */
  readonly hasOperator?: boolean
}

// biome-ignore lint/suspicious/noExplicitAny: a document of JSON
type Json = any

const METHODS = ["get", "post", "put", "patch", "delete"]

/** Reads the document. */
export const contractOf = (document: Json): Contract => {
  const resolve = (value: Json): Json => (typeof value?.$ref === "string" ? resolve(lookUp(document, value.$ref)) : value)
  const operations: Array<Operation> = Object.entries<Json>(document.paths ?? {}).flatMap(([path, methods]) =>
    METHODS.flatMap((method) => (methods[method] === undefined ? [] : [operationOf(method.toUpperCase(), path, methods[method], resolve)]))
  )
  const find = (method: string, path: string) => operations.find((operation) => operation.method === method && operation.path === path)
  return {
    ...(typeof document.info?.title === "string" ? { title: document.info.title } : {}),
    operations,
    groups: (document.tags ?? []).map(({ description = "", name }: Json) => ({ name, description })),
    find,
    byKey: (key) => operations.find((operation) => operation.key === key),
    hasOperator: document["x-operator"] !== undefined
  }
}

const lookUp = (document: Json, reference: string): Json =>
  reference
    .replace(/^#\//u, "")
    .split("/")
    .reduce((value, part) => value?.[part.replaceAll("~1", "/").replaceAll("~0", "~")], document)

const operationOf = (method: string, path: string, operation: Json, resolve: (value: Json) => Json): Operation => {
  const named: ReadonlyArray<Json> = (operation.parameters ?? []).map(resolve)
  const content = operation.requestBody?.content?.["application/json"]
  const success = Object.entries<Json>(operation.responses ?? {}).find(([status]) => status.startsWith("2"))?.[1]
  return {
    key: operation.operationId ?? `${method} ${path}`,
    group: operation.tags?.[0] ?? "",
    method,
    path,
    summary: operation.summary ?? path,
    description: operation.description ?? "",
    price: operation["x-price"],
    isPublic: operation.security?.length === 0,
    waits: named.some(({ name }) => name === "Prefer"),
    parameters: [
      ...named
        .filter(({ in: place }) => place === "path" || place === "query")
        .map((parameter) => ({
          name: parameter.name,
          place: parameter.in as Place,
          schema: resolve(parameter.schema ?? {}),
          required: parameter.required === true,
          example: parameter.example,
          description: parameter.description
        })),
      ...bodyOf(resolve(content?.schema), content?.example, resolve)
    ],
    answers: Object.keys(success?.content ?? {}),
    links: Object.values<Json>(success?.links ?? {}).map(({ operationId, parameters }) => ({
      operation: operationId,
      parameters: Object.fromEntries(
        Object.entries<string>(parameters ?? {}).map(([name, pointer]) => [name, pointer.replace("$response.body#/data/", "")])
      )
    }))
  }
}

const bodyOf = (schema: JsonSchema | undefined, example: Json, resolve: (value: Json) => Json): ReadonlyArray<Parameter> =>
  Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    const resolved = resolve(property)
    return {
      name,
      place: "body",
      schema: resolved,
      required: schema?.required?.includes(name) ?? false,
      example: example?.[name],
      description: resolved.description
    }
  })
